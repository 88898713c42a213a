package builtin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/weirtest"
)

func TestCodeSettingsAreCheckedWithTheirPosition(t *testing.T) {
	for _, c := range []struct{ node, at, want string }{
		{`{type: action}`, "5:3", "code or prompt is missing"},
		{`{type: action, with: {code: "x = 1", prompt: "do it"}}`, "", "both given"},
		{`{type: decision, with: {expr: "true", code: "x"}}`, "", "both given"},
		{`{type: decision, with: {branches: [a, b]}}`, "", "expr, code or prompt is missing"},
		{`{type: action, with: {code: "  "}}`, "5:34", "there is no code"},
		{`{type: action, with: {prompt: " "}}`, "", "there is nothing to do"},
		{`{type: action, with: {code: "x", timeout: 301}}`, "5:48", "from 1 to 300 seconds"},
		{`{type: action, with: {code: "x", timeout: 0}}`, "", "from 1 to 300 seconds"},
		{`{type: action, with: {code: "x", timeout: 6m}}`, "", "from 1 to 300 seconds"},
		{`{type: action, with: {code: "x", timeout: soon}}`, "", "is not a duration"},
		{`{type: action, with: {code: "x", language: Ruby!}}`, "", "does not match"},
		{`{type: action, with: {prompt: "x", language: ruby}}`, "", "write python and starlark"},
		{`{type: action, with: {code: "x", executor: "my docker"}}`, "", "does not match"},
		{`{type: action, with: {code: "x", language: python, executor: starlark}}`, "", "runs starlark"},
		{`{type: action, with: {code: "x", attempts: 2}}`, "", "attempts means nothing beside code"},
		{`{type: action, with: {code: "x", model: openai/gpt}}`, "", "model means nothing beside code"},
		{`{type: action, with: {code: "x", files: {"../x": a.txt}}}`, "", "cannot be the name of a file"},
		{`{type: action, with: {prompt: "x", models: {writer: a/b}}}`, "", "writer"},
		{`{type: action, with: {prompt: "x", attempts: 0}}`, "", "attempts"},
		{`{type: action, with: {prompt: "x", maxSteps: 3}}`, "", "means nothing beside a prompt without tools"},
		{`{type: decision, with: {expr: "true", timeout: 5}}`, "", "timeout means nothing beside expr"},
		{`{type: decision, with: {prompt: "x", branches: [limit, go]}}`, "", "cannot be the name of a branch"},
		{`{type: action, cache: true, with: {code: "x"}}`, "", "cannot be cached"},
		{`{type: decision, cache: true, with: {code: "x"}}`, "", "cannot be cached"},
	} {
		text := "weir: 1\nname: checked\ncontext: {model: script/demo}\nnodes:\n  a: " + c.node + "\n"
		_, err := flow.Parse("f.yaml", []byte(text), builtin.Catalogue())
		var invalid *flow.Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%s is valid: %v", c.node, err)
			continue
		}
		found := false
		for _, p := range invalid.Problems {
			found = found || strings.Contains(p.Message, c.want) && p.Pos.Line == 5 && strings.HasPrefix(p.Pos.String(), "f.yaml:"+c.at)
		}
		if !found {
			t.Errorf("%s at %q: %v; expected %q", c.node, c.at, err, c.want)
		}
	}
}

func TestCodeIsNotATemplate(t *testing.T) {
	text := "weir: 1\nname: literal\nnodes:\n  a: {type: action, with: {code: \"context['a'] = '{{ nobody.reads(this }}'\"}}\n"
	if _, err := flow.Parse("f.yaml", []byte(text), builtin.Catalogue()); err != nil {
		t.Error(err)
	}
}

// TestExecutorsOfAProgramAreNamedLikeOthers runs code in a language that Weir does not have.
func TestExecutorsOfAProgramAreNamedLikeOthers(t *testing.T) {
	for _, c := range []struct{ with, code, message string }{
		{`{code: "puts 1", executor: ruby-vm}`, "", ""},
		{`{code: "puts 1", language: ruby}`, "", ""},
		{`{code: "puts 1", language: ruby, executor: ruby-vm}`, "", ""},
		{`{code: "puts 1", language: lua, executor: ruby-vm}`, engine.CodeSandboxUnavailable, "the executor ruby-vm for lua is not offered here; offered: ruby-vm (ruby)"},
		{`{code: "puts 1", executor: docker}`, engine.CodeSandboxUnavailable, "the executor docker is not offered here; offered: ruby-vm (ruby)"},
		{`{code: "puts 1"}`, engine.CodeSandboxUnavailable, "an executor for python is not offered here; offered: ruby-vm (ruby)"},
		{`{prompt: "do it", executor: ruby-vm}`, engine.CodeSandboxUnavailable, "the executor ruby-vm runs ruby, and the agents write python and starlark"},
	} {
		text := "weir: 1\nname: own\ncontext: {model: script/demo}\nnodes:\n  a: {type: action, with: " + c.with + "}\n"
		o := &externalRecorder{s: &probeFlow{}}
		r := weirtest.Flow(t, text, weirtest.Case{Executors: []sandbox.Executor{recordingExecutor{o, "ruby-vm", "ruby"}}, Script: weirtest.Says("x")})
		switch {
		case c.code == "" && r.Status != engine.Completed:
			t.Errorf("%s: %s %v", c.with, r.Status, r.Error)
		case c.code != "" && (r.Error == nil || r.Error.Code != c.code || !strings.Contains(r.Error.Message, c.message)):
			t.Errorf("%s: %s %v, expected %q", c.with, r.Status, r.Error, c.message)
		}
	}
}
