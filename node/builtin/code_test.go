package builtin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
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
		{`{type: action, with: {code: "x", language: ruby}}`, "", "'python', 'starlark'"},
		{`{type: action, with: {code: "x", executor: docker}}`, "", "'e2b'"},
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
