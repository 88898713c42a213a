package runner_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// brieflyOwnedStore has a run owned by another process for a moment after another run has
// recorded an answer: a commit that takes the run is refused, and so are two
// acquisitions: for the child run, and for the command.
type brieflyOwnedStore struct {
	weir.Store
	run string

	mu       sync.Mutex
	answered bool
	refused  int
}

func (s *brieflyOwnedStore) Append(ctx context.Context, as []store.Append) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered && s.refused < 2 && as[0].Commit.Run == s.run {
		return slices.Repeat([]error{store.ErrFenced}, len(as))
	}
	for _, a := range as {
		_, answer := a.Commit.Events[0].(*engine.InterruptAnswered)
		s.answered = s.answered || answer && a.Commit.Run != s.run
	}
	return s.Store.Append(ctx, as)
}

func (s *brieflyOwnedStore) Acquire(ctx context.Context, id, owner string, ttl time.Duration) (store.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered && s.refused < 2 && id == s.run {
		s.refused++
		return store.Lease{}, fmt.Errorf("%w: another process", store.ErrOwned)
	}
	return s.Store.Acquire(ctx, id, owner, ttl)
}

func TestAnswerRecordedByChildRunIsNotDeliveredTwice(t *testing.T) {
	t.Parallel()
	kept := memory.New()
	first := weirkit.OpenForkWeir(t, kept, &weirkit.EchoModel{})
	run, err := first.Start(t.Context(), weirkit.LoadForkFlow(t, first, "child"), weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &brieflyOwnedStore{Store: kept, run: "r"}
	second := weirkit.OpenForkWeir(t, s, &weirkit.EchoModel{})
	run, err = second.Answer(t.Context(), "r", r.Interrupts[0].ID, "well", "")
	if err != nil {
		t.Fatal(err)
	}
	if s.refused < 2 {
		t.Fatal("the run was not acquired anew after the answer")
	}
	if r := weirkit.AnswerAll(t, second, run); r.Status != engine.Completed {
		t.Fatalf("%+v", r)
	}
}
