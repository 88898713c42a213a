package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
)

// DirectCall is a tool call that a node makes without a model.
type DirectCall struct {
	Tool *tool.Tool
	// Arguments is the JSON text of the arguments.
	Arguments string
	// Index numbers the calls of a node that makes several, from 1; 0 is 1.
	Index int
}

// DirectResult is the result of a DirectCall.
type DirectResult struct {
	Text string
	// Value is the result as a value, if the tool returned one; see tool.Call.Return.
	Value engine.Value
	// Approval says who approved the call; it is nil if no approval was needed.
	Approval convo.Metadata
}

// CallTool calls a tool as the effect "tool". If the tool requires it, a person approves the
// call before the effect starts, and again after the tool or the arguments have changed.
//
// A tool that is a flow runs as a child run, whose questions surface and whose failure is the
// error. It is no effect.
//
// The errors are: tool_refused for a call that a person refused; tool_error for an error
// that the tool reports; effect_outcome_unknown as the policy of the tool says (see
// tool.Tool.UnknownPolicy). The node's `retry` repeats a call only if the tool is read-only
// or idempotent, or if the call was certainly not made.
func (c *Ctx) CallTool(d DirectCall) (DirectResult, error) {
	h, own := c.LLMHost().(*toolHost), &directCall{} //nolint:forcetypeassert // LLMHostAs returns one
	h.byNode, h.direct = true, own
	call := convo.Call{Name: d.Tool.Name, Arguments: d.Arguments}
	if d.Tool.Flow != "" {
		return c.callFlowTool(h, max(d.Index, 1), d.Tool, call)
	}
	r, err := h.ToolCall(max(d.Index, 1), d.Tool, call)
	if err != nil {
		return DirectResult{}, err
	}
	if r.Failed {
		return DirectResult{}, &engine.Error{Code: engine.CodeToolRefused, Message: r.Text, Permanent: true, NoRetry: true}
	}
	return DirectResult{Text: r.Text, Value: own.value, Approval: r.Metadata}, nil
}

// callFlowTool runs the flow of a tool as a child run, once it is approved.
func (c *Ctx) callFlowTool(h *toolHost, index int, t *tool.Tool, call convo.Call) (DirectResult, error) {
	approved := h.gate.check(index, t, call, true)
	if approved.err != nil {
		return DirectResult{}, approved.err
	}
	if approved.refusal != "" {
		return DirectResult{}, &engine.Error{Code: engine.CodeToolRefused, Message: approved.refusal, Permanent: true, NoRetry: true}
	}
	v, err := engine.ParseValue([]byte(call.Arguments))
	arguments, ok := v.(map[string]any)
	if err != nil || !ok {
		return DirectResult{}, &engine.Error{Code: engine.CodeInput, Permanent: true, Message: "the arguments of tool " + t.Name + " are no object"}
	}
	child := Child{Tool: t.DisplayName(), Isolation: "fresh"}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		child.Inputs = append(child.Inputs, engine.Named{Name: name, Value: arguments[name]})
	}
	r, err := c.Child(fmt.Sprintf("tool%d", index), child)
	if err != nil {
		return DirectResult{}, err
	}
	c.Meta("run", r.Run)
	if r.Error != nil {
		return DirectResult{}, r.Error
	}
	text, value, err := flowResult(r.Outputs)
	return DirectResult{Text: tool.Cut(tool.Clean(text), t.OutputLimit()), Value: value, Approval: approved.note}, err
}

// flowResult returns the outputs of a flow: a single text as it is, without a value, and
// anything else as an object and its JSON.
func flowResult(outputs engine.Values) (string, engine.Value, error) {
	if len(outputs) == 1 {
		if s, ok := outputs[0].Value.(string); ok {
			return s, nil, nil
		}
	}
	v := outputs.Map()
	b, err := engine.AppendValue(nil, v)
	return string(b), v, err
}

// directCall is the part of a DirectCall that is not a model's call.
type directCall struct{ value engine.Value }

// failed returns the outcome of a call that the tool failed.
func (d *directCall) failed(t *tool.Tool, err error) (Outcome, error) {
	e := &engine.Error{Code: engine.CodeToolError, Message: fmt.Sprintf("tool %s: %v", t.DisplayName(), err)}
	if errors.Is(err, tool.ErrOutcomeUnknown) {
		e.Code = engine.CodeEffectUnknown
		return Outcome{Unknown: true}, e
	}
	if !t.IsRepeatable() && !errors.Is(err, tool.ErrNotMade) {
		e.Permanent, e.NoRetry = true, true
		e.Hint = "the call may have had effects, so `retry` does not repeat it; wire the node's error port to continue"
	}
	return Outcome{}, e
}

// returnedValue receives the value of one call of a tool.
type returnedValue struct {
	mu     sync.Mutex
	value  engine.Value
	limit  int // bytes of its JSON
	closed bool
}

// set keeps the value if it fits. It ignores values after the call has ended.
func (r *returnedValue) set(v any) {
	n, err := engine.Normalize(v)
	if err != nil {
		return
	}
	b, err := engine.AppendValue(nil, n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && !r.closed && (r.limit < 0 || len(b) <= r.limit) {
		r.value = n
	}
}

// addTo adds the value to a recorded result.
func (r *returnedValue) addTo(result map[string]any) map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.value != nil {
		result[directValue] = r.value
	}
	return result
}

// directValue is the key of the recorded result of a DirectCall with the value.
const directValue = "value"
