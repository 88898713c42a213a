package runner

import (
	"errors"

	"github.com/weir-run/weir/engine"
)

// treeChoices are what a run that is in memory may do next: its own work, what it does
// for its children, and what it says to its parent.
func (x *simRun) treeChoices() []func() error {
	out := x.choices()
	if len(x.m.staged)+len(x.m.direct) > 0 {
		return out // what it acts on is durable
	}
	kin, joining := x.childChoices()
	out = append(out, kin...)
	status := x.m.run.Status()
	switch {
	case status.Ended(), status == engine.Paused && !joining:
		return append(out, x.handOver)
	case status != engine.Paused && !x.attached:
		if tie := x.attachToParent(); tie != nil {
			out = append(out, tie)
		}
	case x.parent != nil && x.attached && status != engine.Paused && !sameInterrupts(x.lastReported, x.m.run.Interrupts()):
		out = append(out, x.notifyParent)
	}
	return out
}

// childChoices is what is to be done for the children that the journal says are open;
// joining is as long as it is not known of all of them what they did last.
func (x *simRun) childChoices() (out []func() error, joining bool) {
	for _, c := range x.m.run.OpenChildren() {
		k := x.children[c.ID]
		if k == nil {
			k = &simChild{}
			x.children[c.ID] = k
		}
		settled := x.childSynced(&c, k)
		switch {
		case c.ToCancel && !k.cancelling:
			joining = true
			if settled {
				out = append(out, func() error { return x.cancelChild(&c, k) })
			}
		case !c.ToCancel && !k.started && (c.Active() || !x.m.unchangedSinceRelease):
			joining = true
			out = append(out, func() error { return x.joinChild(&c, k) })
		case !settled:
			joining = true
		}
	}
	return out, joining
}

// childSynced reports whether nobody is joining the child: it has told what is news.
func (x *simRun) childSynced(c *engine.OpenChild, k *simChild) bool {
	below := x.tree.byID[c.Start.Run]
	return !k.started || below == nil || !below.driven || below.attached
}

// joinChild starts the child, or resumes it where it has to go on; see joinChild.
func (x *simRun) joinChild(c *engine.OpenChild, k *simChild) error {
	k.started = true
	below := x.tree.byID[c.Start.Run]
	if below == nil {
		p, err := x.tree.Flow(c.Start.Fingerprint)
		if err != nil {
			return err
		}
		below = x.tree.add(p, x.childStartOptions(c), x)
	}
	if len(below.journal) > 0 && !below.driven && !c.Active() && below.status == engine.Paused &&
		sameInterrupts(below.interrupts, c.Report.Interrupts) && !hasChildInterrupts(below.interrupts) {
		return nil
	}
	return x.tree.resume(below)
}

func (x *simRun) childStartOptions(c *engine.OpenChild) StartOptions {
	return childStartOptionsOf(x.m.run.Start, x.id, c)
}

// cancelChild cancels the child and all below it; see endChild. One that has not begun
// never does.
func (x *simRun) cancelChild(c *engine.OpenChild, k *simChild) error {
	k.cancelling = true
	below := x.tree.byID[c.Start.Run]
	if below == nil {
		k.cancelled = true
		return x.applyReport(&engine.ChildReported{ID: c.ID, Run: c.Start.Run, Status: engine.Cancelled})
	}
	err := x.tree.do(below, Cancel("", orphanReason))
	if errors.Is(err, errSimBusy) {
		k.cancelling = false // once more
	}
	return ignoreRefusal(err)
}

// treeCancelled reports whether a cancellation of the run is durable in it and in all
// below it that was open then.
func (x *simRun) treeCancelled() bool {
	if !x.cancelled || !x.driven {
		return x.status.Ended()
	}
	for _, c := range x.m.run.OpenChildren() {
		k := x.children[c.ID]
		if k == nil || !k.cancelling {
			return false
		}
		if below := x.tree.byID[c.Start.Run]; !k.cancelled && !below.treeCancelled() {
			return false
		}
	}
	return true
}

// applyReport has the run take in a report.
func (x *simRun) applyReport(news *engine.ChildReported) error {
	e, err := reportCommand(news)(x.m.run)
	if err != nil || e == nil {
		return err
	}
	return x.m.step(x.tree.clock, e)
}

// attachToParent has the parent driven and know how far the run is, before anything happens
// outside; see attach. It is nil while there is nothing to do but to wait.
func (x *simRun) attachToParent() func() error {
	parent := x.parent
	if !parent.driven {
		return func() error { return x.tree.resume(parent) }
	}
	if len(parent.m.staged)+len(parent.m.direct) > 0 {
		return nil
	}
	r, news := parent.m.run, x.m.childReport()
	if r.Status().Ended() {
		return x.releaseHeld
	}
	c, ok := r.OpenChild(news.ID)
	switch {
	case !ok:
		return func() error {
			if err := x.releaseHeld(); err != nil || x.m.run.CancelRequested() {
				return err
			}
			return x.m.step(x.tree.clock, &engine.CancelRequested{Reason: errNotAwaited.Error()})
		}
	case !sameReport(c.Report, news):
		return func() error { return parent.m.step(x.tree.clock, news) }
	case parent.attached:
		x.lastReported = news.Interrupts
		return x.releaseHeld
	}
	return nil
}

// releaseHeld has the run do what it has waited with.
func (x *simRun) releaseHeld() error {
	x.attached, x.launchHeld = true, false
	return x.launch()
}

// notifyParent tells the parent what the run asks while it goes on.
func (x *simRun) notifyParent() error {
	news := x.m.childReport()
	x.lastReported = news.Interrupts
	if !x.parent.driven {
		return nil
	}
	return x.parent.applyReport(news)
}

// handOver tells the parent how far the run is, and has it leave memory.
func (x *simRun) handOver() error {
	news, m := x.m.childReport(), x.m
	x.kill()
	x.driven, x.lastMachine, x.m = false, m, nil
	if x.parent == nil {
		return nil
	}
	if err := x.tree.resume(x.parent); err != nil {
		return err
	}
	return x.parent.applyReport(news)
}
