package builtin_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// answerPlace is where a structured answer is read.
type answerPlace struct {
	name, flow string
	answer     string // as JSON, which the model is asked for
	more       []string
	want       any // the output r
}

// answerPlaces returns all node types that read structured answers; the agents of code nodes
// are in node/codegen.
func answerPlaces() []answerPlace {
	const with = "schema: {type: object, required: [amount], properties: {amount: {type: number}}}"
	one := func(typ, settings, out string) string {
		return fmt.Sprintf("weir: 1\nname: one\ncontext: {model: script/demo}\nnodes:\n  n:\n    type: %s\n    in: {message: Hm.}\n    with:\n      %s\noutputs: {r: \"{{ n.%s }}\"}\n",
			typ, strings.ReplaceAll(settings, "\n", "\n      "), out)
	}
	return []answerPlace{
		{"llmRequest", one("llmRequest", with, "value.amount"), `{"amount": 3}`, nil, int64(3)},
		{"extract", one("extract", with, "amount"), `{"amount": 3}`, nil, int64(3)},
		{"agent", one("agent", with, "value.amount"), `{"amount": 3}`, nil, int64(3)},
		{"the plan of an agent", one("agent", "mode: plan", "text"), `{"steps": [{"say": "Look."}]}`, []string{"looked", "done"}, "done"},
		{"categorizer", one("categorizer", "categories: [bill, order]\ndefault: order", "category"), `{"category": "bill"}`, nil, "bill"},
	}
}

// answerForms are ways to write the JSON that was asked for.
func answerForms() map[string]func(string) string {
	const fence = "```"
	return map[string]func(string) string{
		"plain":                    func(s string) string { return s },
		"a byte order mark":        func(s string) string { return "\uFEFF" + s },
		"a fence":                  func(s string) string { return fence + "json\n" + s + "\n" + fence },
		"a fence alone":            func(s string) string { return fence + "\n" + s + "\n" + fence },
		"a fence that is open":     func(s string) string { return fence + "json\n" + s },
		"nested fences":            func(s string) string { return fence + "md\n" + fence + "json\n" + s + "\n" + fence + "\n" + fence },
		"prose before":             func(s string) string { return "Sure! " + s },
		"prose behind":             func(s string) string { return s + "\n\nI hope that this helps." },
		"braces in prose":          func(s string) string { return "Of {these} and {those}: " + s },
		"the word json":            func(s string) string { return "json " + s },
		"reasoning":                func(s string) string { return "<think>Is it {\"amount\": 9}?</think>" + s },
		"reasoning without a head": func(s string) string { return "Is it {\"category\": \"order\"}?</think>" + s },
		"a comma too many":         func(s string) string { return strings.TrimSuffix(s, "}") + ",}" },
		"twice the same":           func(s string) string { return s + " " + s },
		"a member in upper case":   strings.ToUpper,
	}
}

// unreadableAnswers are answers that have no one meaning.
func unreadableAnswers() map[string]string {
	return map[string]string{
		"empty": "", "blank": " \n", "a refusal": "I cannot help with that.", "broken": `{"amount": 3`, "reasoning alone": "<think>hm",
		"a broken object beside": `{"amount" 3} {"amount": 3}`, "another object": `{"x": {"y": 1}}`, "two values": `{"amount": 3} {"amount": 4}`,
		"a list": `[1, 2]`, "a sentence": "It is not a bill.",
	}
}

func TestStructuredAnswersAreReadInEveryForm(t *testing.T) {
	for _, p := range answerPlaces() {
		for name, form := range answerForms() {
			text := form(p.answer)
			if name == "a member in upper case" && p.name == "the plan of an agent" {
				continue // a word of the plan's schema is no value of it
			}
			var l effectLog
			r := weirtest.Flow(t, p.flow, weirtest.Case{Tools: []*tool.Tool{l.tool("look", "")}, Script: weirtest.Says(append([]string{text}, p.more...)...)})
			if r.Status != engine.Completed || !reflect.DeepEqual(r.Outputs["r"], p.want) || len(r.Requests) != 1+len(p.more) {
				t.Errorf("%s, %s: the run %s after %d calls with %v: %v", p.name, name, r.Status, len(r.Requests), r.Outputs, r.Error)
			}
		}
	}
}

