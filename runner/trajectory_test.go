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

// failingStorage is a storage in which one thing fails.
type failingStorage struct {
	trajectory.Storage
	failing string
}

var errStorage = errors.New("the storage is broken")

func (f *failingStorage) Save(ctx context.Context, r trajectory.Record) error {
	if f.failing == "save" {
		return errStorage
	}
	return f.Storage.Save(ctx, r)
}

func (f *failingStorage) Load(ctx context.Context, k trajectory.Key) (trajectory.Record, error) {
	if f.failing == "load" {
		return trajectory.Record{}, errStorage
	}
	return f.Storage.Load(ctx, k)
}

func (f *failingStorage) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	if f.failing == "near" || f.failing == "near of sub-agents" && k.Sub > 0 {
		return 0, 0, errStorage
	}
	return f.Storage.Adjacent(ctx, k)
}

// runWithTrajectories runs programs, 64 at once, and returns how many recorders are held then.
func runWithTrajectories(t *testing.T, tr *tree, s trajectory.Storage, programs []*runner.Program, ends []engine.Status) int {
	t.Helper()
	pool := trajectory.NewRecorderPool(s, nil)
	local := runner.NewLocal(runner.Options{
		Store: tr.store, Trajectories: &runner.TrajectoryOptions{Recorders: pool, All: true},
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
			x, err := local.Start(ctx, programs[i%len(programs)], runner.StartOptions{ID: fmt.Sprint("run", i)})
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
	return pool.OpenCount()
}

func TestRecordersAreReleasedWhenStorageFails(t *testing.T) {
	for _, what := range []string{"nothing", "save", "load", "near", "near of sub-agents"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t)
			tr.add("l0", "nodes:\n  a: {type: template, with: {text: x}}\n  b: {type: wait, after: a, with: {for: 1ms}}\n")
			good := tr.add("l1", wrapFlow("l0"))
			tr.add("l2", "nodes:\n  bad: {type: fail, with: {message: no good}}\n")
			bad := tr.add("l3", wrapFlow("l2"))
			held := runWithTrajectories(t, tr, &failingStorage{tables.New(tables.NewMemory()), what}, []*runner.Program{good, bad}, []engine.Status{engine.Completed, engine.Failed})
			if held > 0 {
				t.Errorf("%d recorders are held", held)
			}
		})
	}
}
