package builtin_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/weirtest"
)

// modesOf returns the settings of a type that choose how it works, with their values: those
// of an enumeration, and true and false.
func modesOf(spec *flow.TypeSpec) map[string][]string {
	out := make(map[string][]string)
	properties, _ := spec.Settings["properties"].(map[string]any)
	for name, p := range properties {
		schema, _ := p.(map[string]any)
		if schema["type"] == "boolean" {
			out[name] = []string{"true", "false"}
		}
		list, _ := schema["enum"].([]any)
		for _, v := range list {
			out[name] = append(out[name], fmt.Sprint(v))
		}
	}
	return out
}

// TestEverySettingBesideEveryModeHasAnEffectOrIsRejected takes the probe of each setting of each
// type, and repeats it with each value of each setting of the type that chooses how it works.
func TestEverySettingBesideEveryModeHasAnEffectOrIsRejected(t *testing.T) {
	t.Parallel()
	pairs := settingPairs()
	if len(pairs) < 800 {
		t.Fatalf("%d pairs", len(pairs))
	}
	for i, c := range pairs {
		if testing.Short() && i%8 != 0 {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s=%s/%s", c.probe.stage.typ, c.mode, c.value, c.name), func(t *testing.T) {
			t.Parallel()
			c.probe.checkBeside(t, c.name, c.mode, c.value)
		})
	}
	t.Logf("%d pairs", len(pairs))
}

// settingPair is the probe of a setting, and another setting beside it.
type settingPair struct {
	probe             probe
	name, mode, value string
}

// settingPairs lists the pairs of all types. The stage of a probe may need a mode itself.
func settingPairs() (out []settingPair) {
	table := settingProbes()
	for _, spec := range builtin.Catalogue().Specs() {
		modes := modesOf(spec)
		for _, name := range slices.Sorted(maps.Keys(table[spec.Name])) {
			p := table[spec.Name][name]
			p.stage.typ = spec.Name
			top, _, _ := strings.Cut(name, ".")
			for _, mode := range slices.Sorted(maps.Keys(modes)) {
				if top == mode || p.refused != "" || p.stage.with[mode] != "" {
					continue
				}
				for _, value := range modes[mode] {
					out = append(out, settingPair{p, name, mode, value})
				}
			}
		}
	}
	return out
}

// checkBeside checks a probe with another setting beside it.
func (p probe) checkBeside(t *testing.T, name, mode, value string) {
	t.Helper()
	if p.whole != "" {
		name, _, _ = strings.Cut(name, ".")
		p.value = p.whole
	}
	var invalid *flow.Invalid
	stage := p.stage.setting(mode, value)
	switch {
	case mode == "mode" && value == "plan" && stage.typ == "agent": // the plan comes first
		stage.script = append(weirtest.Says(`{"steps": [{"say": "one"}]}`), stage.script...)
		if name == "on" { // the step has an answer too, before that which is read
			stage.script = slices.Insert(stage.script, 1, weirtest.Says("done")...)
		}
	case mode == "approve" && stage.typ == "tool":
		stage.answers = map[string]any{"n:approve.1.2c4074f0#1": "approve"}
	}
	before, err := stage.run(t)
	if errors.As(err, &invalid) {
		t.Skip("the stage refuses the mode")
	}
	if err != nil {
		t.Fatal(err)
	}
	after, err := stage.setting(name, p.value).run(t)
	if errors.As(err, &invalid) {
		return
	}
	if err == nil && slices.Equal(before, after) {
		t.Errorf("nothing that happens differs with it:\n%s\n%s", stage.setting(name, p.value).text(), firstLines(after))
	}
}

// A setting without which another one has no effect is required beside it.
func TestSettingsWithoutEffectAloneAreRejected(t *testing.T) {
	t.Parallel()
	body := "body: " + bodyOf
	for _, c := range []struct{ typ, alone, complete string }{
		{"loop", body + ", max: 2, atMax: stop", body + ", max: 2, atMax: stop, until: 'true'"},
		{"llmRequest", "skipHistory: true, history: server", "skipHistory: false, history: server"},
		{"llmRequest", "skipHistory: true, history: client", "history: client"},
		{"agent", "queue: {capacity: 3}", "queue: {capacity: 3, tools: true}"},
		{"agent", "queue: {tools: false}", "queue: {tools: false}, todo: [Look.]"},
		{"agent", "flows: [child.yaml], queue: {tools: false}", "flows: [child.yaml]"},
		{"agent", "planner: {model: script/two}", "planner: {model: script/two}, mode: plan"},
		{"action", "code: 'x = 1', temperature: 0.3", "prompt: Count., temperature: 0.3"},
		{"action", "prompt: Count., maxSteps: 3", "prompt: Count., maxSteps: 3, tools: [look]"},
		{"redactor", "reversible: false, ttl: 60", "ttl: 60"},
	} {
		in := ""
		if c.typ == "agent" || c.typ == "llmRequest" {
			in = "in: {message: hello}, "
		}
		if c.typ == "redactor" {
			in = "in: {value: hello}, "
		}
		text := func(with string) string {
			return "weir: 1\nname: f\ncontext: {model: script/one}\nnodes:\n  n: {type: " + c.typ + ", " + in + "with: {" + with + "}}\n"
		}
		files := map[string]string{"child.yaml": childFlow}
		_, err := flow.Source{Files: flow.MemFiles(files)}.Parse("flow.yaml", []byte(text(c.alone)), builtin.Catalogue())
		var invalid *flow.Invalid
		if !errors.As(err, &invalid) || invalid.Problems[0].Code != flow.CodeInvalidSetting {
			t.Errorf("%s: %s: %v", c.typ, c.alone, err)
		}
		if _, err := (flow.Source{Files: flow.MemFiles(files)}).Parse("flow.yaml", []byte(text(c.complete)), builtin.Catalogue()); err != nil {
			t.Errorf("%s: %s: %v", c.typ, c.complete, err)
		}
	}
}
