package llmtest

import (
	"encoding/json"
	"fmt"
)

// interactionAnswer writes the events of one answer.
type interactionAnswer struct {
	turn   *Turn
	ask    *parsedRequest
	number int
	events []string
	steps  []any
}

func (w interactionsAPI) whole(t *Turn, a *parsedRequest, number int) []byte {
	i := &interactionAnswer{turn: t, ask: a, number: number}
	i.write()
	out := i.object(i.turn.interactionStatus())
	out["steps"], out["usage"] = i.steps, interactionUsage(t)
	return []byte(encode(out))
}

func (w interactionsAPI) stream(t *Turn, a *parsedRequest, number int) []string {
	i := &interactionAnswer{turn: t, ask: a, number: number}
	i.event("interaction.created", map[string]any{"interaction": i.object("in_progress")})
	i.write()
	done := i.object(i.turn.interactionStatus())
	done["usage"] = interactionUsage(t)
	if t.Stop == "filter" || t.Refusal != "" {
		done["steps"] = i.steps // these events contain the error
	}
	i.event("interaction.completed", map[string]any{"interaction": done})
	return append(i.events, frame("done", "[DONE]"))
}

func (i *interactionAnswer) event(kind string, fields map[string]any) {
	fields["event_type"] = kind
	i.events = append(i.events, frame(kind, encode(fields)))
}

func (i *interactionAnswer) delta(fields map[string]any) {
	i.event("step.delta", map[string]any{"index": len(i.steps), "delta": fields})
}

// step writes the start, deltas and end of one step.
func (i *interactionAnswer) step(start, whole map[string]any, deltas func()) {
	i.event("step.start", map[string]any{"index": len(i.steps), "step": start})
	deltas()
	i.event("step.stop", map[string]any{"index": len(i.steps)})
	i.steps = append(i.steps, whole)
}

func (i *interactionAnswer) write() {
	t := i.turn
	if t.thinks() {
		i.thought()
	}
	if t.Text != "" || t.Refusal != "" || len(t.Calls) == 0 {
		i.output(t.Text + t.Refusal)
	}
	for _, c := range t.Calls {
		args := c.Arguments
		if args == "" {
			args = "{}"
		}
		call := map[string]any{"type": "function_call", "id": c.ID, "name": c.Name, "arguments": map[string]any{}}
		whole := map[string]any{"type": "function_call", "id": c.ID, "name": c.Name}
		if json.Valid([]byte(args)) {
			whole["arguments"] = json.RawMessage(args)
		}
		i.step(call, whole, func() {
			for _, piece := range pieces(args, t.Piece) {
				i.delta(map[string]any{"type": "arguments_delta", "arguments": piece})
			}
		})
	}
}

func (i *interactionAnswer) thought() {
	t := i.turn
	signature := t.geminiSignature(i.ask.Model, i.number)
	whole := map[string]any{"type": "thought", "signature": signature}
	if i.ask.summary && t.Reasoning != "" {
		whole["summary"] = []any{map[string]any{"type": "text", "text": t.Reasoning}}
	}
	i.step(map[string]any{"type": "thought"}, whole, func() {
		if i.ask.summary {
			for _, piece := range pieces(t.Reasoning, t.Piece) {
				i.delta(map[string]any{"type": "thought_summary", "content": map[string]any{"type": "text", "text": piece}})
			}
		}
		i.delta(map[string]any{"type": "thought_signature", "signature": signature})
	})
}

func (i *interactionAnswer) output(text string) {
	whole := map[string]any{"type": "model_output", "content": []any{map[string]any{"type": "text", "text": text}}}
	if i.turn.Stop == "filter" || i.turn.Refusal != "" {
		whole["error"] = map[string]any{"code": 3, "message": "The output was blocked."}
	}
	i.step(map[string]any{"type": "model_output"}, whole, func() {
		for _, piece := range pieces(text, i.turn.Piece) {
			i.delta(map[string]any{"type": "text", "text": piece})
		}
	})
}

func (i *interactionAnswer) object(status string) map[string]any {
	return map[string]any{
		"id": interactionID(i.number), "object": "interaction", "status": status, "model": i.ask.Model,
		"created": "2026-01-02T03:04:05Z", "updated": "2026-01-02T03:04:05Z",
	}
}

func interactionID(number int) string { return fmt.Sprintf("v1_%d", number) }

func (t *Turn) interactionStatus() string {
	switch {
	case t.Stop == "length":
		return "incomplete"
	case len(t.Calls) > 0:
		return "requires_action"
	}
	return "completed"
}

func interactionUsage(t *Turn) map[string]any {
	u := t.Usage
	return map[string]any{
		"total_input_tokens": u.Input, "total_cached_tokens": u.Cached, "total_thought_tokens": u.Reasoning,
		"total_output_tokens": u.Output - u.Reasoning, "total_tokens": u.Input + u.Output,
	}
}

// issue stores the signature and, if requested, the conversation.
func (w interactionsAPI) issue(t *Turn, a *parsedRequest, number int, known issuedIDs) {
	if t.thinks() {
		known["signature:"+t.geminiSignature(a.Model, number)] = ""
	}
	if a.Kept {
		known.keep(interactionID(number), t.Calls)
	}
}
