package openai_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
)

// checkAny makes one call that is answered with body, and checks what holds of
// any answer and any failure.
func checkAny(t *testing.T, api, kind, body string) {
	t.Helper()
	p := openai.New(openai.Options{
		BaseURL: "http://fuzz.test/v1", API: api, HTTPClient: llmtest.CannedClient(kind, body),
	})
	var chunks []llm.Chunk
	res, err := p.Generate(t.Context(), hello(), func(c llm.Chunk) { chunks = append(chunks, c) })
	if !llmtest.CheckOutcome(t, res, err, chunks) {
		return
	}
	// The answer is a history that can be sent.
	next := hello()
	next.Messages = append(next.Messages, res.Message)
	for _, c := range res.Message.Calls {
		next.Messages = append(next.Messages, convo.Message{Role: convo.Tool, CallID: c.ID, Text: "x"})
	}
	if _, err := p.Generate(t.Context(), next, nil); err != nil {
		t.Errorf("the answer cannot be sent back: %v", err)
	}
}

func FuzzAnyChatAnswer(f *testing.F) {
	for _, c := range append(framings(), contents()...) {
		f.Add("text/event-stream", strings.Join(c.raw, ""))
	}
	f.Add("text/event-stream", sse(delta(`[{"index":0,"id":"a","function":{"name":"ping","arguments":{"n":1}}}]`), chatStop))
	f.Add("application/json", `{"choices":[{"message":{"tool_calls":[{"function":{"name":"x","arguments":"{"}}]},"finish_reason":"length"}]}`)
	f.Fuzz(func(t *testing.T, kind, body string) { checkAny(t, openai.Chat, kind, body) })
}

func FuzzAnyResponsesAnswer(f *testing.F) {
	f.Add("text/event-stream", sse(textDelta, textDone, noOutput))
	f.Add("text/event-stream", sse(textDelta, completed("["+said("Hello")+"]")))
	f.Add("text/event-stream", sse(completed(`[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},`+
		`{"type":"function_call","status":"incomplete","call_id":"a","name":"ping","arguments":""}]`)))
	f.Add("application/json", `{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[`+said("x")+`]}`)
	f.Fuzz(func(t *testing.T, kind, body string) { checkAny(t, openai.Responses, kind, body) })
}
