package anthropic_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/llmtest"
)

func FuzzAnyAnswer(f *testing.F) {
	for _, t := range []llmtest.Turn{
		raw(start, textOn, textHe, textLlo, blockOff, ended, stopped),
		raw(start, toolOn("0", "a", "{}"), blockFields("0", `{\"n\":1}`), blockOff, ending("tool_use"), stopped),
		raw(start, toolOn("0", "", `{"n":1}`), ending("max_tokens"), stopped),
		raw(start, toolOn("0", "b/c", "{}"), blockFields("0", `{oops`), ending("refusal"), stopped),
		raw(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`),
		interleaved(),
	} {
		f.Add("text/event-stream", strings.Join(t.Raw, ""))
	}
	f.Add("application/json", `{"id":"1","content":[{"type":"thinking","thinking":"x","signature":"y"},{"type":"tool_use","name":"x","input":[]}],"stop_reason":"tool_use"}`)
	f.Add("application/json", `{"content":[{"type":"text","text":"x","citations":[{}]},{"type":"text","text":" "}],"stop_reason":"pause_turn","usage":{"input_tokens":-1}}`)
	f.Fuzz(func(t *testing.T, kind, body string) {
		p := anthropic.New(anthropic.Options{BaseURL: "http://fuzz.test", HTTPClient: llmtest.CannedClient(kind, body)})
		var chunks []llm.Chunk
		res, err := p.Generate(t.Context(), hello(), func(c llm.Chunk) { chunks = append(chunks, c) })
		if llmtest.CheckOutcome(t, res, err, chunks) {
			sendable(t, p, res.Message)
		}
	})
}

// sendable fails unless an answer is a history that can be sent.
func sendable(t *testing.T, p *anthropic.Provider, m convo.Message) {
	t.Helper()
	next := hello()
	next.Messages = append(next.Messages, m)
	for _, c := range m.Calls {
		next.Messages = append(next.Messages, convo.Message{Role: convo.Tool, CallID: c.ID, Text: "x"})
	}
	next.Messages = append(next.Messages, user("And?"))
	body, err := p.Body(next)
	if err != nil {
		t.Fatalf("the answer cannot be sent back: %v", err)
	}
	if m.Native != nil {
		return // verbatim, whatever the server made of it
	}
	for _, problem := range llmtest.CheckAnthropic(body) {
		t.Errorf("what is sent back breaks a rule: %s\n%s", problem, body)
	}
}
