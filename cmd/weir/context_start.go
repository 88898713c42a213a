package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// contextStart is what of a conversation was before all that a model could be shown.
type contextStart struct {
	Messages int    `json:"messages"` // the first of them
	Of       int    `json:"of"`       // how many there were
	Why      string `json:"why"`
}

// contextStartOf says what was before a node's context began anew, as it was when the
// node was entered last; nil where nothing was.
func (d *application) contextStartOf(ctx context.Context, run string, entered int64) (*contextStart, error) {
	v, err := d.Inspect(ctx, run, entered)
	if err != nil {
		return nil, err
	}
	x, ok := v.Contexts[contextAt(v, entered)]
	if !ok || x.Epoch == 0 {
		return nil, nil
	}
	e := &contextStart{Messages: x.Epoch, Of: x.History.Len(), Why: "a node has reset the context"}
	if s := v.Run.Start; s.Session != "" && len(s.Contexts) > 0 && x.Epoch <= s.Contexts[0].At {
		f, err := d.FlowOf(ctx, run)
		if err != nil {
			return nil, err
		}
		e.Why = sessionCapsOf(f)
	}
	return e, nil
}

// contextAt is the context that the node may write that an event entered, the
// main one where it writes none.
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

// sessionCapsOf says why a round of a session does not begin with all of its history.
func sessionCapsOf(f *weir.Flow) string {
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

// line says what was not sent.
func (e *contextStart) line() string {
	if e.Messages == 1 {
		return fmt.Sprintf("message 1 of %d", e.Of)
	}
	return fmt.Sprintf("messages 1 to %d of %d", e.Messages, e.Of)
}
