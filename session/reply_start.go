package session

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/store"
)

// ReplyStart is where in its session a reply of Session.Answer began. It can be kept as JSON.
type ReplyStart struct {
	Run string `json:"run"`
	// Length is that of the session; Commits and Events are those of the run.
	Length  int   `json:"length"`
	Commits int64 `json:"commits"`
	Events  int64 `json:"events"`
}

// Start returns where the reply began; its Run is "" while the message is queued.
func (t *Reply) Start() ReplyStart {
	t.mu.Lock()
	defer t.mu.Unlock()
	return ReplyStart{t.run, t.startLength, t.firstCommit, t.afterEvent}
}

// Reattach returns a reply of Session.Answer again, in any process, after a restart too. The error is store.ErrNotFound if its
// run is not one of the session.
func (s *Session) Reattach(ctx context.Context, at ReplyStart) (*Reply, error) {
	r, err := s.m.store.Run(ctx, at.Run)
	if err != nil {
		return nil, err
	}
	if r.Session != s.ID {
		return nil, fmt.Errorf("session %s: run %s: %w", s.ID, at.Run, store.ErrNotFound)
	}
	t := newReply(s, "", SendOptions{})
	t.attach(at.Run, s.m.held(at.Run), at.Length, at.Commits, at.Events)
	return t, s.m.drivers.watchRun(t)
}
