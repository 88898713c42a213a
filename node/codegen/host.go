package codegen

import (
	"context"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// durationField is the field of a recorded answer with the duration of the call in
// microseconds, so that a re-entered attempt reads the same value.
const durationField = "us"

// agentHost is the llm.Host of one agent's turn. It records the model and the duration.
type agentHost struct {
	llm.Host
	onEffect func()
	model    string
	micros   int64
	usage    engine.Usage
}

// ModelCall implements llm.Host.
func (h *agentHost) ModelCall(
	req *llm.Request, do func(ctx context.Context, key string) (*llm.Response, error),
) (*llm.Response, error) {
	h.model = req.Model
	if req.Provider != "" {
		h.model = req.Provider + "/" + req.Model
	}
	resp, err := h.Host.ModelCall(req, func(ctx context.Context, key string) (*llm.Response, error) {
		h.onEffect()
		begin := time.Now()
		resp, err := do(ctx, key)
		if resp != nil {
			resp.Message.Metadata = convo.Metadata{durationField: time.Since(begin).Microseconds()}
		}
		return resp, err
	})
	if resp == nil {
		return nil, err
	}
	took, _ := resp.Message.Metadata[durationField].(int64)
	h.micros += took
	h.usage = h.usage.Add(*node.TotalUsage(resp))
	resp.Message.Metadata = nil
	return resp, err
}

// Emit emits an agent's output as reasoning, because it is not output of the node.
func (h *agentHost) Emit(c llm.Chunk) {
	if c.Text != "" {
		c = llm.Chunk{Effect: c.Effect, Reasoning: c.Text}
	}
	h.Host.Emit(c)
}

// Scope implements llm.Scoped.
func (h *agentHost) Scope(contextID string) string {
	if s, ok := h.Host.(llm.ContextScoper); ok {
		return s.Scope(contextID)
	}
	return h.Run()
}

// totalUsage returns the usage of the calls, nil if there was none.
func (h *agentHost) totalUsage() *engine.Usage {
	if h.usage.Calls == 0 {
		return nil
	}
	u := h.usage
	return &u
}
