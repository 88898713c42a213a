package session

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Delete deletes the session for good: its messages, its rounds, its queue and its
// forks. The error is store.ErrOwned while a live process executes a round.
func (s *Session) Delete(ctx context.Context) (store.DeleteResult, error) {
	return s.m.Delete(ctx, s.ID, store.DeleteOptions{})
}

// Delete is Session.Delete by id. A zero Now means the present time of the store.
func (m *Manager) Delete(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	gone, err := m.deletion(ctx, e, func(e store.DeleteOptions) (store.DeleteResult, error) { return m.store.DeleteSession(ctx, id, e) })
	if err == nil && !e.DryRun && m.deleted != nil {
		err = m.deleted(ctx, append(gone.Forks, store.Tree{Session: id}))
	}
	return gone, err
}

// Find returns the id of the one session whose id begins with prefix. The error is
// store.ErrNotFound if there is none.
func (m *Manager) Find(ctx context.Context, prefix string) (string, error) {
	if _, err := m.store.Session(ctx, prefix); err == nil {
		return prefix, nil
	}
	found, err := m.store.Sessions(ctx, store.SessionFilter{Prefix: prefix, Limit: 1000})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0 || prefix == "":
		return "", fmt.Errorf("session %s: %w", prefix, store.ErrNotFound)
	case len(found) > 1:
		return "", &engine.Error{
			Code: engine.CodeUsage, Permanent: true,
			Message: fmt.Sprintf("%d sessions begin with %q, as %s and %s; give more of it", len(found), prefix, found[0].ID, found[1].ID),
		}
	}
	return found[0].ID, nil
}
