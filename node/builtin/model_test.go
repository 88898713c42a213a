package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// orderedModel is a model that answers with its turns, in the order it is called,
// and keeps what it was asked. A turn that begins with "call NAME " calls that
// tool with the rest as its arguments; one that begins with "fail " is an error
// of that code.
type orderedModel struct {
	turns []string

	mu    sync.Mutex
	asked []*llm.Request
}

func models(p weir.Provider) map[string]weir.Provider { return map[string]weir.Provider{"script": p} }

// Generate gives the next turn.
func (p *orderedModel) Generate(_ context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.asked)
	p.asked = append(p.asked, req)
	if n >= len(p.turns) {
		return nil, &llm.Error{Code: "replay_divergence", Message: "there are no more turns"}
	}
	turn := p.turns[n]
	if code, ok := strings.CutPrefix(turn, "fail "); ok {
		return nil, &llm.Error{Code: code, Message: "no"}
	}
	m := convo.Message{Role: convo.Assistant, Text: turn}
	if rest, ok := strings.CutPrefix(turn, "call "); ok {
		name, args, _ := strings.Cut(rest, " ")
		m = convo.Message{
			Role: convo.Assistant, Calls: []convo.Call{{ID: "c", Name: name, Arguments: args}},
			Native: json.RawMessage(`{"z":1.0,"a":12345678901234567890}`),
		}
	}
	emit(llm.Chunk{Text: m.Text})
	return &llm.Response{Message: m, Usage: llm.Usage{Input: 10, Output: 2}, Stop: "end"}, nil
}

// said returns what the model was given at its n-th call, from 0, as "role: text".
func (p *orderedModel) said(n int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n >= len(p.asked) {
		return []string{errors.New("not called").Error()}
	}
	var out []string
	for _, m := range p.asked[n].Messages {
		out = append(out, string(m.Role)+": "+m.Text)
	}
	return out
}
