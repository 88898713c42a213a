package node

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
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
func (h *toolHost) ModelCall(
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
func (h *toolHost) ToolCall(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	d := h.gate.check(index, t, call, h.byNode)
	if d.err != nil || d.refusal != "" {
		return llm.ToolResult{Text: d.refusal, Failed: true, Metadata: d.note}, d.err
	}
	r, err := h.call(index, t, call)
	r.Metadata = d.note
	return r, err
}

// unknownPolicy returns the policy of the effect of a call.
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

// call makes a call that requires no approval, or has it. A tool that requires input is
// called again with a person's answers, as an effect of its own.
func (h *toolHost) call(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	if t.Flow != "" {
		return h.callFlow(index, t, call)
	}
	var given *tool.Input
	for round := 1; ; round++ {
		v, err := h.effect(index, round, t, call, given)
		if err != nil {
			return llm.ToolResult{}, err
		}
		need, err := readRequiredInput(v)
		if err != nil {
			return llm.ToolResult{}, fmt.Errorf("read the questions of tool %s: %w", t.Name, err)
		}
		if need == nil {
			return h.result(t, v)
		}
		if given, err = h.askInput(index, round, t, call, need); err != nil {
			return llm.ToolResult{}, err
		}
	}
}

// effect makes a call once, or returns its recorded result.
func (h *toolHost) effect(index, round int, t *tool.Tool, call convo.Call, given *tool.Input) (engine.Value, error) {
	returned := &returnedValue{limit: t.OutputLimit()}
	request := []any{t.Name, call.Arguments}
	if given != nil {
		in, err := engine.Normalize(given)
		if err != nil {
			return nil, fmt.Errorf("the answers for tool %s: %w", t.Name, err)
		}
		request = append(request, in)
	}
	return h.c.Do(Effect{
		Name: h.prefix + "tool", Index: index, Try: round, Request: request, Unknown: unknownPolicy(t), ReadOnly: t.ReadOnly,
		Uses: usedTool(t),
		Do: func(ctx context.Context, key string) (Outcome, error) {
			made := &declaredArtifacts{}
			c := tool.Call{Key: key, Arguments: call.Arguments, Caller: h.c.caller(), OnDeclare: made.add, Input: given}
			if h.direct != nil {
				c.Caller.Node, c.OnValue = true, returned.set
			}
			text, err := t.Run(ctx, c)
			if err != nil && ctx.Err() == nil && round <= tool.MaxInputRounds {
				var asks map[string]any
				if asks, err = inputRequired(t, err); err == nil {
					return Outcome{Value: made.addTo(asks)}, nil
				}
			}
			if err == nil && h.direct != nil {
				return Outcome{Value: made.addTo(returned.addTo(map[string]any{"text": text}))}, nil
			}
			if err == nil {
				return Outcome{Value: made.addTo(map[string]any{"text": text})}, nil
			}
			return h.failed(ctx, t, made, err)
		},
	})
}

// usedTool returns what a call uses. A tool of the client is not one that an owner of the process could grant.
func usedTool(t *tool.Tool) Use {
	if t.Origin == tool.ClientOrigin {
		return Use{}
	}
	return Use{UseTool, cmp.Or(t.Alias, t.Name)}
}

// failed returns the outcome of a call that ended with an error.
func (h *toolHost) failed(ctx context.Context, t *tool.Tool, made *declaredArtifacts, err error) (Outcome, error) {
	switch {
	case ctx.Err() != nil: // an interrupted call has no result, whatever its error says: its outcome is unknown
		return Outcome{}, err
	case h.direct != nil:
		return h.direct.failed(t, err)
	case h.insist:
		return Outcome{}, toolFailed(t, err.Error())
	}
	return Outcome{Value: made.addTo(map[string]any{"text": err.Error(), "failed": true})}, nil
}

// result reads the recorded result of a completed call.
func (h *toolHost) result(t *tool.Tool, v engine.Value) (llm.ToolResult, error) {
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
