package history

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
)

// ContextStart says which messages of a conversation come before the ones that a model
// call could be shown.
type ContextStart struct {
	Messages int    `json:"messages"` // before the context
	Of       int    `json:"of"`       // in the conversation
	Why      string `json:"why"`
}

// ContextStartOf returns what was before the context of a node, as it was when the node was
// last entered, by the event with the number entered. It is nil if the context begins with
// its first message. v is the run as it was after that event.
func ContextStartOf(v *runner.RunView, entered int64) *ContextStart {
	x, ok := v.Contexts[contextAt(v, entered)]
	if !ok || x.Epoch == 0 {
		return nil
	}
	e := &ContextStart{Messages: x.Epoch, Of: x.History.Len(), Why: "a node has reset the context"}
	if s := v.Run.Start; s.Session != "" && len(s.Contexts) > 0 && x.Epoch <= s.Contexts[0].At {
		e.Why = sessionLimitsOf(v.Run.Plan().Flow)
	}
	return e
}

// contextAt returns the context that a node may write, when it was entered by this event;
// the main context if it writes none.
func contextAt(v *runner.RunView, entered int64) string {
	for _, c := range v.Commits {
		i := entered - c.First
		if i < 0 || i >= int64(len(c.Events)) {
			continue
		}
		var grants []string
		switch e := c.Events[i].(type) {
		case *engine.NodeStarted:
			grants = e.Grants
		case *engine.NodeResumed:
			grants = e.Grants
		}
		if len(grants) > 0 {
			return grants[0]
		}
	}
	return engine.MainContext
}

// sessionLimitsOf says why a round does not begin with the whole history of its session.
func sessionLimitsOf(f *flow.Flow) string {
	var caps []string
	if n := f.Session.MaxMessages; n > 0 {
		caps = append(caps, fmt.Sprintf("maxMessages: %d", n))
	}
	if n := f.Session.MaxTokens; n > 0 {
		caps = append(caps, fmt.Sprintf("maxTokens: %d", n))
	}
	if caps == nil {
		return "the context was reset in an earlier round"
	}
	return "the flow's session: {" + strings.Join(caps, ", ") + "} bounds what a round begins with"
}
