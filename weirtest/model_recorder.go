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
	"github.com/weir-run/weir/llm/recorded"
)

// Turn is one answer of the scripted model; Says, Calls and Fails create turns.
type Turn = recorded.Turn

// Says returns a turn for each text.
func Says(texts ...string) []Turn {
	turns := make([]Turn, len(texts))
	for i, s := range texts {
		turns[i].Message.Text = s
	}
	return turns
}

// Calls returns a turn in which the model calls one tool; arguments are encoded with encoding/json. It panics if they
// cannot be encoded, which is a mistake in the test.
func Calls(tool string, arguments any) Turn {
	b, err := json.Marshal(arguments)
	if err != nil {
		panic(fmt.Sprintf("weirtest.Calls %s: %v", tool, err))
	}
	return Turn{Message: convo.Message{Calls: []convo.Call{{Name: tool, Arguments: string(b)}}}}
}

// Fails returns a turn that fails permanently with a code, one of those that llm.Error lists.
func Fails(code string) Turn {
	return Turn{Error: &llm.Error{Code: code, Message: "the script says so"}}
}

// modelRecorder answers with the test's own model, or with the turns in the order of the calls.
type modelRecorder struct {
	model weir.Provider

	mu       sync.Mutex
	recorded []*llm.Request
}

func newModelRecorder(c *Case) *modelRecorder {
	if c.Model != nil {
		return &modelRecorder{model: c.Model}
	}
	return &modelRecorder{model: recorded.NewScriptedTurns(c.Script, nil)}
}

// Generate implements weir.Provider.
func (s *modelRecorder) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	s.mu.Lock()
	s.recorded = append(s.recorded, req)
	s.mu.Unlock()
	return s.model.Generate(ctx, req, emit)
}

func (s *modelRecorder) requests() []*llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.recorded)
}
