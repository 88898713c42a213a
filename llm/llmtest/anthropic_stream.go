package llmtest

import (
	"encoding/json"
	"fmt"
)

// anthropicStream writes the events of one answer and collects its blocks.
type anthropicStream struct {
	turn   *Turn
	number int
	events []string
	blocks []any
}

func (w anthropicAPI) whole(t *Turn, a *parsedRequest, number int) []byte {
	s := &anthropicStream{turn: t, number: number}
	s.output(a.summary)
	m := anthropicMessageObject(a, t, number)
	m["content"], m["stop_reason"], m["usage"] = s.blocks, t.anthropicStop(), t.anthropicUsage(true)
	return []byte(encode(m))
}

func (w anthropicAPI) stream(t *Turn, a *parsedRequest, number int) []string {
	s := &anthropicStream{turn: t, number: number}
	start := anthropicMessageObject(a, t, number)
	start["content"], start["stop_reason"] = []any{}, nil
	start["usage"] = t.anthropicUsage(false)
	s.event("message_start", map[string]any{"message": start})
	s.output(a.summary)
	s.event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": t.anthropicStop(), "stop_sequence": nil},
		"usage": t.anthropicUsage(true),
	})
	s.event("message_stop", map[string]any{})
	return s.events
}

func anthropicMessageObject(a *parsedRequest, _ *Turn, number int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", number), "type": "message", "role": "assistant", "model": a.Model,
		"stop_sequence": nil,
	}
}

func (s *anthropicStream) event(kind string, fields map[string]any) {
	fields["type"] = kind
	s.events = append(s.events, frame(kind, encode(fields)))
}

// output writes all blocks in the vendor's order.
func (s *anthropicStream) output(thinks bool) {
	t := s.turn
	if thinks && t.thinks() {
		sealed := map[string]any{"type": "thinking", "thinking": t.Reasoning, "signature": signature(s.number)}
		s.block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, sealed, "thinking_delta", "thinking", t.Reasoning)
	}
	for _, text := range []string{t.Text, t.Refusal} {
		if text != "" {
			s.block(map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text", "text": text}, "text_delta", "text", text)
		}
	}
	for _, c := range t.Calls {
		begun := map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}
		whole := map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}
		if json.Valid([]byte(c.Arguments)) {
			whole["input"] = json.RawMessage(c.Arguments)
		}
		s.block(begun, whole, "input_json_delta", "partial_json", c.Arguments)
	}
}

// block writes one block, its text in pieces; the first of a stream is followed
// by a ping.
func (s *anthropicStream) block(begun, whole map[string]any, kind, field, text string) {
	index := len(s.blocks)
	s.blocks = append(s.blocks, whole)
	s.event("content_block_start", map[string]any{"index": index, "content_block": begun})
	if index == 0 {
		s.event("ping", map[string]any{})
	}
	for _, piece := range pieces(text, s.turn.Piece) {
		s.event("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": kind, field: piece}})
	}
	if sealed, ok := whole["signature"]; ok {
		s.event("content_block_delta", map[string]any{
			"index": index, "delta": map[string]any{"type": "signature_delta", "signature": sealed},
		})
	}
	s.event("content_block_stop", map[string]any{"index": index})
}

func (t *Turn) anthropicStop() string {
	switch {
	case t.Stop == "length":
		return "max_tokens"
	case t.Stop == "filter" || t.Refusal != "":
		return "refusal"
	case len(t.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// anthropicUsage returns the reported usage: at the start of a stream the output is not known yet.
func (t *Turn) anthropicUsage(ended bool) map[string]any {
	u := t.Usage
	out := map[string]any{
		"input_tokens": u.Input - u.Cached - u.Written, "cache_read_input_tokens": u.Cached,
		"cache_creation_input_tokens": u.Written, "output_tokens": min(u.Output, 1),
	}
	if ended {
		out["output_tokens"] = u.Output
		out["output_tokens_details"] = map[string]any{"thinking_tokens": u.Reasoning}
	}
	return out
}
