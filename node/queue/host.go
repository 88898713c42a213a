package queue

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// Host is an llm.Host some of whose tools are called in the order in which the
// model's answers have the calls. Other tools of one answer run at the same time
// and end in any order, so that what they add to a queue would be in another order
// on re-entry, and another one of them would find it full.
//
// A host is for one node: it counts the calls of all turns that are made through it.
type Host struct {
	llm.Host
	ctx     context.Context //nolint:containedctx // the host is of one entry into a node, as ctx is
	ordered map[string]*tool.Tool

	mu      sync.Mutex // tool calls are parallel
	calls   int
	results map[int]toolAnswer // by the index of the call
}

// toolAnswer is what a tool said.
type toolAnswer struct {
	text string
	err  error
}

// Ordered is h with these tools called in order. Their functions run as soon as an
// answer of the model is there, before all other tools that it calls; what they say
// is recorded as that of other tools is, and what was recorded counts. Since they run
// again whenever the node is entered again they must do nothing outside, and they
// may not need a person's leave.
func Ordered(ctx context.Context, h llm.Host, tools ...*tool.Tool) *Host {
	o := &Host{Host: h, ctx: ctx, ordered: make(map[string]*tool.Tool, len(tools)), results: make(map[int]toolAnswer)}
	for _, t := range tools {
		o.ordered[t.Name] = t
	}
	return o
}

// Calls is how many tool calls the answers so far had: what llm.Turn.ToolsBefore of
// the next turn is.
func (h *Host) Calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// ModelCall implements llm.Host.
func (h *Host) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	resp, err := h.Host.ModelCall(req, do)
	if err != nil || req.Purpose == llm.PurposeSummary { // whose calls nobody makes
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
