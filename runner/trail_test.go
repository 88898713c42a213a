package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// faulty is a storage in which one thing fails.
type faulty struct {
	trajectory.Storage
	what string
}

var errFaulty = errors.New("the storage is broken")

func (f *faulty) Save(ctx context.Context, r trajectory.Record) error {
	if f.what == "save" {
		return errFaulty
	}
	return f.Storage.Save(ctx, r)
}

func (f *faulty) Load(ctx context.Context, k trajectory.Key) (trajectory.Record, error) {
	if f.what == "load" {
		return trajectory.Record{}, errFaulty
	}
	return f.Storage.Load(ctx, k)
}

func (f *faulty) Near(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	if f.what == "near" || f.what == "near of sub-agents" && k.Sub > 0 {
		return 0, 0, errFaulty
	}
	return f.Storage.Near(ctx, k)
}

// trailed runs programs, 64 at once, and returns how many recorders are held then.
func trailed(t *testing.T, tr *tree, s trajectory.Storage, programs []*runner.Program, ends []engine.Status) int {
	t.Helper()
	book := trajectory.NewBook(s, nil)
	local := runner.NewLocal(runner.Options{
		Store: tr.store, Trails: &runner.Trails{Book: book, Every: true},
		Flow: func(_ context.Context, fingerprint string) (*runner.Program, error) {
			if p := tr.programs[fingerprint]; p != nil {
				return p, nil
			}
			return nil, store.ErrNotFound
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			x, err := local.Start(ctx, programs[i%len(programs)], runner.Begin{ID: fmt.Sprint("run", i)})
			if err != nil {
				t.Error(err)
				return
			}
			if r, err := x.Wait(ctx); err != nil || r.Status != ends[i%len(ends)] {
				t.Errorf("%s %v %v", r.Status, r.Error, err)
			}
		})
	}
	all.Wait()
	if err := local.Close(ctx); err != nil {
		t.Error(err)
	}
	return book.Held()
}

func TestRecordersAreLetGoOfAndRunsEndWhateverTheStorageDoes(t *testing.T) {
	for _, what := range []string{"nothing", "save", "load", "near", "near of sub-agents"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t)
			tr.add("l0", "nodes:\n  a: {type: template, with: {text: x}}\n  b: {type: wait, after: a, with: {for: 1ms}}\n")
			good := tr.add("l1", wraps("l0"))
			tr.add("l2", "nodes:\n  bad: {type: fail, with: {message: no good}}\n")
			bad := tr.add("l3", wraps("l2"))
			held := trailed(t, tr, &faulty{tables.New(tables.NewMemory()), what}, []*runner.Program{good, bad}, []engine.Status{engine.Completed, engine.Failed})
			if held > 0 {
				t.Errorf("%d recorders are held", held)
			}
		})
	}
}
