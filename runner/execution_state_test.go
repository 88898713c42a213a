package runner

import (
	"slices"
	"sync"
	"testing"
)

func TestAnExecutionChangesStateOnlyAsItsTableSays(t *testing.T) {
	t.Parallel()
	all := []executionState{acquiring, running, waiting, cancelling, draining, releasing, ended}
	legal := map[executionState][]executionState{
		acquiring:  {running, draining, ended},
		running:    {waiting, cancelling, draining, releasing},
		waiting:    {running, cancelling, draining, releasing},
		cancelling: {running, waiting, draining, releasing},
		draining:   {releasing},
		releasing:  {ended},
	}
	for _, from := range all {
		for _, to := range all {
			c := stateCell{}
			c.v.Store(uint32(from))
			want, refused := to, false
			switch {
			case from == to || slices.Contains(legal[from], to):
			case from == draining && to < draining: // another goroutine has set draining
				want = draining
			default:
				want, refused = from, true
			}
			if got := becomePanics(&c, to); got != refused || c.load() != want {
				t.Errorf("%s to %s: refused %t, then %s; want %t, %s", from, to, got, c.load(), refused, want)
			}
		}
	}
}

func becomePanics(c *stateCell, to executionState) (panics bool) {
	defer func() { panics = recover() != nil }()
	c.become(to)
	return false
}

func TestDrainingNeitherRevivesNorIsUndone(t *testing.T) {
	t.Parallel()
	for s := acquiring; s <= ended; s++ {
		c := stateCell{}
		c.v.Store(uint32(s))
		c.drain()
		if got, want := c.load(), max(s, draining); got != want {
			t.Errorf("a %s execution that is drained is %s, want %s", s, got, want)
		}
	}
	for range 200 { // a driver and a closing process
		c := stateCell{}
		c.become(running)
		var both sync.WaitGroup
		both.Go(c.drain)
		both.Go(func() {
			for _, next := range []executionState{waiting, cancelling, running, waiting} {
				c.become(next)
			}
		})
		both.Wait()
		if c.load() != draining {
			t.Fatalf("the execution is %s", c.load())
		}
	}
}

// TestTheNextStateFollowsFromTheProgress goes through all combinations of facts and compares
// with the rules, each stated alone.
func TestTheNextStateFollowsFromTheProgress(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 10 {
		is := func(i int) bool { return bits&(1<<i) != 0 }
		p := progress{
			failed: is(0), unmade: is(1), draining: is(2), rests: is(3), attempts: is(4), starts: is(5),
			children: is(6), described: is(7), cancelled: is(8), stopping: is(9),
		}
		got := p.next()
		ends := p.failed || p.draining && !p.attempts || !p.draining && p.rests && !p.described
		rules := map[string]bool{
			"it ends exactly if it failed, is drained or rests":        (got >= releasing) == ends,
			"only an execution without a run ends without a release":   (got == ended) == (p.failed && p.unmade),
			"what drains and has attempts continues to drain":          (got == draining) == (!ends && p.draining),
			"what waits has nothing in progress":                       got != waiting || !p.busy() && !p.stopping,
			"what runs has something in progress, and does not stop":   got != running || p.busy() && !p.stopping,
			"what is cancelled is being stopped, or is about to be":    got != cancelling || p.stopping,
			"no execution acquires again what it has, by its progress": got != acquiring,
		}
		// order: each rule is checked for itself.
		for rule, holds := range rules {
			if !holds {
				t.Fatalf("%+v becomes %s: %s", p, got, rule)
			}
		}
	}
}
