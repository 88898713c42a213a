package node

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// toolHost is an llmHost that also calls tools, after approval by a person if they require
// it.
type toolHost struct {
	llmHost
	gate *approvalGate
	// byNode: the node makes the call, not a model. insist: an error of the tool fails the
	// effect.
	byNode, insist bool
	// direct is set for the call of a node that is no agent; see Ctx.CallTool.
	direct *directCall
}

// ModelCall passes the calls of an answer to the approval gate.
func (h toolHost) ModelCall(
	req *llm.Request, do func(ctx context.Context, key string) (*llm.Response, error),
) (*llm.Response, error) {
	resp, err := h.llmHost.ModelCall(req, do)
	if err == nil {
		h.gate.setCalls(resp.Message.Calls)
	}
	return resp, err
}

// ToolCall runs a tool call as the effect "tool" with its own ordinal, its index in the
// turn, within the tool's limits. A call that requires approval waits for it before it
// becomes an effect; a refused call never does. An error of the tool is an answer for the
// model; only errors that suspend or end the attempt are returned.
func (h toolHost) ToolCall(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	d := h.gate.check(index, t, call, h.byNode)
	if d.err != nil || d.refusal != "" {
		return llm.ToolResult{Text: d.refusal, Failed: true, Metadata: d.note}, d.err
	}
	r, err := h.call(index, t, call)
	r.Metadata = d.note
	return r, err
}

// unknownPolicy is the policy of the effect of a call.
func unknownPolicy(t *tool.Tool) UnknownPolicy {
	switch t.UnknownPolicy() {
	case tool.UnknownRetry:
		return UnknownRetry
	case tool.UnknownFail:
		return UnknownFail
	case tool.UnknownAsk:
	}
	return UnknownAsk
}

// call makes a call that requires no approval, or has it.
func (h toolHost) call(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	returned := &returnedValue{limit: t.OutputLimit()}
	v, err := h.c.Do(Effect{
		Name: h.prefix + "tool", Index: index, Request: []any{t.Name, call.Arguments}, Unknown: unknownPolicy(t), ReadOnly: t.ReadOnly,
		Uses: Use{UseTool, cmp.Or(t.Alias, t.Name)},
		Do: func(ctx context.Context, key string) (Outcome, error) {
			made := &declaredArtifacts{}
			c := tool.Call{Key: key, Arguments: call.Arguments, Caller: h.c.caller(), OnDeclare: made.add}
			if h.direct != nil {
				c.Caller.Node, c.OnValue = true, returned.set
			}
			text, err := t.Run(ctx, c)
			if err == nil && h.direct != nil {
				return Outcome{Value: made.addTo(returned.addTo(map[string]any{"text": text}))}, nil
			}
			if err == nil {
				return Outcome{Value: made.addTo(map[string]any{"text": text})}, nil
			}
			// An interrupted call has no result, whatever its error says: its outcome is unknown.
			if ctx.Err() != nil {
				return Outcome{}, err
			}
			if h.direct != nil {
				return h.direct.failed(t, err)
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
	o, isObject := v.(map[string]any)
	if _, isResult := o["text"].(string); !isResult { // a person has said what it returned
		answer.Text = TextOf(v)
	} else if err := decodeValue(v, &answer); err != nil {
		return llm.ToolResult{}, fmt.Errorf("read the recorded result of tool %s: %w", t.Name, err)
	}
	if h.direct != nil && isObject {
		h.direct.value = o[directValue]
	}
	return llm.ToolResult{Text: answer.Text, Failed: answer.Failed}, nil
}
