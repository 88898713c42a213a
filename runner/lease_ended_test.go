package runner_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// observedStore counts acquired leases. Where gate is set, an acquired lease is returned
// once the gate is closed.
type observedStore struct {
	*memory.Store
	acquired atomic.Int64
	gate     chan struct{}
}

func (s *observedStore) Acquire(ctx context.Context, id, owner string, ttl time.Duration) (store.Lease, error) {
	l, err := s.Store.Acquire(ctx, id, owner, ttl)
	s.acquired.Add(1)
	if s.gate != nil {
		<-s.gate
	}
	return l, err
}

func (s *observedStore) owner(t *testing.T, run string) string {
	t.Helper()
	row, err := s.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return row.Owner
}

func TestEndedRunIsLoadedWithoutItsLease(t *testing.T) {
	t.Parallel()
	st := &observedStore{Store: memory.New()}
	l := runner.NewLocal(runner.Options{Store: st})
	p := eventsProgram(t)
	if _, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"}); err != nil {
		t.Fatal(err)
	}
	x, err := l.Do(t.Context(), p, "r", runner.Cancel("somebody", ""))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := x.Wait(t.Context()); err != nil || r.Status != engine.Cancelled {
		t.Fatalf("the run is %s, %v", r.Status, err)
	}
	before := st.acquired.Load()
	if x, err = l.Resume(t.Context(), p, "r"); err != nil {
		t.Fatal(err)
	}
	if r, err := x.Wait(t.Context()); err != nil || r.Status != engine.Cancelled {
		t.Errorf("resumed it is %s, %v", r.Status, err)
	}
	if _, err := l.Do(t.Context(), p, "r", runner.Signal("one", "x", "late")); !errors.Is(err, runner.ErrNoInterrupt) {
		t.Errorf("a late event: %v", err)
	}
	if n := st.acquired.Load() - before; n != 0 {
		t.Errorf("the lease of an ended run was acquired %d times", n)
	}
	if owner := st.owner(t, "r"); owner != "" {
		t.Errorf("the ended run is owned by %q", owner)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCloseWaitsForARunThatIsBeingLoaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := &observedStore{Store: memory.New()}
		p := eventsProgram(t)
		first := runner.NewLocal(runner.Options{Store: st})
		if _, err := first.Start(t.Context(), p, runner.StartOptions{ID: "r"}); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		st.gate = make(chan struct{})
		second := runner.NewLocal(runner.Options{Store: st})
		loaded, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := second.Resume(t.Context(), p, "r")
			loaded <- err
		}()
		synctest.Wait()
		go func() { closed <- second.Close(t.Context()) }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Errorf("Close has returned while the run is owned by %q", st.owner(t, "r"))
		}
		close(st.gate)
		if err := <-loaded; !errors.Is(err, runner.ErrClosed) {
			t.Errorf("loading while the runner closes: %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if owner := st.owner(t, "r"); owner != "" {
			t.Errorf("the run is owned by %q after Close", owner)
		}
	})
}
