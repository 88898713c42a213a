package sqlite

import (
	"context"

	"github.com/weir-run/weir/store"
)

// FindQueued returns a message by its id, whether it waits or was taken;
// store.ErrNotFound where there is none, or it was taken back.
func (s *Store) FindQueued(ctx context.Context, id string) (store.Queued, error) {
	q, err := findQueued(ctx, s.reader, id)
	return q, s.wrap("message "+id, err)
}

// TakeQueued notes that a message which waits has answered a question of a run;
// its value is in that run's journal. store.ErrNotFound where it does not wait,
// or there is no such run.
func (s *Store) TakeQueued(ctx context.Context, id, run string) error {
	n, err := s.exec(ctx, "take message "+id, `UPDATE queue SET run = (SELECT num FROM run WHERE id = ?2), value = NULL
		WHERE id = ?1 AND run IS NULL AND EXISTS (SELECT 1 FROM run WHERE id = ?2)`, id, run)
	return found("message "+id+" in a queue", n, err)
}
