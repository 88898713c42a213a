package runner_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// cancelledStore is a store whose reader goes away while it reads a run, and which does
// nothing for a context that has ended, as a database.
type cancelledStore struct {
	*memory.Store
	cancel context.CancelFunc
}

func (i *cancelledStore) Commits(ctx context.Context, run string, after int64) iter.Seq2[engine.Commit, error] {
	if i.cancel == nil {
		return i.Store.Commits(ctx, run, after)
	}
	return func(yield func(engine.Commit, error) bool) {
		i.cancel()
		yield(engine.Commit{}, ctx.Err())
	}
}

func (i *cancelledStore) Release(ctx context.Context, l store.Lease) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.Store.Release(ctx, l)
}

func TestLeaseIsReleasedWhenLoadingIsCancelled(t *testing.T) {
	t.Parallel()
	st := &cancelledStore{Store: memory.New()}
	p := eventsProgram(t)
	first := runner.NewLocal(runner.Options{Store: st})
	if _, err := first.Start(t.Context(), p, runner.StartOptions{ID: "r"}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := runner.NewLocal(runner.Options{Store: st})
	ctx, cancel := context.WithCancel(t.Context())
	st.cancel = cancel
	if _, err := second.Resume(ctx, p, "r"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	row, err := st.Run(t.Context(), "r")
	if err != nil || row.Owner != "" {
		t.Errorf("the run is owned by %q, %v", row.Owner, err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
