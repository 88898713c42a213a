package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// LLMHost lets the LLM service make its calls as effects of this attempt.
func (c *Ctx) LLMHost() llm.Host { return c.LLMHostAs("") }

// LLMHostAs is LLMHost for separate work of the attempt, such as the work after a failure:
// the names of its effects have the prefix and are numbered separately, so that neither
// shifts the numbers of the other. A prefix ends with a dot, as "post.".
func (c *Ctx) LLMHostAs(prefix string) llm.Host {
	return &toolHost{llmHost: llmHost{c, prefix}, gate: &approvalGate{c: c, prefix: prefix}}
}

// llmHost is an llm.Host without tool calls, which toolHost adds.
type llmHost struct {
	c      *Ctx
	prefix string // prefix of its effect names
}

// Run returns the id of the run.
func (h llmHost) Run() string { return h.c.info.Run }

// MustCount reports whether a budget binds the node.
func (h llmHost) MustCount() bool {
	b, ok := h.c.host.(interface{ Budgeted() bool })
	return ok && b.Budgeted()
}

// ModelCall runs a model call as the next effect named "model", or named by its purpose. A
// call with an unknown outcome is repeated, which only costs more.
func (h llmHost) ModelCall(
	req *llm.Request, do func(ctx context.Context, key string) (*llm.Response, error),
) (*llm.Response, error) {
	digest, err := req.Digest()
	if err != nil {
		return nil, fmt.Errorf("model call: %w", err)
	}
	var manifest engine.Value
	if req.Manifest != nil {
		if manifest, err = engine.Normalize(req.Manifest); err != nil {
			return nil, fmt.Errorf("manifest of a model call: %w", err)
		}
	}
	v, err := h.c.host.Do(h.modelEffect(req, digest[:], manifest, do))
	if v == nil {
		return nil, err
	}
	resp, unread := readResponse(v)
	if unread != nil {
		return nil, unread
	}
	return resp, err
}

// modelEffect returns the effect of a model call.
func (h llmHost) modelEffect(
	req *llm.Request, digest []byte, manifest engine.Value, do func(ctx context.Context, key string) (*llm.Response, error),
) *Effect {
	reserve := ReserveOf(req)
	return &Effect{
		Name: h.prefix + cmp.Or(req.Purpose, "model"), Reserve: reserve, Text: req.Canonical, Digest: digest, Unknown: UnknownRetry, ReadOnly: true, Try: req.Failed + 1,
		Uses: Use{UseProvider, req.Provider}, Interruptible: req.Purpose == llm.PurposeTurn, Guarded: true,
		Do: func(ctx context.Context, key string) (Outcome, error) {
			req.User = h.c.info.User
			if reserve.HasBudget {
				req.GrantedOutput = reserve.Output
			}
			if reserve.ReserveRetry != nil {
				req.AllowRetry = func(u llm.Usage) error { return reserve.ReserveRetry(*EngineUsage(u)) }
			}
			resp, err := do(ctx, key)
			return modelOutcome(resp, manifest, err)
		},
	}
}

// modelOutcome returns the outcome of a model call. It is not inlined, so that nothing of it is on the stack of a call that waits.
//
//go:noinline
func modelOutcome(resp *llm.Response, manifest engine.Value, err error) (Outcome, error) {
	switch {
	case resp == nil:
		return Outcome{}, ModelError(err)
	case !resp.HasAnswer():
		return Outcome{Usage: TotalUsage(resp)}, ModelError(err)
	}
	v, unkept := recordedResponse(resp)
	if err == nil {
		err = unkept
	}
	return Outcome{Value: v, Usage: TotalUsage(resp), Manifest: manifest}, ModelError(err)
}

// nativeField is the field of an effect's result with the blocks that only their provider
// can read, as text, because they must be sent back byte for byte.
const nativeField = "native"

// recordedResponse converts a model's answer to its form in the journal.
func recordedResponse(resp *llm.Response) (engine.Value, error) {
	plain := *resp
	plain.Message.Native = nil
	v, err := engine.Normalize(&plain)
	if o, ok := v.(map[string]any); ok && resp.Message.Native != nil {
		o[nativeField] = string(resp.Message.Native)
	}
	return v, err
}

// readResponse reads the output of recordedResponse.
func readResponse(v engine.Value) (*llm.Response, error) {
	resp := new(llm.Response)
	if err := decodeValue(v, resp); err != nil {
		return nil, fmt.Errorf("read the recorded answer of a model: %w", err)
	}
	if o, ok := v.(map[string]any); ok {
		if native, ok := o[nativeField].(string); ok {
			resp.Message.Native = json.RawMessage(native)
		}
	}
	return resp, nil
}

// ModelError converts the error of a failed model call to the journal's form; other errors
// are returned unchanged.
func ModelError(err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		return err
	}
	return &engine.Error{Code: e.Code, Message: e.Message, Permanent: !e.Retry, RetryAfter: e.RetryAfter.Milliseconds()}
}

// Emit sends a piece of a model's answer to observers.
func (h llmHost) Emit(c llm.Chunk) { h.c.Emit(c) }

// EngineUsage returns the usage of one model call.
func EngineUsage(u llm.Usage) *engine.Usage {
	out := &engine.Usage{Calls: 1, Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, CostMicros: u.CostMicros}
	if u.Estimated {
		out.Estimated = 1
	}
	return out
}

// TotalUsage returns the usage of a call: its answer, if there is one, and the tries before
// it. It is nil if nothing was spent.
func TotalUsage(resp *llm.Response) *engine.Usage {
	lost := EngineUsage(resp.RetryCost.Usage)
	lost.Calls, lost.Estimated = resp.RetryCost.Tries, resp.RetryCost.Estimated
	if resp.HasAnswer() {
		sum := lost.Add(*EngineUsage(resp.Usage))
		return &sum
	}
	if lost.Calls == 0 {
		return nil
	}
	return lost
}

// ReserveOf returns the maximum that a model call may spend.
func ReserveOf(req *llm.Request) *Reserve {
	r := &Reserve{Usage: *EngineUsage(req.Estimate), OutputCost: req.OutputCost}
	r.Estimated = r.Calls
	if req.Unpriced {
		r.Unpriced = req.Provider + "/" + req.Model
	}
	return r
}

// decodeValue decodes a value into a struct.
func decodeValue(v engine.Value, into any) error {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}
