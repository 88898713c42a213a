package weir_test

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

const (
	blockingFlow = "weir: 1\nname: blocking\nnodes: {n: {type: block}}\n"
	askingFlow   = "weir: 1\nname: asking\nnodes: {ask: {type: userInput, with: {prompt: Go?}}}\n"
	soonFlow     = "weir: 1\nname: soon\nnodes: {wait: {type: wait, with: {for: 1s}}}\n"
	lateFlow     = "weir: 1\nname: late\nnodes: {wait: {type: wait, with: {for: 1h}}}\n"
	parentFlow   = "weir: 1\nname: parent\nnodes: {sub: {type: flow, with: {flow: late}}}\n"
)

// stuckWorld is a database that processes open one after the other.
type stuckWorld struct {
	t    *testing.T
	path string
	// begun receives a value when the node of a blocking flow has begun.
	begun chan struct{}
}

func (k *stuckWorld) store() *sqlite.Store {
	k.t.Helper()
	s, err := sqlite.Open(k.t.Context(), k.path, sqlite.Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}

func (k *stuckWorld) open() *weir.Weir {
	k.t.Helper()
	type none struct{}
	block := weir.Func("block", func(ctx weir.Ctx, _ none) (none, error) {
		k.begun <- struct{}{}
		<-ctx.Done()
		return none{}, ctx.Err()
	})
	w, err := weir.Open(weir.Options{Store: k.store(), Types: []weir.Type{block}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

func (k *stuckWorld) start(w *weir.Weir, id, text string) {
	k.t.Helper()
	var uses []*weir.Flow
	if text == parentFlow {
		uses = append(uses, weirkit.Parse(k.t, w, lateFlow))
	}
	f, err := w.Parse(id+".yaml", []byte(text), uses...)
	if err == nil {
		_, err = w.Start(k.t.Context(), f, weir.Start{ID: id})
	}
	if err != nil {
		k.t.Fatal(err)
	}
	if text == blockingFlow {
		<-k.begun
	}
}

// until waits for a condition.
func (k *stuckWorld) until(what string, ok func() bool) {
	k.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			k.t.Fatalf("not after two minutes: %s", what)
		}
	}
}

// stuck returns the reasons of stuck runs by run.
func (k *stuckWorld) stuck(w *weir.Weir, o weir.StuckOptions) map[string]string {
	k.t.Helper()
	list, err := w.StuckRuns(k.t.Context(), o)
	if err != nil {
		k.t.Fatal(err)
	}
	out := make(map[string]string)
	for i := range list {
		r := &list[i]
		if out[r.Run] = r.Reason; r.Detail == "" || r.Next == "" || r.Since.IsZero() || r.Flow == "" {
			k.t.Errorf("run %s: %+v", r.Run, *r)
		}
	}
	return out
}

// acquireAndDie has processes of other machines acquire a run and end, one after the other.
func (k *stuckWorld) acquireAndDie(s *sqlite.Store, run string, owners ...string) {
	k.t.Helper()
	for _, owner := range owners {
		k.until("the lease can be acquired", func() bool {
			_, err := s.Acquire(k.t.Context(), run, owner, time.Millisecond)
			return err == nil
		})
	}
	k.until("the last lease expires", func() bool {
		row, err := s.Run(k.t.Context(), run)
		return err == nil && row.Expired
	})
}

// TestStuckRunsAreListedWithTheReason makes a run for each reason, and for each state that is none.
func TestStuckRunsAreListedWithTheReason(t *testing.T) {
	t.Parallel()
	k := &stuckWorld{t: t, path: filepath.Join(t.TempDir(), "weir.db"), begun: make(chan struct{}, 1)}
	first := k.open()
	for _, id := range []string{"left", "lost", "poisoned"} {
		k.start(first, id, blockingFlow)
	}
	k.start(first, "message", askingFlow)
	k.start(first, "asks", askingFlow)
	k.start(first, "soon", soonFlow)
	k.start(first, "late", lateFlow)
	k.start(first, "parent", parentFlow)
	k.until("all runs are where they wait", func() bool {
		rows, err := first.Runs(t.Context(), store.Filter{})
		waiting := 0
		for i := range rows {
			if rows[i].Head.Due > 0 || rows[i].Head.Status == weir.Paused {
				waiting++
			}
		}
		return err == nil && waiting == 5
	})
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := k.store()
	k.acquireAndDie(s, "lost", "there:1:a")
	k.acquireAndDie(s, "poisoned", "there:1:a", "there:2:b", "there:3:c", "there:4:d")
	if err := s.Post(t.Context(), store.Post{Run: "message", Kind: "answer", Name: "ask:ask#1", Value: "yes", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	second := k.open()
	k.start(second, "works", blockingFlow)
	want := map[string]string{
		"left": weir.StuckNoProcess, "lost": weir.StuckOwnerLost, "poisoned": weir.StuckPoisoned, "message": weir.StuckNoProcess, "soon": weir.StuckNoProcess,
	}
	k.until("the timer of one run is due", func() bool { return k.stuck(second, weir.StuckOptions{})["soon"] != "" })
	if got := k.stuck(second, weir.StuckOptions{}); !maps.Equal(got, want) {
		t.Errorf("stuck are %v, want %v", got, want)
	}
	if got := k.stuck(second, weir.StuckOptions{Limit: 1}); !maps.Equal(got, map[string]string{"left": weir.StuckNoProcess}) {
		t.Errorf("the oldest is %v", got)
	}
	if got := k.stuck(second, weir.StuckOptions{For: time.Hour}); len(got) != 0 {
		t.Errorf("stuck for an hour are %v", got)
	}
}
