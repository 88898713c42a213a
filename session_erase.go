package weir

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
)

// Delete deletes the session for good: its messages, rounds, what waits for it,
// and its forks. store.ErrOwned says that a live process works on a round.
func (s *Session) Delete(ctx context.Context) (store.DeleteResult, error) {
	return s.w.DeleteSession(ctx, s.ID, store.DeleteOptions{})
}

// DeleteSession is Session.Delete by id. A zero Now is the present.
func (w *Weir) DeleteSession(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	gone, err := w.store.DeleteSession(ctx, id, withCurrentTime(e))
	if err == nil && !e.DryRun {
		err = w.deleteTrajectories(ctx, append(gone.Forks, store.Tree{Session: id}))
	}
	return gone, err
}

// DeleteUser deletes all that is kept of a user for good: sessions, runs and what
// shares a past with them, trajectories, and what was remembered of them.
func (w *Weir) DeleteUser(ctx context.Context, user string, e store.DeleteOptions) (store.DeleteResult, error) {
	gone, err := w.store.DeleteUser(ctx, user, withCurrentTime(e))
	if err == nil && !e.DryRun && w.trajectories != nil {
		_, err = w.trajectories.Delete(ctx, trajectory.Filter{User: &user})
	}
	if err == nil && !e.DryRun {
		err = w.deleteTrajectories(ctx, gone.Forks)
	}
	return gone, err
}

func withCurrentTime(e store.DeleteOptions) store.DeleteOptions {
	if e.Now.IsZero() {
		e.Now = time.Now()
	}
	return e
}

// PruneSessions deletes sessions that have expired, and others as p says. A zero
// Now is the present.
func (w *Weir) PruneSessions(ctx context.Context, p store.PruneOptions) (store.DeleteResult, error) {
	if p.Now.IsZero() {
		p.Now = time.Now()
	}
	gone, err := w.store.PruneSessions(ctx, p)
	if err == nil && !p.DryRun && gone.Sessions > 0 {
		err = w.deleteOrphanedTrajectories(ctx)
	}
	return gone, err
}

// FindSession returns the id of the one session whose id begins with prefix;
// store.ErrNotFound where there is none.
func (w *Weir) FindSession(ctx context.Context, prefix string) (string, error) {
	if _, err := w.store.Session(ctx, prefix); err == nil {
		return prefix, nil
	}
	found, err := w.store.Sessions(ctx, store.SessionFilter{Prefix: prefix, Limit: 1000})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0 || prefix == "":
		return "", fmt.Errorf("session %s: %w", prefix, store.ErrNotFound)
	case len(found) > 1:
		return "", &Error{
			Code: engine.CodeUsage, Permanent: true,
			Message: fmt.Sprintf("%d sessions begin with %q, as %s and %s; give more of it", len(found), prefix, found[0].ID, found[1].ID),
		}
	}
	return found[0].ID, nil
}

// ForkSession is Session.Fork by id; it returns the new session's.
func (w *Weir) ForkSession(ctx context.Context, id string, at int) (string, error) {
	row, err := w.store.Session(ctx, id)
	if err != nil {
		return "", err
	}
	s, err := w.session(&row, nil).Fork(ctx, at)
	if err != nil {
		return "", err
	}
	return s.ID, nil
}
