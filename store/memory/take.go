package memory

import (
	"context"
	"fmt"
	"slices"

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

// TakeQueued notes that a message which waits has answered a question of a run;
// its value is in that run's journal. store.ErrNotFound where it does not wait,
// or there is no such run.
func (s *Store) TakeQueued(ctx context.Context, id, run string) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	t := &s.talks
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.messages[id]
	if q == nil || q.Run != "" {
		return fmt.Errorf("message %s: %w in a queue", id, store.ErrNotFound)
	}
	if _, err := s.run(ctx, run); err != nil {
		return err
	}
	q.Run, q.Value = run, nil
	t.queue = slices.DeleteFunc(t.queue, func(x *store.Queued) bool { return x == q })
	return nil
}
