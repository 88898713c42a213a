package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// callFlow runs the flow of a tool as a child run and records what the call returned as the effect "tool". The effect
// follows the end of the child, so that it is never in flight while a person is asked. While the child executes or waits,
// the error is ErrSuspended: calls of other tools in the same answer have ended by then, and all flows of the answer run
// side by side.
func (h *toolHost) callFlow(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	v, err := h.flowEffect(index, t, call, nil)
	if errors.Is(err, ErrNotRecorded) {
		v, err = h.runFlow(index, t, call)
	}
	if err != nil {
		return llm.ToolResult{}, err
	}
	return h.result(t, v)
}

// runFlow runs the child and records its result.
func (h *toolHost) runFlow(index int, t *tool.Tool, call convo.Call) (engine.Value, error) {
	child, err := flowToolChild(t, call)
	var r ChildResult
	if err == nil {
		r, err = h.c.Child(fmt.Sprintf("%stool%d", h.prefix, index), child)
	}
	text := ""
	switch {
	case err != nil && !isAnswerToCaller(err):
		return nil, err
	case err == nil && r.Error != nil && endsCaller(&r):
		return nil, r.Error
	case err == nil && r.Error != nil:
		err = fmt.Errorf("the flow of the tool %s failed: %w (run %s)", t.DisplayName(), r.Error, r.Run)
	case err == nil:
		text, _, err = flowResult(r.Outputs)
	}
	return h.flowEffect(index, t, call, func(context.Context, string) (Outcome, error) {
		switch {
		case err == nil:
			return Outcome{Value: map[string]any{"text": limitText(t, text)}}, nil
		case h.insist:
			return Outcome{}, toolFailed(t, limitText(t, err.Error()))
		}
		return Outcome{Value: map[string]any{"text": limitText(t, err.Error()), "failed": true}}, nil
	})
}

// flowEffect records the result of a call, or returns the recorded one. If do is nil and there is none, the error is
// ErrNotRecorded.
func (h *toolHost) flowEffect(index int, t *tool.Tool, call convo.Call, do func(context.Context, string) (Outcome, error)) (engine.Value, error) {
	return h.c.Do(Effect{
		Name: h.prefix + "tool", Index: index, Request: []any{t.Name, call.Arguments}, Unknown: UnknownRetry, ReadOnly: true,
		Uses: usedTool(t), OnlyRecorded: do == nil, Do: do,
	})
}

// flowToolChild returns the child run of a call. The error is for the model: the arguments do not fit.
func flowToolChild(t *tool.Tool, call convo.Call) (Child, error) {
	child := Child{Tool: t.DisplayName(), Isolation: "fresh"}
	schema, err := tool.NewArguments(t.Parameters)
	if err != nil {
		return child, err
	}
	arguments := call.Arguments
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	read, err := schema.Read(arguments)
	if err != nil {
		return child, &engine.Error{Code: engine.CodeInput, Permanent: true, Message: err.Error()}
	}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		v, err := engine.Normalize(read[name])
		if err != nil {
			return child, &engine.Error{Code: engine.CodeInput, Permanent: true, Message: fmt.Sprintf("argument %s: %v", name, err)}
		}
		child.Inputs = append(child.Inputs, engine.Named{Name: name, Value: v})
	}
	return child, nil
}

// isAnswerToCaller reports whether the child could not start for a reason that the caller of the tool can act on.
func isAnswerToCaller(err error) bool {
	failed, ok := errors.AsType[*engine.Error](err)
	return ok && (failed.Code == engine.CodeInput || failed.Code == engine.CodeDepth)
}

// endsCaller reports whether the failure of a child is one of the node that called it: it took longer than the node may,
// or a budget of a run above it is used up.
func endsCaller(r *ChildResult) bool {
	return r.Error.Code == engine.CodeBudget && !strings.Contains(r.Error.Budget, "|") ||
		r.Status == engine.Cancelled && r.Error.Code != engine.CodeChildCancelled
}

// limitText makes the result of a tool safe to store and cuts it to the tool's limit.
func limitText(t *tool.Tool, text string) string { return tool.Cut(tool.Clean(text), t.OutputLimit()) }
