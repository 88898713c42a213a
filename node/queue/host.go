package queue

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// Host is an llm.Host that calls some tools in the order of the calls in the model's
// answers. Other tools of one answer run concurrently and end in any order; if they added
// to a queue, the order of its entries, and the entry for which it is full, would differ on
// re-entry.
//
// A host belongs to one node: it counts the calls of all turns that are made through it.
type Host struct {
	llm.Host
	ctx     context.Context //nolint:containedctx // the host is of one entry into a node, as ctx is
	ordered map[string]*tool.Tool

	mu      sync.Mutex // tool calls are parallel
	calls   int
	results map[int]toolAnswer // by the index of the call
}

// toolAnswer is the result of a tool.
type toolAnswer struct {
	text string
	err  error
}

// Ordered wraps h so that these tools are called in order. Their functions run when the
// model's answer arrives, before the other tools that it calls; their results are recorded
// as those of other tools, and recorded results are reused. Because they run again on every
// re-entry, they must have no outside effects and may not require approval.
func Ordered(ctx context.Context, h llm.Host, tools ...*tool.Tool) *Host {
	o := &Host{Host: h, ctx: ctx, ordered: make(map[string]*tool.Tool, len(tools)), results: make(map[int]toolAnswer)}
	for _, t := range tools {
		o.ordered[t.Name] = t
	}
	return o
}

// Calls returns the number of tool calls in the answers so far, which is
// llm.Turn.ToolsBefore of the next turn.
func (h *Host) Calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// ModelCall implements llm.Host.
func (h *Host) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	resp, err := h.Host.ModelCall(req, do)
	if err != nil || req.Purpose == llm.PurposeSummary { // these calls are not executed
		return resp, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range resp.Message.Calls {
		h.calls++
		if t := h.ordered[c.Name]; t != nil && (c.Arguments == "" || json.Valid([]byte(c.Arguments))) {
			text, err := t.Call(h.ctx, tool.Call{Arguments: c.Arguments})
			h.results[h.calls] = toolAnswer{text, err}
		}
	}
	return resp, nil
}

// ToolCall implements llm.Host.
func (h *Host) ToolCall(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	h.mu.Lock()
	a, is := h.results[index]
	h.mu.Unlock()
	if is && h.ordered[call.Name] == t {
		said := *t
		said.ReadOnly = true
		said.Call = func(context.Context, tool.Call) (string, error) { return a.text, a.err }
		t = &said
	}
	return h.Host.ToolCall(index, t, call)
}
