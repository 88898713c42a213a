package builtin

import (
	"context"
	"fmt"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// traceOf returns the messages that were added to a lane from a position on, as values.
func traceOf(lane *convo.Manager, from int) ([]any, error) {
	ms, err := lane.Get().AddedSince(from)
	if err != nil {
		return nil, fmt.Errorf("read the agent's lane: %w", err)
	}
	trace := make([]any, len(ms))
	for i, m := range ms {
		trace[i] = traceEntry(m)
	}
	return trace, nil
}

func traceEntry(m convo.Message) map[string]any {
	o := map[string]any{"role": string(m.Role), "text": m.Text}
	if m.Reasoning != "" {
		o["reasoning"] = m.Reasoning
	}
	if m.Role == convo.Tool {
		o["name"], o["call"], o["failed"] = m.Name, m.CallID, m.Failed
	}
	if m.Metadata != nil && m.Role != convo.Assistant { // whose leave a call had, or whose entry it is
		o["metadata"] = map[string]any(m.Metadata)
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

// countingHost counts the calls that are made through a host, also in a turn that fails.
type countingHost struct {
	llm.Host

	mu    sync.Mutex // tool calls are parallel
	steps int
	usage llm.Usage
	tools map[string]any // how often each was called
}

// ModelCall counts a model call.
func (h *countingHost) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	resp, err := h.Host.ModelCall(req, do)
	if resp != nil {
		h.steps++
		h.usage = h.usage.Add(resp.RetryCost.Usage).Add(resp.Usage)
	}
	return resp, err
}

// ToolCall counts a tool call.
func (h *countingHost) ToolCall(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	r, err := h.Host.ToolCall(index, t, call)
	h.count(t.Name)
	return r, err
}

// count counts a call of a tool.
func (h *countingHost) count(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tools == nil {
		h.tools = make(map[string]any)
	}
	n, _ := h.tools[name].(int64)
	h.tools[name] = n + 1
}

// summary returns what was done, as metadata.
func (h *countingHost) summary() map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := map[string]any{"steps": int64(h.steps), "tokens": int64(h.usage.Input + h.usage.Output)}
	if h.tools != nil {
		s["tools"] = h.tools
	}
	return s
}

// queueReports says how many entries of each queue were processed.
type queueReports struct {
	planned         int
	pre, todo, post queueReport
	runs            []string // child runs
	failures        []string // of post
}

// queueReport says how many entries of one queue were processed.
type queueReport struct{ done, failed, added, refused, remaining int }

// values returns the figures that are not 0, and how many entries were worked on.
func (q *queueReport) values() map[string]any {
	o := map[string]any{"run": int64(q.done)}
	for name, n := range map[string]int{"failed": q.failed, "added": q.added, "refused": q.refused, "left": q.remaining} {
		if n > 0 {
			o[name] = int64(n)
		}
	}
	return o
}

// summary returns what was done, as metadata.
func (w *agentWorker) summary() map[string]any {
	s, r := w.counter.summary(), &w.report
	queues := make(map[string]any)
	for name, q := range map[string]*queueReport{"pre": &r.pre, "todo": &r.todo, "post": &r.post} {
		if *q != (queueReport{}) {
			queues[name] = q.values()
		}
	}
	if r.planned > 0 {
		queues["planned"] = int64(r.planned)
	}
	s["queues"] = queues
	for name, list := range map[string][]string{"runs": r.runs, "postFailures": r.failures} {
		if list != nil {
			s[name] = anyOf(list)
		}
	}
	return s
}
