package trajectory_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-run/weir/trajectory"
)

// TestRecorderIsSafeForConcurrentUse is for the race detector: after a common
// start every call is the first of several of 64 writers, so that nothing but
// its own lock orders it with the same call, and with others, of another.
func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	const writers = 64
	s := memory()
	b := trajectory.NewRecorderPool(s, clock)
	r, release := hold(t, b, 1)
	say(t, r, user("Go."))
	query := trajectory.ID("Query(query00000)")
	file := add(t, r, trajectory.NewNode{Type: trajectory.File, Relation: trajectory.Produces})
	var wg sync.WaitGroup
	start := make(chan struct{})
	for w := range writers {
		calls := []func() error{
			func() error {
				_, err := r.Add(trajectory.NewNode{Type: trajectory.Action, After: []trajectory.ID{query}})
				return err
			},
			func() error { return r.Link(query, file, trajectory.Produces) },
			func() error {
				return r.Edit(query, trajectory.Edit{Set: map[string]any{"w": w}}, trajectory.Attribution{}, now)
			},
			func() error { return r.SetPointers(query) },
			func() error {
				m := said("Well.")
				m.ID = fmt.Sprint("m", w%8)
				_, err := r.AddMessages(trajectory.MessageOptions{At: now}, m)
				return err
			},
			func() error { return r.Save(t.Context()) },
			func() error { return r.Record().Check() },
			func() error {
				if !r.Graph().Acyclic() {
					return trajectory.ErrCycle
				}
				return nil
			},
			func() error { _, err := r.Node(query); return err },
			func() error { r.Current(); r.Unsaved(); b.OpenCount(); return nil },
			func() error {
				_, release, err := b.Open(t.Context(), round(1))
				if err != nil {
					return err
				}
				return release(t.Context())
			},
		}
		wg.Go(func() {
			<-start
			for i := range 2 * len(calls) {
				if err := calls[(w+i)%len(calls)](); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	release()
	g, err := trajectory.LoadGraph(t.Context(), s, "ann", "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	count := map[trajectory.Type]int{}
	for _, n := range g.Nodes {
		count[n.Type]++
	}
	if actions, states := count[trajectory.Action], count[trajectory.State]; actions != 2*writers || states != 8 {
		t.Errorf("there are %d actions and %d states, want %d and 8", actions, states, 2*writers)
	}
}
