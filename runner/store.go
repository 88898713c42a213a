package runner

import (
	"context"
	"iter"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Journal keeps runs.
type Journal interface {
	Create(ctx context.Context, r store.NewRun) error
	// Append commits all or refuses some; the errors are by element.
	Append(ctx context.Context, as []store.Append) []error
	Commits(ctx context.Context, run string, afterSeq int64) iter.Seq2[engine.Commit, error]
	Run(ctx context.Context, id string) (store.Run, error)
	Messages(ctx context.Context, run, conversation string, from, to int) ([]convo.Message, error)
	// FindMessage returns the position of a message below n, -1 for none.
	FindMessage(ctx context.Context, run, conversation, message string, n int) (int, error)
}

// Checkpoints keeps discardable snapshots.
type Checkpoints interface {
	SaveCheckpoint(ctx context.Context, c store.Checkpoint) error
	Checkpoint(ctx context.Context, run string) (store.Checkpoint, error)
}

// Leases says who owns a run.
type Leases interface {
	Acquire(ctx context.Context, run, owner string, ttl time.Duration, now time.Time) (store.Lease, error)
	// Seize is Acquire from an owner that is known to be dead.
	Seize(ctx context.Context, run, from, owner string, ttl time.Duration, now time.Time) (store.Lease, error)
	Renew(ctx context.Context, ls []store.Lease, ttl time.Duration, now time.Time) (lost []string, err error)
	Release(ctx context.Context, l store.Lease) error
}

// Inbox brings messages from processes that do not own the run.
type Inbox interface {
	// PostsForOwner returns the messages to all runs that owner has, the oldest first.
	PostsForOwner(ctx context.Context, owner string) ([]store.Post, error)
	RemovePosts(ctx context.Context, ids []int64) error
}

// Store is all that the local runner needs kept.
type Store interface {
	Journal
	Checkpoints
	Leases
	Inbox
}

// instantStore is implemented by stores whose Append is so cheap that commits need
// not be gathered.
type instantStore interface {
	Instant()
}
