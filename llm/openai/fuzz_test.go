package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/openai"
)

// canned answers every request with the same bytes.
type canned struct{ kind, body string }

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.kind}},
		Body: io.NopCloser(strings.NewReader(c.body)), Request: req,
	}, nil
}

// checkAny makes one call that is answered with body, and checks what holds of
// any answer and any failure.
func checkAny(t *testing.T, api, kind, body string) {
	t.Helper()
	p := openai.New(openai.Options{
		BaseURL: "http://fuzz.test/v1", API: api, HTTPClient: &http.Client{Transport: canned{kind, body}},
	})
	var chunks []llm.Chunk
	res, err := p.Generate(t.Context(), hello(), func(c llm.Chunk) { chunks = append(chunks, c) })
	if err != nil {
		var e *llm.Error
		if !errors.As(err, &e) || e.Code == "" || e.Message == "" || res != nil {
			t.Fatalf("the failure is a %T: %v", err, err)
		}
		return
	}
	wantSaid(t, res, chunks, res.Message.Text, res.Message.Reasoning)
	if !slices.Contains([]string{"end", "calls", "length", "filter"}, res.Stop) || (res.Stop == "calls" && len(res.Message.Calls) == 0) {
		t.Errorf("stop %q with %d calls", res.Stop, len(res.Message.Calls))
	}
	for _, c := range res.Message.Calls {
		if c.ID == "" || c.Name == "" || c.Arguments == "" {
			t.Errorf("the call is %+v", c)
		}
	}
	if (res.Message.Native != nil) != (res.Message.Provider != "") || (res.Message.Native != nil && !json.Valid(res.Message.Native)) {
		t.Errorf("the native blocks of %q are %q", res.Message.Provider, res.Message.Native)
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
