package runner

import (
	"strings"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner/childrun"
)

// emit implements attemptIO.
func (x *Execution) emit(a *attempt, c llm.Chunk) {
	it := Item{
		Run: x.ID, At: x.local.clock.now(), Path: a.Path, Attempt: a.Attempt,
		Effect: strings.TrimPrefix(c.Effect, x.ID+"/"), Chunk: &c,
	}
	c.Effect = it.Effect
	if it.Effect == "" {
		it.lane = laneOf(x.m.run.Plan(), a.Path)
	}
	x.publish(func(h *hub) { h.publishLive(it) })
}

// publish publishes an item to readers of the run and of its ancestors.
func (x *Execution) publish(see func(*hub)) {
	for y := x; y != nil; y = y.publishesTo.Load() {
		see(&y.hub)
	}
}

// publishTo makes readers of the parent and its ancestors see the run from now on.
func (x *Execution) publishTo(parent *Execution, from int64) {
	if parent == nil {
		return
	}
	before := x.publishesTo.Load()
	if before != nil && (before == parent || !before.hasEnded()) || !x.publishesTo.CompareAndSwap(before, parent) {
		return
	}
	parent.publish(func(h *hub) { h.attach(x.ID, from) })
}

// hasEnded reports whether the execution has ended.
func (x *Execution) hasEnded() bool {
	return x.state.load() == ended
}

// durableEvents returns the number of the run's last durable event.
func (x *Execution) durableEvents() int64 { return x.m.first - 1 }

// publishEnd publishes to readers of the parent what the run did, if they did not see it live, and that it is no
// longer executed here.
func (x *Execution) publishEnd() {
	if s := x.m.run.Start; s != nil && originOf(s) != childrun.Root {
		x.publishTo(x.local.Held(s.Parent), x.hub.start)
	}
	if parent := x.publishesTo.Load(); parent != nil {
		parent.publish(func(h *hub) { h.detach(x.ID) })
	}
}
