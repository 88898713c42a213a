package runner_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// countedPosts counts how often the inbox is read.
type countedPosts struct {
	*memory.Store
	reads atomic.Int64
}

func (c *countedPosts) PostsForOwner(ctx context.Context, owner string) ([]store.Post, error) {
	c.reads.Add(1)
	return c.Store.PostsForOwner(ctx, owner)
}

const eventsFlow = `
weir: 1
name: events
nodes:
  a: {type: waitEvent, with: {name: one}}
  b: {type: waitEvent, with: {name: two}}
  hold: {type: wait, with: {for: 1h}}
outputs: {a: "{{ a.value }}", b: "{{ b.value }}"}
`

// TestInboxesAreReadTogetherAndDeliveredInOneCommitPerRun holds many runs,
// sends two events to each, and counts reads and commits.
func TestInboxesAreReadTogetherAndDeliveredInOneCommitPerRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 50
		st := &countedPosts{Store: memory.New()}
		p := eventsProgram(t)
		l := runner.NewLocal(runner.Options{Store: st})
		advanceTime(10 * time.Second)
		if n := st.reads.Load(); n != 0 {
			t.Errorf("the inbox was read %d times while no run was held", n)
		}
		for i := range runs {
			if _, err := l.Start(t.Context(), p, runner.StartOptions{ID: fmt.Sprint("r", i)}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		before := st.reads.Load()
		for i := range 2 * runs {
			event := []string{"one", "two"}[i%2]
			if err := st.Post(t.Context(), store.Post{Run: fmt.Sprint("r", i/2), Kind: "event", Name: event, Value: event, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		advanceTime(time.Second)
		if n := st.reads.Load() - before; n > 5 {
			t.Errorf("%d reads in a second for %d runs", n, runs)
		}
		for i := range runs {
			checkTogether(t, st, fmt.Sprint("r", i))
		}
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	})
}

// advanceTime lets time pass in a bubble.
func advanceTime(d time.Duration) { <-time.After(d) }

func eventsProgram(t *testing.T) *runner.Program {
	t.Helper()
	c, err := node.NewCatalogue(builtin.Types()...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := flow.Source{}.Parse("events.yaml", []byte(eventsFlow), c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := runner.Prepare(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkTogether requires both events of a run in one commit, and its inbox empty.
func checkTogether(t *testing.T, st *countedPosts, run string) {
	t.Helper()
	most := 0
	for c, err := range st.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range c.Events {
			if _, ok := e.(*engine.InterruptAnswered); ok {
				n++
			}
		}
		most = max(most, n)
	}
	if most != 2 {
		t.Errorf("run %s: at most %d events came with one commit", run, most)
	}
	if left, err := st.Inbox(t.Context(), run); err != nil || len(left) > 0 {
		t.Errorf("run %s: %d messages are left (%v)", run, len(left), err)
	}
}
