package cli

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
)

func TestNodeSummaryIsItsAnswer(t *testing.T) {
	t.Parallel()
	trace := engine.Named{Name: "trace", Value: []any{map[string]any{"role": "assistant"}}}
	for name, c := range map[string]struct {
		outputs engine.Values
		want    string
	}{
		"an agent's text beside its trace": {engine.Values{{Name: "context", Value: "main"}, trace, {Name: "text", Value: "Done."}}, "Done."},
		"an empty text":                    {engine.Values{{Name: "text", Value: ""}, {Name: "value", Value: int64(3)}}, "3"},
		"another name":                     {engine.Values{{Name: "greeting", Value: "Hello"}, {Name: "n", Value: int64(3)}}, "Hello"},
		"nothing":                          {engine.Values{{Name: "text", Value: ""}}, ""},
	} {
		if got := summaryOf(c.outputs); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestBudgetQuestionAcceptsIncrease(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		`It is used up. Answer with what to add to it, such as {"maxCalls": 10}, or with "stop".`: `{"maxCalls": 10}`,
		"It is used up.": `{"maxTokens": 10000}`, // an earlier version's
	} {
		if got := exampleAnswer(engine.Interrupt{Kind: engine.AwaitBudget, Prompt: prompt}); got != want {
			t.Errorf("%q: got %s, want %s", prompt, got, want)
		}
	}
}

func TestViewSaysWhenNothingWasOmitted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nodeType, call, want string }{
		{"llmRequest", "talk#2/say/model#1", "all of the context"},
		{"llmRequest", "say/summary#1", "to be summarised"},
		{"categorizer", "sort/model#1", "nothing of the context beside it"},
	} {
		p, _ := newTypingCLI("")
		var out strings.Builder
		p.out = &out
		w := &viewPrinter{cli: p, st: p.styleFor(&out), nodeType: c.nodeType}
		if err := w.call(&app.CallReport{Call: c.call, Sent: []byte(`{"messages":[]}`)}); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s of %s: %v\n%s", c.call, c.nodeType, err, out.String())
		}
	}
}

func TestViewListsMessagesKeptByProvider(t *testing.T) {
	t.Parallel()
	p, _ := newTypingCLI("")
	var out strings.Builder
	p.out = &out
	w := &viewPrinter{cli: p, st: p.styleFor(&out)}
	c := &app.CallReport{Call: "say/model#1", Sent: []byte(`{"messages":[]}`), Manifest: map[string]any{"held": int64(2), "to": int64(3)}}
	if err := w.call(c); err != nil || !strings.Contains(out.String(), "the first 2 messages below: the vendor keeps them") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
