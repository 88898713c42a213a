package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
)

// deadStore is a store of which a process makes no further call that writes.
type deadStore struct {
	*store.Full
	dead atomic.Bool
}

var errDead = errors.New("the process has died")

func (s *deadStore) Append(ctx context.Context, a []store.Append) []error {
	if !s.dead.Load() {
		return s.Full.Append(ctx, a)
	}
	errs := make([]error, len(a))
	for i := range errs {
		errs[i] = errDead
	}
	return errs
}

func (s *deadStore) Create(ctx context.Context, n store.NewRun) error {
	if n.Base != nil {
		return errors.New("a fork is stored without a commit")
	}
	return s.Full.Create(ctx, n)
}

// TestForkThatDiesIsNotInTheStore: a fork is in the store from its first commit on, from which recovery continues it. Before,
// there is nothing that would have to be found.
func TestForkThatDiesIsNotInTheStore(t *testing.T) {
	t.Parallel()
	const flow = `
weir: 1
name: long
context: {model: script/m}
nodes:
  a: {type: injectMessages, with: {messages: [{role: user, text: one}]}}
  b: {type: injectMessages, after: a, with: {messages: [{role: user, text: two}]}}
  c: {type: transform, after: b, with: {expr: "1 + 1"}}
outputs: {n: "{{ c.value }}"}
`
	for name, open := range map[string]func() (weir.Store, error){
		"memory": func() (weir.Store, error) { return memory.New(), nil },
		"sqlite": func() (weir.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner, err := open()
			if err != nil {
				t.Fatal(err)
			}
			s := &deadStore{Full: store.Complete(inner)}
			w, err := weir.Open(weir.Options{Store: s})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
			forkAfterDeaths(t, w, s, flow)
		})
	}
}

// forkAfterDeaths forks a run at each of its nodes, first in a process that dies.
func forkAfterDeaths(t *testing.T, w *weir.Weir, s *deadStore, flow string) {
	t.Helper()
	f, err := w.Parse("flow.yaml", []byte(flow))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"a", "b", "c"} {
		o := weir.ForkOptions{ID: "fork-" + from, From: from}
		s.dead.Store(true)
		if _, _, err := w.Fork(t.Context(), "first", o); !errors.Is(err, errDead) {
			t.Errorf("from %s, the fork that dies: %v", from, err)
		}
		if r, err := s.Run(t.Context(), o.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("from %s, the store has %+v, %v", from, r, err)
		}
		s.dead.Store(false)
		fork, _, err := w.Fork(t.Context(), "first", o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := fork.Wait(t.Context())
		if n, _ := r.Outputs.Get("n"); err != nil || n != int64(2) {
			t.Errorf("from %s, the fork gives %v, %v", from, r.Outputs, err)
		}
		v, err := w.Inspect(t.Context(), o.ID, 0)
		if err != nil || v.Contexts["main"].History.Len() != 2 {
			t.Errorf("from %s, the fork has %d messages, %v", from, v.Contexts["main"].History.Len(), err)
		}
	}
}
