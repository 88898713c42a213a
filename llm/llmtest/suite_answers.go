package llmtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

func testText(t *testing.T, x *conformanceTest) {
	x.Script(Text("The gate is open, the water falls."))
	h := x.ask(t, say("How is the gate?"))
	if h.Message.Text != "The gate is open, the water falls." {
		t.Errorf("the answer is %q", h.Message.Text)
	}
	if n := len(h.chunks); n < 5 {
		t.Errorf("it came in %d pieces", n)
	}
	if h.Stop != "end" || h.ID == "" || h.Model != x.subject.Model {
		t.Errorf("stop %q, id %q, model %q", h.Stop, h.ID, h.Model)
	}
}

func testUsage(t *testing.T, x *conformanceTest) {
	want := llm.Usage{Input: 1200, Cached: 1024, Output: 77, Reasoning: 64}
	x.Script(Turn{Text: "Counted.", Usage: want})
	h := x.ask(t, say("Count."))
	if h.Usage != want {
		t.Errorf("the usage is %+v, want %+v", h.Usage, want)
	}
	var received []llm.Usage
	for _, c := range h.chunks {
		if c.Usage != nil {
			received = append(received, *c.Usage)
		}
	}
	if !slices.Equal(received, []llm.Usage{want}) {
		t.Errorf("the stream reported the usage %+v, want once %+v", received, want)
	}
}

func testReasoning(t *testing.T, x *conformanceTest) {
	x.needs(t, Thinking)
	x.Script(Turn{Reasoning: "First the sluice, then the gate.", Text: "Close the gate."})
	req := say("What now?")
	req.Reasoning = "low"
	h := x.ask(t, req)
	if h.Message.Reasoning != "First the sluice, then the gate." || h.Message.Text != "Close the gate." {
		t.Errorf("reasoning %q, text %q", h.Message.Reasoning, h.Message.Text)
	}
	var last int
	for n, c := range h.chunks {
		if c.Reasoning != "" {
			last = n
		}
		if c.Text != "" && n < last {
			t.Errorf("text came before the reasoning had ended")
		}
	}
}

// after returns the history after h has answered req and the results were added.
func after(req *llm.Request, h *chunkRecorder, results ...string) []convo.Message {
	messages := append(slices.Clone(req.Messages), h.Message)
	for n, c := range h.Message.Calls {
		messages = append(messages, convo.Message{Role: convo.Tool, CallID: c.ID, Name: c.Name, Text: results[n]})
	}
	return messages
}

func testRoundTrip(t *testing.T, x *conformanceTest) {
	x.Script(
		Turn{Text: "Let me look.", Calls: []convo.Call{{ID: "call_1", Name: "weather", Arguments: `{"city": "Bern"}`}}},
		Text("It rains."),
	)
	req := say("Weather in Bern?")
	req.Tools = []llm.Tool{weather()}
	h := x.ask(t, req)
	want := []convo.Call{{ID: "call_1", Name: "weather", Arguments: `{"city": "Bern"}`}}
	if x.sameCalls(t, h.Message.Calls, want); h.Stop != "calls" {
		t.Fatalf("calls %+v, stop %q", h.Message.Calls, h.Stop)
	}
	next := &llm.Request{Messages: after(req, h, "rain, 9 degrees"), Tools: req.Tools}
	if h = x.ask(t, next); h.Message.Text != "It rains." || h.Stop != "end" {
		t.Errorf("text %q, stop %q", h.Message.Text, h.Stop)
	}
	x.sameHistory(t, next.Messages)
	equalJSON(t, "the tools", x.Last().Tools, next.Tools)
}

// reasoned makes one turn with reasoning and a call, and returns the request that would continue it.
func reasoned(t *testing.T, x *conformanceTest) *llm.Request {
	t.Helper()
	x.Script(Turn{
		Reasoning: "Ask the tool.", Usage: llm.Usage{Reasoning: 12}, Text: "Looking.",
		Calls: []convo.Call{{ID: "call_1", Name: "weather", Arguments: `{"city":"Bern"}`}},
	}, Text("It rains."))
	req := say("Weather in Bern?")
	req.Tools, req.Reasoning = []llm.Tool{weather()}, "low"
	h := x.ask(t, req)
	return &llm.Request{Messages: after(req, h, "rain"), Tools: req.Tools, Reasoning: "low"}
}

