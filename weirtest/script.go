package weirtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// Turn is one answer of the scripted model; Says, Calls and Fails make them.
type Turn struct {
	Message convo.Message
	Usage   llm.Usage
	// Error fails the call instead.
	Error *llm.Error
}

// Says is a turn for each text.
func Says(texts ...string) []Turn {
	turns := make([]Turn, len(texts))
	for i, s := range texts {
		turns[i].Message.Text = s
	}
	return turns
}

// Calls is a turn in which the model calls one tool; arguments are what
// encoding/json makes of them. It panics where that is an error: a mistake in
// the test.
func Calls(tool string, arguments any) Turn {
	b, err := json.Marshal(arguments)
	if err != nil {
		panic(fmt.Sprintf("weirtest.Calls %s: %v", tool, err))
	}
	return Turn{Message: convo.Message{Calls: []convo.Call{{Name: tool, Arguments: string(b)}}}}
}

// Fails is a turn that fails for good with that code, of those that llm.Error
// lists.
func Fails(code string) Turn {
	return Turn{Error: &llm.Error{Code: code, Message: "the script says so"}}
}

// script is a model that answers in the order it is called.
type script struct {
	turns []Turn
	model weir.Provider

	mu    sync.Mutex
	asked []*llm.Request
}

// Generate implements weir.Provider.
func (s *script) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, req)
	s.mu.Unlock()
	switch {
	case s.model != nil:
		return s.model.Generate(ctx, req, emit)
	case n >= len(s.turns):
		return nil, &llm.Error{
			Code:    "replay_divergence",
			Message: fmt.Sprintf("the script has %d turns and the model is called once more", len(s.turns)),
		}
	case s.turns[n].Error != nil:
		return nil, s.turns[n].Error
	}
	t := s.turns[n]
	m := t.Message
	m.Role = convo.Assistant
	m.Calls = slices.Clone(m.Calls)
	if m.Text != "" {
		emit(llm.Chunk{Text: m.Text})
	}
	return &llm.Response{Message: m, Usage: t.Usage}, nil
}

func (s *script) requests() []*llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}
