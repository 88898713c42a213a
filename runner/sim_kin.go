package runner

import (
	"errors"

	"github.com/weir-run/weir/engine"
)

// chances are what a run that is in memory may do next: its own work, what it does
// for its children, and what it says to its parent.
func (x *simRun) chances() []func() error {
	out := x.choices()
	if len(x.m.staged)+len(x.m.direct) > 0 {
		return out // what it acts on is durable
	}
	kin, joining := x.seeToKids()
	out = append(out, kin...)
	status := x.m.run.Status()
	switch {
	case status.Ended(), status == engine.Paused && !joining:
		return append(out, x.leave)
	case status != engine.Paused && !x.tied:
		if tie := x.tie(); tie != nil {
			out = append(out, tie)
		}
	case x.parent != nil && x.tied && status != engine.Paused && !sameWaits(x.told, x.m.run.Interrupts()):
		out = append(out, x.spread)
	}
	return out
}

// seeToKids is what is to be done for the children that the journal says are open;
// joining is as long as it is not known of all of them what they did last.
func (x *simRun) seeToKids() (out []func() error, joining bool) {
	for _, c := range x.m.run.OpenChildren() {
		k := x.kids[c.ID]
		if k == nil {
			k = &simKid{}
			x.kids[c.ID] = k
		}
		settled := x.settled(&c, k)
		switch {
		case c.Unwanted && !k.cancelling:
			joining = true
			if settled {
				out = append(out, func() error { return x.endKid(&c, k) })
			}
		case !c.Unwanted && !k.kept && (c.Goes() || !x.m.warm):
			joining = true
			out = append(out, func() error { return x.joinKid(&c, k) })
		case !settled:
			joining = true
		}
	}
	return out, joining
}

// settled reports whether nobody is joining the child: it has told what is news.
func (x *simRun) settled(c *engine.OpenChild, k *simKid) bool {
	below := x.tree.byID[c.Start.Run]
	return !k.kept || below == nil || !below.live || below.tied
}

// joinKid starts the child, or resumes it where it has to go on; see joinChild.
func (x *simRun) joinKid(c *engine.OpenChild, k *simKid) error {
	k.kept = true
	below := x.tree.byID[c.Start.Run]
	if below == nil {
		p, err := x.tree.Flow(c.Start.Fingerprint)
		if err != nil {
			return err
		}
		below = x.tree.add(p, x.kidBegin(c), x)
	}
	if len(below.journal) > 0 && !below.live && !c.Goes() && below.status == engine.Paused &&
		sameWaits(below.head, c.Report.Interrupts) && !relays(below.head) {
		return nil
	}
	return x.tree.wake(below)
}

func (x *simRun) kidBegin(c *engine.OpenChild) Begin { return childBeginOf(x.m.run.Start, x.id, c) }

// endKid cancels the child and all below it; see endChild. One that has not begun
// never does.
func (x *simRun) endKid(c *engine.OpenChild, k *simKid) error {
	k.cancelling = true
	below := x.tree.byID[c.Start.Run]
	if below == nil {
		k.cancelled = true
		return x.hear(&engine.ChildReported{ID: c.ID, Run: c.Start.Run, Status: engine.Cancelled})
	}
	err := x.tree.do(below, Cancel("", orphanReason))
	if errors.Is(err, errSimBusy) {
		k.cancelling = false // once more
	}
	return ignored(err)
}

// ceased reports whether a cancellation of the run is durable in it and in all
// below it that was open then.
func (x *simRun) ceased() bool {
	if !x.cancelled || !x.live {
		return x.status.Ended()
	}
	for _, c := range x.m.run.OpenChildren() {
		k := x.kids[c.ID]
		if k == nil || !k.cancelling {
			return false
		}
		if below := x.tree.byID[c.Start.Run]; !k.cancelled && !below.ceased() {
			return false
		}
	}
	return true
}

// hear has the run take in a report.
func (x *simRun) hear(news *engine.ChildReported) error {
	e, err := reported(news)(x.m.run)
	if err != nil || e == nil {
		return err
	}
	return x.m.step(x.tree.clock, e)
}

// tie has the parent driven and know how far the run is, before anything happens
// outside; see attach. It is nil while there is nothing to do but to wait.
func (x *simRun) tie() func() error {
	parent := x.parent
	if !parent.live {
		return func() error { return x.tree.wake(parent) }
	}
	if len(parent.m.staged)+len(parent.m.direct) > 0 {
		return nil
	}
	r, news := parent.m.run, x.m.news()
	if r.Status().Ended() {
		return x.settle
	}
	c, ok := r.OpenChild(news.ID)
	switch {
	case !ok:
		return func() error {
			if err := x.settle(); err != nil || x.m.run.CancelRequested() {
				return err
			}
			return x.m.step(x.tree.clock, &engine.CancelRequested{Reason: errUnwanted.Error()})
		}
	case !sameNews(c.Report, news):
		return func() error { return parent.m.step(x.tree.clock, news) }
	case parent.tied:
		x.told = news.Interrupts
		return x.settle
	}
	return nil
}

// settle has the run do what it has waited with.
func (x *simRun) settle() error {
	x.tied, x.held = true, false
	return x.launch()
}

// spread tells the parent what the run asks while it goes on.
func (x *simRun) spread() error {
	news := x.m.news()
	x.told = news.Interrupts
	if !x.parent.live {
		return nil
	}
	return x.parent.hear(news)
}

// leave tells the parent how far the run is, and has it leave memory.
func (x *simRun) leave() error {
	news, m := x.m.news(), x.m
	x.kill()
	x.live, x.left, x.m = false, m, nil
	if x.parent == nil {
		return nil
	}
	if err := x.tree.wake(x.parent); err != nil {
		return err
	}
	return x.parent.hear(news)
}