// nativeOf returns the part of an assistant's native blocks that was sent back to the server.
func nativeOf(r *Request) string {
	for _, m := range r.Messages {
		if m.Role == convo.Assistant && (m.Native != nil || m.Reasoning != "") {
			return string(m.Native) + m.Reasoning
		}
	}
	return ""
}

func testNative(t *testing.T, x *conformanceTest) {
	x.needs(t, Native)
	next := reasoned(t, x)
	if m := next.Messages[1]; m.Native == nil || m.Provider == "" || !json.Valid(m.Native) {
		t.Fatalf("the answer kept no native blocks: %q of %q", m.Native, m.Provider)
	}
	x.ask(t, next)
	if nativeOf(x.Last()) == "" {
		t.Errorf("the native blocks did not come back: %s", x.Last().Body)
	}
	x.sameHistory(t, next.Messages)
}

func testNativeChanged(t *testing.T, x *conformanceTest) {
	next := reasoned(t, x)
	next.Messages[1].Text = "Looking elsewhere."
	next.Messages[1].Reasoning = ""
	x.ask(t, next)
	if got := nativeOf(x.Last()); got != "" {
		t.Errorf("a changed message sent %q", got)
	}
	x.sameHistory(t, next.Messages)
}

func testNativeForeign(t *testing.T, x *conformanceTest) {
	for n, native := range []string{`{"signature": "abc"}`, `[]`, `null`, `"x"`, `{broken`} {
		for _, provider := range []string{"", "somebody-else", "openai", "anthropic", "gemini"} {
			x.Script(Text("Yes."))
			req := &llm.Request{Messages: []convo.Message{
				{Role: convo.User, Text: "One?"},
				{
					Role: convo.Assistant, Text: "One.", Reasoning: "hm",
					Native: json.RawMessage(native), Provider: provider,
				},
				{Role: convo.User, Text: "Two?"},
			}}
			x.ask(t, req)
			if got := nativeOf(x.Last()); got != "" {
				t.Errorf("native block %d of %q came to this vendor: %q", n, provider, got)
			}
			x.sameHistory(t, req.Messages)
		}
	}
}

func testParallel(t *testing.T, x *conformanceTest) {
	calls := []convo.Call{
		{ID: "call_b", Name: "weather", Arguments: `{"city":"Bern"}`},
		{ID: "call_a", Name: "weather", Arguments: `{"city":"Bern"}`},
		{ID: "call_c", Name: "tide", Arguments: `{"harbour":"Brest","days":[1,2,3]}`},
	}
	x.Script(Turn{Calls: calls, Piece: 1}, Text("Done."))
	req := say("Both?")
	req.Tools = []llm.Tool{weather(), {Name: "tide"}}
	h := x.ask(t, req)
	x.sameCalls(t, h.Message.Calls, calls)
	var received []convo.Call
	for _, c := range h.chunks {
		if c.Call != nil {
			received = append(received, convo.Call{ID: c.Call.ID, Name: c.Call.Name})
		}
	}
	want := []convo.Call{{ID: "call_b", Name: "weather"}, {ID: "call_a", Name: "weather"}, {ID: "call_c", Name: "tide"}}
	if !slices.Equal(received, want) {
		t.Errorf("the stream reported %+v", received)
	}
	next := &llm.Request{Messages: after(req, h, "b", "a", "c"), Tools: req.Tools}
	x.ask(t, next)
	x.sameHistory(t, next.Messages)
}

