package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// leaseCountingStore counts how often runs change hands in writes of their own.
type leaseCountingStore struct {
	*sqlite.Store
	transfers atomic.Int64
}

// Acquire counts.
func (h *leaseCountingStore) Acquire(ctx context.Context, run, owner string, ttl time.Duration) (store.Lease, error) {
	h.transfers.Add(1)
	return h.Store.Acquire(ctx, run, owner, ttl)
}

// Release counts.
func (h *leaseCountingStore) Release(ctx context.Context, l store.Lease) error {
	h.transfers.Add(1)
	return h.Store.Release(ctx, l)
}

const twoQuestions = `
weir: 1
name: two
nodes:
  first: {type: userInput}
  second: {type: userInput, after: first}
outputs: {said: "{{ first.text }}, {{ second.text }}"}
`

// waitForQuestion starts the flow of two questions and returns the first.
func waitForQuestion(t *testing.T, w *weir.Weir) string {
	t.Helper()
	run, err := w.Start(t.Context(), weirkit.Parse(t, w, twoQuestions), weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || len(r.Interrupts) != 1 {
		t.Fatal(r, err)
	}
	return r.Interrupts[0].ID
}

func TestTurnCommitsAcquireAndReleasePausedRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.db")
	var ask string
	for i := range 2 { // the second process has nothing in memory
		s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := &leaseCountingStore{Store: s}
		w := weirkit.Open(t, weir.Options{Store: h})
		if i == 0 {
			ask = waitForQuestion(t, w)
		}
		before := h.transfers.Load()
		run, err := w.Answer(t.Context(), "r", ask, "x", "")
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := h.transfers.Load() - before; n != 0 {
			t.Errorf("in process %d the run changed hands %d times by a write of its own", i+1, n)
		}
		if row, err := s.Run(t.Context(), "r"); err != nil || row.Owner != "" {
			t.Errorf("after process %d %q has the run: %v", i+1, row.Owner, err)
		}
		if i == 0 {
			ask = r.Interrupts[0].ID
		} else if r.Status != engine.Completed {
			t.Errorf("the run is %s", r.Status)
		}
	}
}

func TestStaleProcessReadsCommitsOfOthers(t *testing.T) {
	all := openProcesses(t, 2, &weirkit.LastRequestModel{})
	first := waitForQuestion(t, all[0])
	second := answerAndWait(t, all[1], first, "one")
	r, err := second.Wait(t.Context())
	if err != nil || len(r.Interrupts) != 1 {
		t.Fatal(r, err)
	}
	if _, err := all[0].Answer(t.Context(), "r", first, "again", ""); !errors.Is(err, runner.ErrNoInterrupt) {
		t.Errorf("answering what is answered: %v", err)
	}
	last := answerAndWait(t, all[0], r.Interrupts[0].ID, "two")
	if r, err = last.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Fatal(r, err)
	}
	if said, _ := r.Outputs.Get("said"); said != "one, two" {
		t.Errorf("said %v", said)
	}
}

func TestOneOfTwoConcurrentAnswersIsAccepted(t *testing.T) {
	for range 10 {
		all := openProcesses(t, 2, &weirkit.LastRequestModel{})
		ask := waitForQuestion(t, all[0])
		if _, err := all[1].Resume(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, len(all))
		for _, w := range all {
			go func() {
				run, err := w.Answer(context.WithoutCancel(t.Context()), "r", ask, "x", "")
				if err == nil {
					_, err = run.Wait(context.WithoutCancel(t.Context()))
				}
				errs <- err
			}()
		}
		taken := 0
		for range all {
			err := <-errs
			if err == nil {
				taken++
			} else if !errors.Is(err, runner.ErrNoInterrupt) && !errors.Is(err, store.ErrOwned) {
				t.Error(err)
			}
		}
		if taken != 1 {
			t.Errorf("%d answers were taken", taken)
		}
	}
}
