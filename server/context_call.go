package server

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
)

// contextCall is a model call with a context, whose request GET .../calls has.
type contextCall struct {
	Node   string `json:"node" doc:"The path of the node that made the call"`
	Call   string `json:"call" doc:"The key of the effect"`
	Input  int    `json:"input" doc:"Tokens that were sent"`
	Output int    `json:"output" doc:"Tokens of the answer"`
	Window int    `json:"window" doc:"The window of the model in tokens; 0 if it is not known"`
}

// lastCalls returns the last model call with each context: the last one of a node that added messages to it. The
// windows are left out.
func lastCalls(commits []engine.Commit, list *history.Timeline) map[string]*contextCall {
	out := make(map[string]*contextCall)
	for _, e := range modelEffects(commits) {
		path, _ := engine.SplitEffectKey(e.Key)
		n := list.Nodes[path]
		if n == nil {
			continue
		}
		for _, x := range n.Contexts {
			if x.Adds > 0 {
				out[x.ID] = &contextCall{Node: path, Call: e.Key, Input: e.Usage.Input, Output: e.Usage.Output}
			}
		}
	}
	return out
}

// windowOf returns the window of a context's model in tokens, 0 if it is not known.
func (c *call) windowOf(s convo.Settings) int {
	if s.Window > 0 {
		return s.Window
	}
	m, _ := c.app.Model(s.Provider, s.Model)
	return m.Window
}
