package builtin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
)

// nodesOf calls f with each node of a flow in its normal form, those in bodies
// too.
func nodesOf(graph map[string]any, f func(n map[string]any)) {
	nodes, _ := graph["nodes"].(map[string]any)
	for _, n := range nodes {
		n, _ := n.(map[string]any)
		f(n)
		if with, ok := n["with"].(map[string]any); ok {
			if body, ok := with["body"].(map[string]any); ok {
				nodesOf(body, f)
			}
		}
	}
}

// normalOf is an example as data, nil where it needs other files.
func normalOf(t *testing.T, e flow.Example, c flow.Catalogue) map[string]any {
	t.Helper()
	if len(e.Files) > 0 {
		return nil
	}
	f, err := flow.Parse("example.yaml", []byte(e.Flow), c)
	if err != nil {
		return nil // an example of what is refused
	}
	text, err := f.Normal()
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// problemsOf lists what is wrong with a flow.
func problemsOf(t *testing.T, doc map[string]any, c flow.Catalogue) []flow.Problem {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = flow.Parse("example.json", text, c)
	var invalid *flow.Invalid
	if !errors.As(err, &invalid) {
		return nil
	}
	for _, p := range invalid.Problems {
		if p.Pos.Line == 0 {
			t.Errorf("%s has no place", p)
		}
	}
	return invalid.Problems
}

// readsAllInputs reports whether a node takes inputs of any name, because it passes all of them
// to a model or a tool.
func readsAllInputs(n map[string]any) bool {
	with, _ := n["with"].(map[string]any)
	return with["prompt"] != nil || n["type"] == "tool" && with["arguments"] == nil
}

func TestMisspeltInputIsRejected(t *testing.T) {
	t.Parallel()
	c := builtin.Catalogue() // schemas of settings are compiled once
	for _, spec := range c.Specs() {
		tried := 0
		for _, e := range spec.Examples {
			doc := normalOf(t, e, c)
			nodesOf(doc, func(n map[string]any) {
				if n["type"] != spec.Name {
					return
				}
				in, _ := n["in"].(map[string]any)
				if in == nil {
					in = map[string]any{}
					n["in"] = in
				}
				in["zzz"] = 1
				problems := problemsOf(t, doc, c)
				delete(in, "zzz")
				if slices.ContainsFunc(problems, func(p flow.Problem) bool { return p.Code == flow.CodeUnreadInput || p.Code == flow.CodeUnknownPort }) {
					tried++
				} else if !readsAllInputs(n) {
					t.Errorf("%s, example %q: an input zzz is accepted (%v)", spec.Name, e.Name, problems)
				}
			})
		}
		if tried == 0 && len(spec.Examples) > 0 {
			t.Errorf("no example of %s could be tried", spec.Name)
		}
	}
}

// TestMisspeltSettingIsRejected misspells every setting of a node at once: each must be
// reported by its name.
func TestMisspeltSettingIsRejected(t *testing.T) {
	t.Parallel()
	c := builtin.Catalogue()
	for _, spec := range c.Specs() {
		closed(t, spec.Name, spec.Settings)
		for _, e := range spec.Examples {
			doc := normalOf(t, e, c)
			nodesOf(doc, func(n map[string]any) {
				if n["type"] == spec.Name {
					misspellSettings(t, spec, e.Name, n, func() []flow.Problem { return problemsOf(t, doc, c) })
				}
			})
		}
	}
}

// misspellSettings misspells all settings of a node of an example.
func misspellSettings(t *testing.T, spec *flow.TypeSpec, example string, n map[string]any, problemsOf func() []flow.Problem) {
	t.Helper()
	with, _ := n["with"].(map[string]any)
	if with == nil {
		with = map[string]any{}
		n["with"] = with
	}
	names := append([]string{"zzz"}, settingsOf(spec)...)
	for _, name := range names {
		with[name+"z"] = true
	}
	problems := problemsOf()
	for _, name := range names {
		if !slices.ContainsFunc(problems, func(p flow.Problem) bool {
			return p.Code == flow.CodeUnknownSetting && strings.Contains(p.Message, "has no setting "+name+"z")
		}) {
			t.Errorf("%s, example %q: a setting %sz is accepted", spec.Name, example, name)
		}
		delete(with, name+"z")
	}
}

func settingsOf(s *flow.TypeSpec) []string {
	properties, _ := s.Settings["properties"].(map[string]any)
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// closed reports every object among the settings that has named members and
// takes others too.
func closed(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if properties != nil && schema["additionalProperties"] != false {
		t.Errorf("%s takes any key: additionalProperties is %v", at, schema["additionalProperties"])
	}
	for name, s := range properties {
		if s, ok := s.(map[string]any); ok {
			closed(t, at+"."+name, s)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if s, ok := schema[key].(map[string]any); ok {
			closed(t, at+"."+key, s)
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := schema[key].([]any)
		for i, s := range list {
			if s, ok := s.(map[string]any); ok {
				closed(t, fmt.Sprintf("%s.%s[%d]", at, key, i), s)
			}
		}
	}
}

func TestUnreadInputErrorSuggestsTheNearestName(t *testing.T) {
	for text, want := range map[string]string{
		`{type: llmRequest, in: {mesage: hi}}`:                                                      "did you mean message?",
		`{type: agent, in: {message: hi, tool: x}}`:                                                 "did you mean tools?",
		`{type: wait, in: {vlaue: 1}, with: {for: 1s}}`:                                             "did you mean value?",
		`{type: template, in: {nmae: x}, with: {text: "{{ inputs.name }}"}}`:                        "did you mean name?",
		`{type: action, in: {amuont: 1}, with: {code: "context['a'] = inputs['amount']"}}`:          "did you mean amount?",
		`{type: action, in: {x: 1}, with: {code: "context['a'] = inputs.get('amount')"}}`:           "read it as inputs.x, or remove it; to order nodes use after:",
		`{type: action, in: {x: 1}, with: {code: "for k in inputs: context[k] = inputs[k]"}}`:       "",
		`{type: action, in: {x: 1}, with: {prompt: "Add them up."}}`:                                "",
		`{type: transform, in: {x: 1}, with: {expr: size(inputs)}}`:                                 "",
		`{type: transform, in: {x: 1}, with: {expr: "has(inputs.x)"}}`:                              "",
		`{type: llmRequest, in: {message: hi, tone: dry}, with: {system: "Be {{ inputs.tone }}."}}`: "",
		`{type: loop, in: {drfat: x}, with: {max: 1, body: {nodes: {a: {type: template, in: {d: "{{ inputs.draft }}"}, with: {text: "{{ inputs.d }}"}}}, outputs: {draft: "{{ a.text }}"}}}}`: "did you mean draft?",
	} {
		_, err := flow.Parse("f.yaml", []byte("weir: 1\nname: f\nnodes:\n  n: "+text+"\n"), builtin.Catalogue())
		var invalid *flow.Invalid
		if !errors.As(err, &invalid) {
			if want != "" {
				t.Errorf("%s is accepted", text)
			}
			continue
		}
		i := slices.IndexFunc(invalid.Problems, func(p flow.Problem) bool { return p.Code == flow.CodeUnreadInput })
		if want == "" && i >= 0 || want != "" && (i < 0 || invalid.Problems[i].Hint != want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
