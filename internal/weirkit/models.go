package weirkit

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// ErrDied is the error of operations in a process that the test has killed.
var ErrDied = errors.New("the process died")

// LookingModel calls the tool look once in each turn, and records its requests in
// canonical form.
type LookingModel struct{ Requests []string }

// Generate implements weir.Provider.
func (h *LookingModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	sent, err := req.Canonical()
	if err != nil {
		return nil, err
	}
	h.Requests = append(h.Requests, string(sent))
	m := convo.Message{Role: convo.Assistant, Text: "Seen."}
	if req.Messages[len(req.Messages)-1].Role != convo.Tool {
		m = convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: fmt.Sprint("c", len(h.Requests)), Name: "look", Arguments: "{}"}}}
	}
	return &llm.Response{Message: m}, nil
}

// LastRequestModel answers with the number of the turn, and keeps the texts of the last
// request.
type LastRequestModel struct{ Last []string }

// Generate implements weir.Provider.
func (h *LastRequestModel) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	h.Last = nil
	for _, m := range r.Messages {
		h.Last = append(h.Last, m.Text)
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: fmt.Sprint("answer ", len(r.Messages)/2+1)}}, nil
}
