package sqlite

import (
	"context"

	"github.com/weir-run/weir/store"
)

// FindQueued returns a message by its id, whether it waits or was taken;
// store.ErrNotFound if there is none, or it was taken back.
func (s *Store) FindQueued(ctx context.Context, id string) (store.QueuedMessage, error) {
	q, err := findQueued(ctx, s.reader, id)
	return q, s.wrap("message "+id, err)
}
