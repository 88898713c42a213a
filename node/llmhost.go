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

// LLMHostAs is LLMHost for work apart from the rest of the attempt, such as what is
// done once the rest has failed: the names of its effects begin with prefix, and
// are numbered by themselves, so that neither moves the numbers of the other. A
// prefix ends with a dot, as "post.".
func (c *Ctx) LLMHostAs(prefix string) llm.Host {
	return toolHost{llmHost: llmHost{c, prefix}, gate: &approvalGate{c: c, prefix: prefix}}
}

// llmHost is an llm.Host but for the tool calls, which toolHost makes.
type llmHost struct {
	c      *Ctx
	prefix string // of the names of its effects
}

// Run is the id of the run.
func (h llmHost) Run() string { return h.c.info.Run }

// MustCount reports whether a budget binds the node.
func (h llmHost) MustCount() bool {
	b, ok := h.c.host.(interface{ Budgeted() bool })
	return ok && b.Budgeted()
}

// ModelCall runs a model call as the next effect named "model", or by its
// purpose. One of unknown
// outcome is made again: asking twice changes nothing but the bill.
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
	reserve := ReserveOf(req)
	v, err := h.c.Do(Effect{
		Name: h.prefix + cmp.Or(req.Purpose, "model"), Reserve: reserve, Text: req.Canonical, Digest: digest[:], Unknown: UnknownRetry,
		Do: func(ctx context.Context, key string) (Outcome, error) {
			if reserve.HasBudget {
				req.GrantedOutput = reserve.Output
			}
			if reserve.ReserveRetry != nil {
				req.AllowRetry = func(u llm.Usage) error { return reserve.ReserveRetry(*EngineUsage(u)) }
			}
			resp, err := do(ctx, key)
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
		},
	})
	if v == nil {
		return nil, err
	}
	resp, unread := readResponse(v)
	if unread != nil {
		return nil, unread
	}
	return resp, err
}

// nativeField is where an effect's result keeps the blocks that only their
// provider reads: as a text, since they go back to it byte for byte.
const nativeField = "native"

// recordedResponse is a model's answer as the journal keeps it.
func recordedResponse(resp *llm.Response) (engine.Value, error) {
	plain := *resp
	plain.Message.Native = nil
	v, err := engine.Normalize(&plain)
	if o, ok := v.(map[string]any); ok && resp.Message.Native != nil {
		o[nativeField] = string(resp.Message.Native)
	}
	return v, err
}

// readResponse is the answer that recordedResponse recorded.
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

// ModelError gives a failed model call the form of the journal's errors; other
// errors it returns as they are.
func ModelError(err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		return err
	}
	return &engine.Error{Code: e.Code, Message: e.Message, Permanent: !e.Retry}
}

// Emit streams a piece of a model's answer.
func (h llmHost) Emit(c llm.Chunk) { h.c.Emit(c) }

// EngineUsage is what one model call cost.
func EngineUsage(u llm.Usage) *engine.Usage {
	out := &engine.Usage{Calls: 1, Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, CostMicros: u.CostMicros}
	if u.Estimated {
		out.Estimated = 1
	}
	return out
}

// TotalUsage is what a call cost: its answer, if one came, and the tries before it. It
// is nil where nothing was spent.
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

// ReserveOf is what a model call may spend at most.
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
