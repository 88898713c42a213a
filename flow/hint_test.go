package flow_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
)

// repeatsList reports whether the hint of a problem lists what its message has listed.
func repeatsList(p flow.Problem) bool {
	_, list, ok := strings.Cut(p.Hint, "available: ")
	if !ok {
		return false
	}
	said := map[string]bool{}
	for _, w := range regexp.MustCompile(`[\w.-]+`).FindAllString(p.Message, -1) {
		said[strings.TrimRight(w, ".")] = true
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, ", ..."), ", ") {
		if !said[name] {
			return false
		}
	}
	return true
}

// TestAHintDoesNotRepeatTheListOfItsMessage gives names that are near no other, in each place that knows which there are,
// and reads every invalid flow of the corpus.
func TestAHintDoesNotRepeatTheListOfItsMessage(t *testing.T) {
	for name, data := range invalidFiles(t) {
		for _, p := range problemsOf(t, name, data) {
			if repeatsList(p) {
				t.Errorf("%s: %s\n\thint: %s", name, p.Message, p.Hint)
			}
		}
	}
	for what, c := range map[string]struct{ text, known string }{
		"key":           {"nodes: {a: {type: transform, zzzzzz: 1, with: {expr: '1'}}}", "retry"},
		"choice":        {"nodes: {a: {type: transform, after: b, join: zzzzzz, with: {expr: '1'}}, b: {type: transform, with: {expr: '1'}}}", "any"},
		"reducer":       {"state: {k: {reducer: zzzzzz}}\nnodes: {a: {type: transform, with: {expr: '1'}}}", "append"},
		"run member":    {"nodes: {a: {type: transform, with: {expr: 'run.zzzzzz'}}}", "session"},
		"output port":   {"nodes: {a: {type: transform, with: {expr: '1'}}}\noutputs: {o: '{{ a.zzzzzz }}'}", "value"},
		"input port":    {"nodes: {a: {type: llmRequest, in: {zzzzzz: x}}}", "message"},
		"edge":          {"nodes: {a: {type: transform, with: {expr: '1'}}, b: {type: llmRequest}}\nedges: [{from: a.value, to: b.zzzzzz}]", "message"},
		"node":          {"nodes: {first: {type: transform, with: {expr: '1'}}, b: {type: transform, after: zzzzzz, with: {expr: '1'}}}", "first"},
		"flow input":    {"inputs: {topic: text}\nnodes: {a: {type: transform, with: {expr: 'run.inputs.zzzzzz + run.inputs.topic'}}}", "topic"},
		"fallback code": {"context: {models: [openai/gpt-5-mini, openai/gpt-5], on: [zzzzzz]}\nnodes: {a: {type: transform, with: {expr: '1'}}}", "model_timeout"},
		"settings":      {"nodes: {a: {type: transform, with: {expr: 'zzzzzz + 1'}}}", "inputs"},
		"artifact":      {"nodes: {a: {type: transform, artifacts: [{type: Table, name: '{{ zzzzzz }}'}], with: {expr: '1'}}}", "outputs"},
		"artifact type": {"nodes: {a: {type: transform, artifacts: [{type: zzzzzz, data: '{{ outputs.value }}'}], with: {expr: '1'}}}", "Table"},
	} {
		problems, found := problemsOf(t, "flow.yaml", "weir: 1\nname: f\n"+c.text+"\n"), false
		for _, p := range problems {
			if !strings.Contains(p.Message, "zzzzzz") {
				continue
			}
			found = true
			if inMessage, inHint := strings.Contains(p.Message, c.known), strings.Contains(p.Hint, c.known); inMessage == inHint || repeatsList(p) {
				t.Errorf("%s: %s is named in the message %t, in the hint %t: %s\n\thint: %s", what, c.known, inMessage, inHint, p.Message, p.Hint)
			}
		}
		if !found {
			t.Errorf("%s: no problem names zzzzzz: %v", what, problems)
		}
	}
}
