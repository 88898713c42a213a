package builtin

import (
	"context"
	"fmt"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// traceOf is what a lane added from a position on, as values.
func traceOf(lane *convo.Manager, from int) ([]any, error) {
	ms, err := lane.Get().Own(from)
	if err != nil {
		return nil, fmt.Errorf("read the agent's lane: %w", err)
	}
	trace := make([]any, len(ms))
	for i, m := range ms {
		trace[i] = traced(m)
	}
	return trace, nil
}

func traced(m convo.Message) map[string]any {
	o := map[string]any{"role": string(m.Role), "text": m.Text}
	if m.Reasoning != "" {
		o["reasoning"] = m.Reasoning
	}
	if m.Role == convo.Tool {
		o["name"], o["call"], o["failed"] = m.Name, m.CallID, m.Failed
		if m.Metadata != nil {
			o["metadata"] = map[string]any(m.Metadata)
		}
	}
	var calls []any
	for _, c := range m.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "name": c.Name, "arguments": c.Arguments})
	}
	if calls != nil {
		o["calls"] = calls
	}
	return o
}

// watchedHost counts what is done through a host, also where the turn fails.
type watchedHost struct {
	llm.Host

	mu    sync.Mutex // tool calls are parallel
	steps int
	usage llm.Usage
	tools map[string]any // how often each was called
}

// ModelCall counts a model call.
func (h *watchedHost) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	resp, err := h.Host.ModelCall(req, do)
	if err == nil {
		h.steps++
		h.usage = h.usage.Add(resp.Usage)
	}
	return resp, err
}

// ToolCall counts a tool call.
func (h *watchedHost) ToolCall(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	r, err := h.Host.ToolCall(index, t, call)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tools == nil {
		h.tools = make(map[string]any)
	}
	n, _ := h.tools[t.Name].(int64)
	h.tools[t.Name] = n + 1
	return r, err
}

// summary is what was done, as metadata.
func (h *watchedHost) summary() map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := map[string]any{"steps": int64(h.steps), "tokens": int64(h.usage.Input + h.usage.Output)}
	if h.tools != nil {
		s["tools"] = h.tools
	}
	return s
}
