package flow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/weir-run/weir/flow"
)

const keyedFlow = `
weir: 1
name: keys
context: {model: p/m%s}
%s
nodes:
  a: {type: llmRequest%s}
`

func TestInvalidBudgetsAndViewsAreReportedWithPosition(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t)
	for _, c := range []struct{ context, flow, node string }{
		{"", "budget: {maxCost: .nan}", ""},
		{"", "budget: {maxCost: .inf}", ""},
		{"", "budget: {maxCost: -.inf}", ""},
		{"", "budget: {maxCost: 0}", ""},
		{"", "budget: {maxCost: '5'}", ""},
		{"", "budget: {maxCost: 1000001}", ""},
		{"", "budget: {maxTokens: 0}", ""},
		{"", "budget: {maxTokens: -1}", ""},
		{"", "budget: {maxTokens: 1.5}", ""},
		{"", "budget: {maxTokens: 99999999999999999999}", ""},
		{"", "budget: {maxCalls: true}", ""},
		{"", "budget: {}", ""},
		{"", "budget: {onLimit: fail}", ""},
		{"", "budget: {maxCalls: 1, onLimit: stop}", ""},
		{"", "budget: {maxCalls: 1, more: 1}", ""},
		{"", "budget: 5", ""},
		{"", "budget: [1]", ""},
		{"", "budget: null", ""},
		{"", "budget: {maxCalls: null}", ""},
		{"", "", ", budget: {maxCalls: 0}"},
		{"", "", ", budget: {window: 5}"},
		{"", "", ", budget: x"},
		{", view: {low: 0}", "", ""},
		{", view: {low: 101}", "", ""},
		{", view: {keepResults: 0}", "", ""},
		{", view: {keepResults: -2}", "", ""},
		{", view: {keepResults: 1.5}", "", ""},
		{", view: {strategy: drop}", "", ""},
		{", view: {strategy: 1}", "", ""},
		{", view: {more: 1}", "", ""},
		{", view: window", "", ""},
		{", view: {summary: -5}", "", ""},
		{", view: {model: [a]}", "", ""},
		{", history: both", "", ""},
		{", history: true", "", ""},
		{", view: {maxResult: x}", "", ""},
		{", view: {keepResults: null}", "", ""},
		{", view: null", "", ""},
		{", view: {low: null}", "", ""},
		{", view: {summary: 50}", "", ""},
		{", view: {model: a/b}", "", ""},
		{", view: {strategy: all, low: 50}", "", ""},
		{", view: {strategy: all, keepResults: 2}", "", ""},
		{", view: {strategy: all, maxResult: 500}", "", ""},
		{", view: {strategy: all, summary: 50}", "", ""},
		{", view: {strategy: all, model: a/b}", "", ""},
		{", view: {strategy: window, summary: 50}", "", ""},
		{", view: {strategy: window, model: a/b}", "", ""},
	} {
		text := fmt.Sprintf(keyedFlow, c.context, c.flow, c.node)
		bad := problemsOf(t, "f.yaml", text)
		if len(bad) == 0 {
			t.Errorf("%+v is taken", c)
		}
		for _, p := range bad {
			if p.Pos.Line < 4 || p.Pos.Column < 1 {
				t.Errorf("%+v: %+v", c, p)
			}
		}
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			continue
		}
		if b, err := json.Marshal(texts(v)); err == nil {
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			if err == nil && schema.Validate(doc) == nil {
				t.Errorf("the schema takes %+v", c)
			}
		}
	}
}

func TestBudgetsAndViewsSurviveTheNormalFormAndCount(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t)
	seen := map[string]string{}
	for _, c := range []struct{ context, flow, node string }{
		{"", "", ""},
		{"", "budget: {maxCost: 0.0000001}", ""},
		{"", "budget: {maxCost: 5}", ""},
		{"", "budget: {maxCost: 1000000, onLimit: branch}", ""},
		{"", "budget: {maxTokens: 1000000000000}", ""},
		{"", "budget: {maxCalls: 1, onLimit: pause}", ""},
		{"", "budget: {maxCalls: 1, onLimit: fail}", ""},
		{"", "", ", budget: {maxCalls: 1}"},
		{"", "", ", budget: {maxCalls: 1, maxTokens: 1, maxCost: 1.5}"},
		{", view: {low: 1}", "", ""},
		{", view: {keepResults: -1}", "", ""},
		{", view: {strategy: summary, summary: 5, model: a/b}", "", ""},
		{", view: {maxResult: 1}", "", ""},
		{", view: {strategy: window, low: 50, keepResults: 2, maxResult: 9}", "", ""},
		{", history: server", "", ""},
		{", history: client", "", ""},
	} {
		f := parse(t, "f.yaml", fmt.Sprintf(keyedFlow, c.context, c.flow, c.node))
		text := normal(t, f)
		back := parse(t, "b.json", text)
		if !reflect.DeepEqual(withoutPositions(f), withoutPositions(back)) || f.Fingerprint() != back.Fingerprint() {
			t.Errorf("%+v became %s", c, text)
		}
		fitsSchema(t, schema, text, []byte(text))
		if other, same := seen[f.Fingerprint()]; same {
			t.Errorf("%+v and %s have one fingerprint", c, other)
		}
		seen[f.Fingerprint()] = fmt.Sprint(c)
	}
}

func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := flow.Schema(testCatalogue())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("flow.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("flow.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
