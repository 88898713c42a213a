package server

import (
	"slices"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
)

// contextCall is a model call with a context, whose request GET .../calls has.
type contextCall struct {
	Node   string `json:"node" doc:"The path of the node that made the call"`
	Call   string `json:"call" doc:"The key of the effect"`
	Input  int    `json:"input" doc:"Tokens that were sent"`
	Output int    `json:"output" doc:"Tokens of the answer"`
	Window int    `json:"window" doc:"The window of the model in tokens; 0 if it is not known"`
}

// lastCall returns the last model call whose node added the answer to a context, nil if none
// did.
func (c *call) lastCall(v *runner.RunView, context string) (*contextCall, error) {
	list := history.NewTimeline(v)
	added := make(map[string]bool) // by path
	for path, n := range list.Nodes {
		messages, err := app.AddedMessages(n.Contexts)
		if err != nil {
			return nil, err
		}
		added[path] = slices.ContainsFunc(messages, func(m app.ContextMessage) bool { return m.Context == context })
	}
	for _, e := range slices.Backward(modelEffects(v.Commits)) {
		path, _ := engine.SplitEffectKey(e.Key)
		if !added[path] {
			continue
		}
		out := &contextCall{Node: path, Call: e.Key, Input: e.Usage.Input, Output: e.Usage.Output}
		s := v.Contexts[context].Settings
		if m, known := c.app.Model(s.Provider, s.Model); known {
			out.Window = m.Window
		}
		if s.Window > 0 {
			out.Window = s.Window
		}
		return out, nil
	}
	return nil, nil
}
