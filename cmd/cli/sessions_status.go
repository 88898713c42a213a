package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// holdersOf returns the rounds that have not ended, by session.
func (a *application) holdersOf(ctx context.Context, list []store.Session) (map[string]*store.Run, error) {
	out := make(map[string]*store.Run)
	for i := range list {
		s := &list[i]
		if s.Holder == "" {
			continue
		}
		r, err := a.Store.Run(ctx, s.Holder)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[s.ID] = &r
	}
	return out, nil
}

// sessionStatus says how it stands with a session: what its round does, and how many
// messages wait; "" if the session is idle.
func sessionStatus(s *store.Session, holder *store.Run) string {
	var parts []string
	if holder != nil {
		parts = append(parts, fmt.Sprintf("round %d: %s", s.Rounds, roundStatus(holder)))
	}
	if s.Queued > 0 {
		parts = append(parts, messagesWait(s.Queued))
	}
	return strings.Join(parts, "; ")
}

// roundStatus says what a round that has not ended does.
func roundStatus(r *store.Run) string {
	switch {
	case r.Head.Status == engine.Paused && len(r.Head.Waiting) > 0:
		i := r.Head.Waiting[0]
		what := "waits for " + cmp.Or(shorten(i.Prompt, 50), i.ID)
		if more := len(r.Head.Waiting) - 1; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		return what
	case app.IsInterrupted(r):
		return "no process executes it; the next chat continues it"
	}
	return "runs in another process, " + runner.OwnerName(r.Owner)
}
