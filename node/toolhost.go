package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// toolHost is an llmHost that calls tools, with the leave of a person where
// they ask for it.
type toolHost struct {
	llmHost
	gate *approvalGate
	// byNode: it is the node that calls, not a model. insist: what a tool says went
	// wrong is a failure of the effect.
	byNode, insist bool
}

// ModelCall tells the gate which calls an answer asks for.
func (h toolHost) ModelCall(
	req *llm.Request, do func(ctx context.Context, key string) (*llm.Response, error),
) (*llm.Response, error) {
	resp, err := h.llmHost.ModelCall(req, do)
	if err == nil {
		h.gate.setCalls(resp.Message.Calls)
	}
	return resp, err
}

// ToolCall runs a tool call as the effect "tool" with its own ordinal, its
// place in the turn, within the tool's limits. Where the tool asks for a
// person's leave the call waits for it before it is an effect; one that is
// refused is none. What a tool says went wrong is an answer for the model; only
// what suspends or ends the attempt is an error.
func (h toolHost) ToolCall(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	d := h.gate.check(index, t, call, h.byNode)
	if d.err != nil || d.refusal != "" {
		return llm.ToolResult{Text: d.refusal, Failed: true, Metadata: d.note}, d.err
	}
	r, err := h.call(index, t, call)
	r.Metadata = d.note
	return r, err
}

// call makes a call that needs no leave, or has it.
func (h toolHost) call(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	unknown := UnknownAsk
	if t.ReadOnly || t.Idempotent {
		unknown = UnknownRetry
	}
	v, err := h.c.Do(Effect{
		Name: h.prefix + "tool", Index: index, Request: []any{t.Name, call.Arguments}, Unknown: unknown,
		Do: func(ctx context.Context, key string) (Outcome, error) {
			made := &declaredArtifacts{}
			text, err := t.Run(ctx, tool.Call{Key: key, Arguments: call.Arguments, Caller: h.c.caller(), OnDeclare: made.add})
			if err == nil {
				return Outcome{Value: made.addTo(map[string]any{"text": text})}, nil
			}
			// A call that was cut off has no answer: its outcome is unknown.
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return Outcome{}, err
			}
			if h.insist {
				return Outcome{}, toolFailed(t, err.Error())
			}
			return Outcome{Value: made.addTo(map[string]any{"text": err.Error(), "failed": true})}, nil
		},
	})
	if err != nil {
		return llm.ToolResult{}, err
	}
	var answer struct {
		Text   string `json:"text"`
		Failed bool   `json:"failed"`
	}
	if err := decodeValue(v, &answer); err != nil {
		return llm.ToolResult{}, fmt.Errorf("read the recorded result of tool %s: %w", t.Name, err)
	}
	return llm.ToolResult{Text: answer.Text, Failed: answer.Failed}, nil
}
