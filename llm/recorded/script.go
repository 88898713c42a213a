package recorded

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// Scripted answers with fixed texts: a request that holds n messages of the
// assistant is given text n+1. What it answers depends on the request alone,
// so that a call that is asked for again after a crash has the same answer,
// and every context begins at the first text. It may be used by any number of
// goroutines.
type Scripted struct {
	turns []string
}

// NewScripted makes a provider of the assistant's turns, in order.
func NewScripted(turns ...string) *Scripted { return &Scripted{turns} }

// Generate returns the next text. After the last it is a *llm.Error with code
// replay_divergence.
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
			Message: fmt.Sprintf("the script has %d turns and is asked for turn %d", len(s.turns), n+1),
		}
	}
	resp := &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: s.turns[n]}, Stop: "end", Unbilled: true}
	stream(resp, emit)
	return resp, nil
}
