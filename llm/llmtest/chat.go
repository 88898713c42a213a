package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// chatAPI is OpenAI's Chat Completions.
type chatAPI struct{ schema *jsonschema.Schema }

type chatBody struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	StreamOptions json.RawMessage `json:"stream_options"`
	Messages      []chatMessage   `json:"messages"`
	Tools         []struct {
		Function struct {
			llm.Tool
			Strict bool `json:"strict"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	ResponseFormat      struct {
		Type   string `json:"type"`
		Schema struct {
			Schema map[string]any `json:"schema"`
			Strict bool           `json:"strict"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning string          `json:"reasoning_content"`
	CallID    string          `json:"tool_call_id"`
	Calls     []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (w chatAPI) name() string { return "chat" }

func (w chatAPI) routes() []string { return []string{"/v1/chat/completions"} }

func (w chatAPI) key(r *http.Request) string { return bearer(r) }

func (w chatAPI) tail() int { return 2 }

func (w chatAPI) refusal(f *Failure) string { return encode(map[string]any{"error": faultBody(f)}) }

func (w chatAPI) read(_ *http.Request, body []byte, _ issuedIDs) *parsedRequest {
	r := &rules{}
	r.shape(w.schema, body)
	a := &parsedRequest{}
	var b chatBody
	if len(r.problems) == 0 {
		if err := json.Unmarshal(body, &b); err != nil {
			r.broken("%v", err)
		}
	}
	a.Model, a.streamed = b.Model, b.Stream
	var options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	if len(b.StreamOptions) > 0 {
		_ = json.Unmarshal(b.StreamOptions, &options) // the shape has checked it
		if !b.Stream {
			r.broken("stream_options is only allowed when stream is set")
		}
	}
	a.usage = options.IncludeUsage
	var strict []bool
	for _, t := range b.Tools {
		a.Tools = append(a.Tools, t.Function.Tool)
		strict = append(strict, t.Function.Strict)
	}
	r.tools(a.Tools, strict, b.ToolChoice)
	a.Choice = chosen(b.ToolChoice)
	if b.MaxTokens != nil && b.MaxCompletionTokens != nil {
		r.broken("max_tokens and max_completion_tokens are both set")
	}
	if b.ResponseFormat.Type == "json_schema" {
		r.schema("response_format", b.ResponseFormat.Schema.Schema, b.ResponseFormat.Schema.Strict)
	}
	for _, m := range b.Messages {
		a.Messages = append(a.Messages, m.message())
	}
	r.pairs(a.Messages)
	a.Problems = r.problems
	return a
}

// pairs checks that each call has a result directly after it, and that every result has a call.
func (r *rules) pairs(messages []convo.Message) {
	open := map[string]bool{}
	for n, m := range messages {
		if m.Role == convo.Tool {
			if !open[m.CallID] {
				r.broken("messages[%d]: a tool message must answer a call of the assistant's message before it; %q is not open", n, m.CallID)
			}
			delete(open, m.CallID)
			continue
		}
		for id := range open {
			r.broken("messages[%d]: the call %q must be followed by a tool message that answers it", n, id)
		}
		clear(open)
		for _, c := range m.Calls {
			if open[c.ID] {
				r.broken("messages[%d]: two calls have the id %q", n, c.ID)
			}
			open[c.ID] = true
			r.arguments(c)
		}
	}
	for id := range open {
		r.broken("the call %q is not answered", id)
	}
}

func (m chatMessage) message() convo.Message {
	out := convo.Message{Role: convo.Role(m.Role), CallID: m.CallID, Reasoning: m.Reasoning}
	out.Text, out.Parts = content(m.Content)
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, convo.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return out
}

func (w chatAPI) whole(t *Turn, a *parsedRequest, number int) []byte {
	message := map[string]any{"role": "assistant", "content": orNull(t.Text), "refusal": orNull(t.Refusal)}
	if t.Reasoning != "" {
		message["reasoning_content"] = t.Reasoning
	}
	if len(t.Calls) > 0 {
		var calls []any
		for _, c := range t.Calls {
			calls = append(calls, map[string]any{
				"id": c.ID, "type": "function",
				"function": map[string]any{"name": c.Name, "arguments": c.Arguments},
			})
		}
		message["tool_calls"] = calls
	}
	out := chatObject(a, number, "chat.completion")
	out["choices"] = []any{map[string]any{
		"index": 0, "message": message, "logprobs": nil, "finish_reason": t.finish(),
	}}
	out["usage"] = chatUsage(t.Usage)
	return []byte(encode(out))
}

func (w chatAPI) stream(t *Turn, a *parsedRequest, number int) []string {
	s := &chatStream{ask: a, number: number}
	s.delta(map[string]any{"role": "assistant", "content": "", "refusal": nil})
	for _, piece := range pieces(t.Reasoning, t.Piece) {
		s.delta(map[string]any{"reasoning_content": piece})
	}
	for _, piece := range pieces(t.Text, t.Piece) {
		s.delta(map[string]any{"content": piece})
	}
	for _, piece := range pieces(t.Refusal, t.Piece) {
		s.delta(map[string]any{"refusal": piece})
	}
	for n, c := range t.Calls {
		s.delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": n, "id": c.ID, "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": ""},
		}}})
		for _, piece := range pieces(c.Arguments, t.Piece) {
			s.delta(map[string]any{"tool_calls": []any{map[string]any{
				"index": n, "function": map[string]any{"arguments": piece},
			}}})
		}
	}
	s.choice(map[string]any{}, t.finish())
	if a.usage {
		last := chatObject(a, number, "chat.completion.chunk")
		last["choices"], last["usage"] = []any{}, chatUsage(t.Usage)
		s.events = append(s.events, frame("", encode(last)))
	}
	return append(s.events, frame("", "[DONE]"))
}

// chatStream writes the chunks of one answer.
type chatStream struct {
	ask    *parsedRequest
	number int
	events []string
}

func (s *chatStream) delta(delta map[string]any) { s.choice(delta, nil) }

func (s *chatStream) choice(delta map[string]any, finish any) {
	chunk := chatObject(s.ask, s.number, "chat.completion.chunk")
	chunk["choices"] = []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
	if s.ask.usage {
		chunk["usage"] = nil
	}
	s.events = append(s.events, frame("", encode(chunk)))
}

func (w chatAPI) fault(f *Failure) string {
	return frame("", encode(map[string]any{"error": faultBody(f)}))
}

// issue does nothing: Chat Completions has no data that only the server can read.
func (w chatAPI) issue(*Turn, *parsedRequest, int, issuedIDs) {}

func chatObject(a *parsedRequest, number int, object string) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", number), "object": object, "created": 1700000000,
		"model": a.Model, "service_tier": "default", "system_fingerprint": nil,
	}
}

func chatUsage(u llm.Usage) map[string]any {
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached, "audio_tokens": 0},
		"completion_tokens_details": map[string]any{
			"reasoning_tokens": u.Reasoning, "audio_tokens": 0,
			"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
		},
	}
}

func (t *Turn) finish() string {
	switch {
	case t.Stop == "length":
		return "length"
	case t.Stop == "filter":
		return "content_filter"
	case len(t.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}
