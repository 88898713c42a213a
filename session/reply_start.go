package session

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// ReplyStart identifies a reply, in any process. It can be kept as JSON.
type ReplyStart struct {
	// Message is the id of the message that the reply is to, "" for a reply of Session.Answer.
	Message string `json:"message,omitempty"`
	// Run is the run that took the message, "" while it is queued. A message identifies its reply without Run and the numbers.
	Run string `json:"run"`
	// Length is that of the session; Commits and Events are those of the run.
	Length  int   `json:"length"`
	Commits int64 `json:"commits"`
	Events  int64 `json:"events"`
}

// Start returns what identifies the reply, and where it began.
func (t *Reply) Start() ReplyStart {
	t.mu.Lock()
	defer t.mu.Unlock()
	return ReplyStart{t.Message, t.run, t.startLength, t.firstCommit, t.afterEvent}
}

// ReplyTo returns a reply again: to a message that was sent to the session, or to the fork that was made for it, or of
// Session.Answer, in any process, after a restart too. by is recorded as the sender of a cancellation. The error is
// store.ErrNotFound if there is no such message, or the run is not one of the session.
func (s *Session) ReplyTo(ctx context.Context, at ReplyStart, by string) (*Reply, error) {
	if at.Message == "" {
		r, err := s.m.store.Run(ctx, at.Run)
		if err != nil {
			return nil, err
		}
		if r.Session != s.ID {
			return nil, fmt.Errorf("session %s: run %s: %w", s.ID, at.Run, store.ErrNotFound)
		}
		return s.replyOfAnswer(at, s.m.held(at.Run), SendOptions{By: by})
	}
	known, err := s.m.store.FindQueued(ctx, at.Message)
	if err != nil {
		return nil, fmt.Errorf("session %s: message %s: %w", s.ID, at.Message, err)
	}
	t, err := s.replyTo(ctx, &known, SendOptions{ID: at.Message, By: by})
	if err != nil {
		return nil, err
	}
	return s.m.drivers.add(t)
}

// replyOfAnswer returns a reply that no message started. x executes the run, nil if another process does.
func (s *Session) replyOfAnswer(at ReplyStart, x *runner.Execution, o SendOptions) (*Reply, error) {
	t := newReply(s, "", o)
	t.attach(at.Run, x, at.Length, at.Commits, at.Events)
	return t, s.m.drivers.watchRun(t)
}