func testNoArguments(t *testing.T, x *conformanceTest) {
	x.Script(Turn{Calls: []convo.Call{{ID: "call_1", Name: "ping", Arguments: ""}}}, Text("Done."))
	req := say("Ping.")
	req.Tools = []llm.Tool{{Name: "ping"}}
	h := x.ask(t, req)
	if len(h.Message.Calls) != 1 || h.Message.Calls[0].Arguments != "{}" {
		t.Fatalf("the calls are %+v", h.Message.Calls)
	}
	x.ask(t, &llm.Request{Messages: after(req, h, "pong"), Tools: req.Tools})
}

func testCutCall(t *testing.T, x *conformanceTest) {
	x.Script(Turn{Stop: "length", Calls: []convo.Call{
		{ID: "call_1", Name: "weather", Arguments: `{"city":"Bern"}`},
		{ID: "call_2", Name: "weather", Arguments: `{"city":"Gen`},
	}}, Text("Done."))
	req := say("Weather?")
	req.Tools = []llm.Tool{weather()}
	h := x.ask(t, req)
	if h.Stop != "length" || len(h.Message.Calls) != 1 || h.Message.Calls[0].ID != "call_1" {
		t.Fatalf("stop %q, calls %+v", h.Stop, h.Message.Calls)
	}
	next := &llm.Request{Messages: after(req, h, "rain"), Tools: req.Tools}
	x.ask(t, next)
	x.sameHistory(t, next.Messages)
}

func testChoice(t *testing.T, x *conformanceTest) {
	for _, choice := range []string{"", "auto", "none", "required", "weather"} {
		x.Script(Text("Chosen."))
		req := say("Choose.")
		req.Tools, req.ToolChoice = []llm.Tool{weather()}, choice
		x.ask(t, req)
		if got := x.Last().Choice; got != choice {
			t.Errorf("the choice %q arrived as %q", choice, got)
		}
	}
	x.Script(Text("No tools."))
	req := say("Choose.")
	req.ToolChoice = "auto"
	x.ask(t, req)
}

func testSchema(t *testing.T, x *conformanceTest) {
	text := map[string]any{"type": "string"}
	schemas := []map[string]any{
		{ // closed, all required: the vendor may enforce it
			"type": "object", "additionalProperties": false,
			"properties": map[string]any{"name": text}, "required": []any{"name"},
		},
		{ // as Go code writes it
			"type": "object", "additionalProperties": false,
			"properties": map[string]any{"name": text}, "required": []string{"name"},
		},
		{"type": "object", "properties": map[string]any{"name": text}}, // open
		{ // closed, with a keyword and an inner object that are not
			"type": "object", "additionalProperties": false, "required": []any{"name", "at"},
			"properties": map[string]any{
				"name": map[string]any{"type": "string", "minLength": 1},
				"at":   map[string]any{"type": "object", "properties": map[string]any{"x": text}},
			},
		},
		{"type": "object", "title": "Not a name!", "additionalProperties": true},
	}
	for _, schema := range schemas {
		x.Script(Text(`{"name":"Weir"}`))
		req := say("Name it.")
		req.Schema = schema
		if h := x.ask(t, req); h.Message.Text != `{"name":"Weir"}` {
			t.Errorf("the answer is %q", h.Message.Text)
		}
		sent := strings.ReplaceAll(string(x.Last().Body), `\"`, `"`) // it may be sent as text
		if !strings.Contains(sent, `"properties"`) && schema["properties"] != nil {
			t.Errorf("the schema is not in the request: %s", x.Last().Body)
		}
	}
}

func testStop(t *testing.T, x *conformanceTest) {
	for _, c := range []struct{ stop, want string }{{"", "end"}, {"length", "length"}, {"filter", "filter"}} {
		x.Script(Turn{Text: "Some words", Stop: c.stop})
		if h := x.ask(t, say("Speak.")); h.Stop != c.want || h.Message.Text != "Some words" {
			t.Errorf("stop %q, text %q; want %q", h.Stop, h.Message.Text, c.want)
		}
	}
	x.Script(Turn{Refusal: "I cannot say that."})
	if h := x.ask(t, say("Speak.")); h.Stop != "filter" || h.Message.Text != "I cannot say that." {
		t.Errorf("a refusal gave stop %q and text %q", h.Stop, h.Message.Text)
	}
}
