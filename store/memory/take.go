package memory

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/store"
)

// FindQueued returns a message by its id, whether it waits or was taken;
// store.ErrNotFound where there is none, or it was taken back.
func (s *Store) FindQueued(ctx context.Context, id string) (store.Queued, error) {
	if err := s.open(ctx); err != nil {
		return store.Queued{}, err
	}
	s.talks.mu.Lock()
	defer s.talks.mu.Unlock()
	q := s.talks.messages[id]
	if q == nil {
		return store.Queued{}, fmt.Errorf("message %s: %w", id, store.ErrNotFound)
	}
	return *q, nil
}