func TestUnreadableAnswerIsRepairedOnceThenFails(t *testing.T) {
	for _, p := range answerPlaces() {
		for name, bad := range unreadableAnswers() {
			t.Run(p.name+", "+name, func(t *testing.T) { checkRejects(t, p, bad) })
		}
	}
}

// checkRejects has a place read a bad answer: once, twice, and twice before a retry.
func checkRejects(t *testing.T, p answerPlace, bad string) {
	t.Helper()
	says := func(texts ...string) []weirtest.Turn { return weirtest.Says(append(texts, p.more...)...) }
	r := weirtest.Flow(t, p.flow, weirtest.Case{Script: says(bad, p.answer)})
	if r.Status != engine.Completed || !reflect.DeepEqual(r.Outputs["r"], p.want) {
		t.Errorf("repaired: the run %s with %v: %v", r.Status, r.Outputs, r.Error)
	}
	if e := r.Effects[0]; e.Error == nil || e.Error.Code != engine.CodeModelAnswer || e.Result == nil {
		t.Errorf("the rejected answer is recorded as %+v", e)
	}
	r = weirtest.Flow(t, p.flow, weirtest.Case{Script: says(bad, bad)})
	if r.Error == nil || r.Error.Code != engine.CodeModelAnswer || len(r.Requests) != 2 {
		t.Errorf("twice: the run %s with %v: %v", r.Status, r.Outputs, r.Error)
	}
	again := strings.Replace(p.flow, "    with:", "    retry: {attempts: 2, backoff: 1ms, on: [model_answer_invalid]}\n    with:", 1)
	r = weirtest.Flow(t, again, weirtest.Case{Script: says(bad, bad, p.answer)})
	if r.Status != engine.Completed || !reflect.DeepEqual(r.Outputs["r"], p.want) {
		t.Errorf("tried again: the run %s with %v: %v", r.Status, r.Outputs, r.Error)
	}
	if key := r.Effects[2].Key; !strings.HasSuffix(key, "#3") || len(r.Requests) != 3+len(p.more) {
		t.Errorf("the third answer was asked for as %s, after %d calls", key, len(r.Requests))
	}
}

// TestAcceptedAnswerIsNeverRequestedAgain: an agent's first answer is rejected and
// repaired, its tool runs, its last answer is rejected twice; the second attempt asks
// for the last answer alone.
func TestAcceptedAnswerIsNeverRequestedAgain(t *testing.T) {
	var l effectLog
	text := strings.Replace(answerPlaces()[2].flow, "    with:", "    retry: {attempts: 2, backoff: 1ms, on: [model_answer_invalid]}\n    with:", 1)
	text = strings.Replace(text, "{message: Hm.}", "{message: Hm., tools: [look]}", 1)
	good := weirtest.Says(`{"amount": 3}`)[0]
	r := weirtest.Flow(t, text, weirtest.Case{Tools: []*tool.Tool{l.tool("look", "")}, Script: []weirtest.Turn{
		weirtest.Says("no")[0], weirtest.Calls("look", nil), weirtest.Says("never")[0], weirtest.Says("no")[0], good,
	}})
	var keys []string
	for _, e := range r.Effects {
		keys = append(keys, strings.TrimPrefix(e.Key, "n/"))
	}
	if want := []string{"model#1", "model#2", "tool#1", "model#3", "model#4", "model#5"}; r.Status != engine.Completed || !reflect.DeepEqual(keys, want) {
		t.Errorf("the run %s with the effects %q: %v", r.Status, keys, r.Error)
	}
	if r.Usage.Calls != 5 {
		t.Errorf("%d calls are counted, expected 5: rejected answers cost too", r.Usage.Calls)
	}
}
