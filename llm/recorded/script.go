package recorded

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// Scripted answers with fixed texts: a request with n assistant messages gets text n+1. The answer depends only on
// the request, so that a repeated call has the same answer, and every context begins with the first text. It is safe
// for concurrent use.
type Scripted struct {
	turns []string
}

// NewScripted creates a provider with the assistant's turns, in order.
func NewScripted(turns ...string) *Scripted { return &Scripted{turns} }

// Generate returns the next text. After the last one the error is a *llm.Error with code replay_divergence.
func (s *Scripted) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	n := 0
	for _, m := range req.Messages {
		if m.Role == convo.Assistant {
			n++
		}
	}
	if n >= len(s.turns) {
		return nil, &llm.Error{
			Code:    engine.CodeReplayDivergence,
			Message: fmt.Sprintf("the script has %d turns, but the model was called for turn %d", len(s.turns), n+1),
		}
	}
	resp := &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: s.turns[n]}, Stop: llm.StopEnd, Unbilled: true}
	stream(resp, emit)
	return resp, nil
}
