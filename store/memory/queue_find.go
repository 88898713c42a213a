package memory

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/store"
)

// FindQueued implements store.SessionStore.
func (s *Store) FindQueued(ctx context.Context, id string) (store.QueuedMessage, error) {
	if err := s.checkOpen(ctx); err != nil {
		return store.QueuedMessage{}, err
	}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	q := s.sessions.messages[id]
	if q == nil {
		return store.QueuedMessage{}, fmt.Errorf("message %s: %w", id, store.ErrNotFound)
	}
	return *q, nil
}
