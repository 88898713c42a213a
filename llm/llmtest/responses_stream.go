package llmtest

import (
	"fmt"

	"github.com/weir-run/weir/llm"
)

func (w responsesAPI) whole(t *Turn, a *parsedRequest, number int) []byte {
	s := &responsesStream{turn: t, ask: a, number: number}
	s.output()
	return []byte(encode(s.response(t.status())))
}

func (w responsesAPI) stream(t *Turn, a *parsedRequest, number int) []string {
	s := &responsesStream{turn: t, ask: a, number: number}
	s.event("response.created", map[string]any{"response": s.response("in_progress")})
	s.event("response.in_progress", map[string]any{"response": s.response("in_progress")})
	s.output()
	status := t.status()
	s.event("response."+status, map[string]any{"response": s.response(status)})
	return s.events
}

func (t *Turn) status() string {
	if t.Stop == "length" || t.Stop == "filter" {
		return "incomplete"
	}
	return "completed"
}

// responsesStream writes the events of one answer.
type responsesStream struct {
	turn   *Turn
	ask    *parsedRequest
	number int
	events []string
	items  []any
}

// output writes all items with their events in OpenAI's order.
func (s *responsesStream) output() {
	t := s.turn
	if t.thinks() {
		s.reasoning()
	}
	if t.Text != "" || t.Refusal != "" || len(t.Calls) == 0 {
		s.message()
	}
	for n := range t.Calls {
		s.call(n)
	}
}

func (s *responsesStream) event(kind string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = kind, len(s.events)
	s.events = append(s.events, frame(kind, encode(fields)))
}

func (s *responsesStream) added(item map[string]any) {
	s.event("response.output_item.added", map[string]any{"output_index": len(s.items), "item": item})
}

func (s *responsesStream) done(item map[string]any) {
	s.event("response.output_item.done", map[string]any{"output_index": len(s.items), "item": item})
	s.items = append(s.items, item)
}

func (s *responsesStream) reasoning() {
	id := reasoningID(s.number)
	s.added(map[string]any{"id": id, "type": "reasoning", "summary": []any{}})
	item := map[string]any{"id": id, "type": "reasoning", "summary": []any{}}
	if s.ask.summary && s.turn.Reasoning != "" {
		at := func(fields map[string]any) map[string]any {
			fields["item_id"], fields["output_index"], fields["summary_index"] = id, len(s.items), 0
			return fields
		}
		part := map[string]any{"type": "summary_text", "text": s.turn.Reasoning}
		s.event("response.reasoning_summary_part.added", at(map[string]any{
			"part": map[string]any{"type": "summary_text", "text": ""},
		}))
		for _, piece := range pieces(s.turn.Reasoning, s.turn.Piece) {
			s.event("response.reasoning_summary_text.delta", at(map[string]any{"delta": piece, "obfuscation": "x"}))
		}
		s.event("response.reasoning_summary_text.done", at(map[string]any{"text": s.turn.Reasoning}))
		s.event("response.reasoning_summary_part.done", at(map[string]any{"part": part}))
		item["summary"] = []any{part}
	}
	if s.ask.encrypted {
		item["encrypted_content"] = secret(s.number)
	}
	s.done(item)
}

func (s *responsesStream) message() {
	id := fmt.Sprintf("msg_%d", s.number)
	s.added(map[string]any{"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}})
	var parts []any
	if s.turn.Text != "" || s.turn.Refusal == "" {
		parts = append(parts, s.part(id, len(parts), "output_text", "text", s.turn.Text))
	}
	if s.turn.Refusal != "" {
		parts = append(parts, s.part(id, len(parts), "refusal", "refusal", s.turn.Refusal))
	}
	s.done(map[string]any{
		"id": id, "type": "message", "status": s.turn.status(), "role": "assistant", "content": parts,
	})
}

// part writes one content part: text, or a refusal.
func (s *responsesStream) part(id string, index int, kind, field, text string) map[string]any {
	at := func(fields map[string]any) map[string]any {
		fields["item_id"], fields["output_index"], fields["content_index"] = id, len(s.items), index
		return fields
	}
	whole := func(text string) map[string]any {
		part := map[string]any{"type": kind, field: text}
		if kind == "output_text" {
			part["annotations"], part["logprobs"] = []any{}, []any{}
		}
		return part
	}
	s.event("response.content_part.added", at(map[string]any{"part": whole("")}))
	for _, piece := range pieces(text, s.turn.Piece) {
		s.event("response."+kind+".delta", at(map[string]any{"delta": piece, "logprobs": []any{}}))
	}
	s.event("response."+kind+".done", at(map[string]any{field: text, "logprobs": []any{}}))
	s.event("response.content_part.done", at(map[string]any{"part": whole(text)}))
	return whole(text)
}

func (s *responsesStream) call(n int) {
	c := s.turn.Calls[n]
	id := fmt.Sprintf("fc_%d_%d", s.number, n)
	item := func(status, arguments string) map[string]any {
		return map[string]any{
			"id": id, "type": "function_call", "status": status,
			"call_id": c.ID, "name": c.Name, "arguments": arguments,
		}
	}
	at := func(fields map[string]any) map[string]any {
		fields["item_id"], fields["output_index"] = id, len(s.items)
		return fields
	}
	s.added(item("in_progress", ""))
	for _, piece := range pieces(c.Arguments, s.turn.Piece) {
		s.event("response.function_call_arguments.delta", at(map[string]any{"delta": piece}))
	}
	s.event("response.function_call_arguments.done", at(map[string]any{"arguments": c.Arguments}))
	s.done(item(s.turn.status(), c.Arguments))
}

func (s *responsesStream) response(status string) map[string]any {
	out := map[string]any{
		"id": fmt.Sprintf("resp_%d", s.number), "object": "response", "created_at": 1700000000,
		"status": status, "error": nil, "incomplete_details": nil, "instructions": nil,
		"max_output_tokens": nil, "model": s.ask.Model, "output": append([]any{}, s.items...),
		"parallel_tool_calls": true, "previous_response_id": nil, "store": false, "temperature": 1.0,
		"tool_choice": "auto", "tools": []any{}, "top_p": 1.0, "truncation": "disabled", "usage": nil,
		"metadata": map[string]any{},
	}
	if status == "in_progress" {
		return out
	}
	out["usage"] = responsesUsage(s.turn.Usage)
	switch s.turn.Stop {
	case "length":
		out["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	case "filter":
		out["incomplete_details"] = map[string]any{"reason": "content_filter"}
	}
	return out
}

func responsesUsage(u llm.Usage) map[string]any {
	return map[string]any{
		"input_tokens": u.Input, "input_tokens_details": map[string]any{"cached_tokens": u.Cached},
		"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
		"total_tokens": u.Input + u.Output,
	}
}
