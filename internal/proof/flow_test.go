package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
	"github.com/weir-run/weir/tool"
)

// airlineFlow is a conversation with parallel calls, a failing tool, an answer by a
// schema that has to be repaired, and a person who continues.
const airlineFlow = `
weir: 1
name: desk
context: {model: MODEL, system: You work at the desk of an airline.}
nodes:
  box: {type: tools}
  first: {type: llmRequest, in: {message: "Where are my bags EZE1 and EZE2? Übermorgen fliege ich. ✈", tools: "{{ box.tools }}"}}
  sum:
    type: llmRequest
    after: first
    in: {message: "As figures, please."}
    with:
      schema: {type: object, required: [bags], additionalProperties: false, properties: {bags: {type: integer}}}
  ask: {type: userInput, after: sum, with: {history: true, prompt: "What else?"}}
  last: {type: llmRequest, in: {context: "{{ ask.context }}", tools: "{{ box.tools }}"}}
outputs: {bags: "{{ sum.value }}", text: "{{ last.text }}"}
`

// airlineTurns returns what the model says.
func airlineTurns() []llmtest.Turn {
	bag := func(id, number string) convo.Call {
		return convo.Call{ID: id, Name: "bag", Arguments: `{"number":"` + number + `"}`}
	}
	return []llmtest.Turn{
		{Text: "I look.", Calls: []convo.Call{bag("call_a", "EZE1"), bag("call_b", "EZE2")}},
		{Calls: []convo.Call{bag("call_c", "lost")}},
		{Text: "One is in Córdoba, one in Ezeiza: 🧳🧳"},
		{Text: `{"bags": "two"}`},
		{Text: `{"bags": 2}`},
		{Calls: []convo.Call{bag("call_d", "EZE1")}},
		{Text: "Still in Córdoba."},
	}
}

// TestFlowGivesSameHistoryOnEveryAPI runs the flow against servers that
// speak the vendors' wires, and compares what is in the history, run and
// requests: all but native blocks, whose they are, and reported tokens.
func TestFlowGivesSameHistoryOnEveryAPI(t *testing.T) {
	t.Parallel()
	apis := []struct {
		name, model string
		provider    func(s *llmtest.Server) llm.Provider
	}{
		{"responses", "gpt-4o", func(s *llmtest.Server) llm.Provider {
			return openai.New(openai.Options{BaseURL: s.URL, API: openai.Responses})
		}},
		{"chat", "gpt-4o", func(s *llmtest.Server) llm.Provider {
			return openai.New(openai.Options{BaseURL: s.URL, API: openai.Chat})
		}},
		{"anthropic", "claude-sonnet-4-5", func(s *llmtest.Server) llm.Provider {
			return anthropic.New(anthropic.Options{BaseURL: s.Root})
		}},
		{"gemini", "gemini-3-pro", func(s *llmtest.Server) llm.Provider {
			return gemini.New(gemini.Options{BaseURL: s.Root})
		}},
	}
	var histories []string
	for _, w := range apis {
		s := llmtest.New(t, airlineTurns()...)
		got := runAirline(t, w.provider(s), w.model)
		if n := len(s.Requests()); n != len(airlineTurns()) {
			t.Errorf("%s: %d requests, want %d", w.name, n, len(airlineTurns()))
		}
		histories = append(histories, got)
	}
	want := strings.TrimPrefix(`
user "Where are my bags EZE1 and EZE2? Übermorgen fliege ich. ✈"
assistant "I look." call_a=bag{"number":"EZE1"} call_b=bag{"number":"EZE2"}
tool of bag "EZE1 is in Ezeiza"
tool of bag "EZE2 is in Ezeiza"
assistant "" call_c=bag{"number":"lost"}
tool of bag failed "no bag has the number lost"
assistant "One is in Córdoba, one in Ezeiza: 🧳🧳"
user "As figures, please."
assistant "{\"bags\": 2}"
user "And now?"
assistant "" call_d=bag{"number":"EZE1"}
tool of bag "EZE1 is in Ezeiza"
assistant "Still in Córdoba."
outputs [{bags map[bags:2]} {text Still in Córdoba.}]
`, "\n")
	for i, w := range apis {
		if histories[i] != want {
			t.Errorf("by %s the history is\n%s\nwant\n%s", w.name, histories[i], want)
		}
	}
}

// runAirline runs the flow and returns its history and outputs.
func runAirline(t *testing.T, p llm.Provider, model string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := weir.Open(weir.Options{
		Providers: map[string]weir.Provider{"vendor": p},
		Tools: []*tool.Tool{{
			Name: "bag", Description: "Where a bag is.",
			Parameters: map[string]any{
				"type": "object", "required": []any{"number"}, "properties": map[string]any{"number": map[string]any{"type": "string"}},
			},
			Call: func(_ context.Context, c tool.Call) (string, error) {
				number := strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(c.Arguments, " ", ""), `{"number":"`), `"}`)
				if number == "lost" {
					return "", fmt.Errorf("no bag has the number %s", number)
				}
				return number + " is in Ezeiza", nil
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(context.WithoutCancel(ctx)) }()
	f, err := w.Parse("desk.yaml", []byte(strings.Replace(airlineFlow, "MODEL", "vendor/"+model, 1)))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(ctx, f, weir.Start{ID: "desk"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Wait(ctx)
	if err != nil || res.Status != engine.Paused {
		t.Fatalf("the run is %s: %v, %v", res.Status, res.Error, err)
	}
	if run, err = w.Answer(ctx, "desk", res.Interrupts[0].ID, "And now?", "somebody"); err != nil {
		t.Fatal(err)
	}
	if res, err = run.Wait(ctx); err != nil || res.Status != engine.Completed {
		t.Fatalf("the run is %s: %v, %v", res.Status, res.Error, err)
	}
	return written(t, w) + fmt.Sprintf("outputs %v\n", res.Outputs)
}

// written returns the main context a line a message; results must pair.
func written(t *testing.T, w *weir.Weir) string {
	t.Helper()
	view, err := w.Inspect(t.Context(), "desk", 0)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := view.Contexts[engine.MainContext].Messages()
	if err != nil {
		t.Fatal(err)
	}
	if err := convo.Validate(ms); err != nil {
		t.Error(err)
	}
	var b strings.Builder
	var open []convo.Call
	for _, m := range ms {
		fmt.Fprint(&b, m.Role)
		if m.Role == convo.Tool {
			at := slices.IndexFunc(open, func(c convo.Call) bool { return c.ID == m.CallID })
			if at != 0 {
				t.Errorf("the result of %s is not that of the next call", m.CallID)
			}
			open = open[1:]
			fmt.Fprintf(&b, " of %s", m.Name)
		}
		if m.Failed {
			fmt.Fprint(&b, " failed")
		}
		fmt.Fprintf(&b, " %q", m.Text)
		for _, c := range m.Calls {
			fmt.Fprintf(&b, " %s=%s%s", c.ID, c.Name, c.Arguments)
		}
		fmt.Fprintln(&b)
		open = append(open, m.Calls...)
	}
	return b.String()
}
