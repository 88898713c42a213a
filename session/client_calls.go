package session

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// ClientCall is a call of a tool of the client (RoundSettings.ClientTools) that a round waits for.
type ClientCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the JSON text that the model wrote.
	Arguments string `json:"arguments"`
	// Interrupt is the question that the output of the call answers; see Session.Answer.
	Interrupt string `json:"-"`
}

// ClientCallOf returns the call that a question of a run is, nil for any other question.
func ClientCallOf(q *engine.Interrupt) *ClientCall {
	forms, _ := q.Schema["anyOf"].([]any)
	if q.Kind != engine.AwaitInput || len(forms) == 0 {
		return nil
	}
	form, _ := forms[0].(map[string]any)
	data, err := json.Marshal(form[convo.ClientCallKey])
	call := &ClientCall{Interrupt: q.ID}
	if err != nil || json.Unmarshal(data, call) != nil || call.ID == "" {
		return nil
	}
	return call
}

// ClientCallsOf returns the calls among the open questions of a run, in the order in which a model made them: their questions are
// opened in any order, and end with the number of the call.
func ClientCallsOf(open []engine.Interrupt) (out []*ClientCall) {
	for i := range open {
		if call := ClientCallOf(&open[i]); call != nil {
			out = append(out, call)
		}
	}
	slices.SortFunc(out, func(a, b *ClientCall) int {
		return cmp.Or(cmp.Compare(len(a.Interrupt), len(b.Interrupt)), cmp.Compare(a.Interrupt, b.Interrupt))
	})
	return out
}
