package runner

import (
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner/childrun"
)

// treeChoices returns the next steps of a run in memory: its own work, tasks for its children, and messages to its
// parent. The consequences for other runs are decided by childrun, as in every runner; the simulation chooses the
// order.
func (x *simRun) treeChoices() []func() error {
	out := x.choices()
	if len(x.m.staged)+len(x.m.direct) > 0 {
		return out // everything that it acts on is durable
	}
	tasks, joining := x.childChoices()
	out = append(out, tasks...)
	status := x.m.run.Status()
	switch {
	case status.Ended(), status == engine.Paused && !joining:
		return append(out, x.handOver)
	case status == engine.Paused:
	case x.link.State() != childrun.Attached:
		if attach := x.attachToParent(); attach != nil {
			out = append(out, attach)
		}
	case x.link.IsNews(status, x.m.run.Interrupts()):
		out = append(out, x.notifyParent)
	}
	return out
}

// childChoices returns the tasks for the open children in the journal. joining reports whether the journal may lack
// the latest state of a child.
func (x *simRun) childChoices() (out []func() error, joining bool) {
	open := x.m.run.OpenChildren()
	for i := range open {
		if k := x.children.Get(open[i].ID); k != nil && k.Joining() && x.isReady(&open[i]) {
			k.Joined()
		}
	}
	for _, t := range x.children.Due(open, x.m.unchangedSinceRelease) {
		switch t.Kind {
		case childrun.Join:
			out = append(out, func() error { return x.joinChild(&t) })
		case childrun.StopJoin:
			t.Begin()
		case childrun.Cancel:
			out = append(out, func() error { return x.cancelChild(&t) })
		}
	}
	return out, len(out) > 0 || x.children.Joining()
}

// isReady reports whether a joined child is attached or has left memory.
func (x *simRun) isReady(c *engine.OpenChild) bool {
	below := x.tree.byID[c.Start.Run]
	return below == nil || !below.driven || below.link.State() == childrun.Attached
}

// row returns the run's row as a store would.
func (t *simTree) row(run string) childrun.Row {
	x := t.byID[run]
	if x == nil {
		return childrun.Row{}
	}
	return childrun.Row{Exists: true, Committed: len(x.journal) > 0, Status: x.status, Waiting: x.interrupts}
}

// joinChild starts a child, or resumes it.
func (x *simRun) joinChild(t *childrun.Task) error {
	t.Begin()
	c := &t.Open
	below := x.tree.byID[c.Start.Run]
	if below == nil {
		p, err := x.tree.Flow(c.Start.Fingerprint)
		if err != nil {
			return err
		}
		below = x.tree.add(p, x.childStartOptions(c), x)
	}
	if childrun.RestsAsReported(c, x.tree.row(c.Start.Run)) {
		return nil
	}
	return x.tree.resume(below)
}

func (x *simRun) childStartOptions(c *engine.OpenChild) StartOptions {
	return childStartOptionsOf(x.m.run.Start, x.id, c)
}

// cancelChild cancels a child and all runs below it.
func (x *simRun) cancelChild(t *childrun.Task) error {
	t.Begin()
	c := &t.Open
	if childrun.MeansToCancel(x.tree.row(c.Start.Run)) == childrun.ReportCancelled {
		t.Child.CancelDurable()
		return x.applyReport(&engine.ChildReported{ID: c.ID, Run: c.Start.Run, Status: engine.Cancelled})
	}
	err := x.tree.do(x.tree.byID[c.Start.Run], Cancel("", orphanReason))
	if errors.Is(err, errSimBusy) {
		t.Child.CancelRefused()
	}
	return ignoreRefusal(err)
}

// treeCancelled reports whether a cancellation of the run is durable in it and in all children that were open then.
func (x *simRun) treeCancelled() bool {
	if !x.cancelled || !x.driven {
		return x.status.Ended()
	}
	for _, c := range x.m.run.OpenChildren() {
		k := x.children.Get(c.ID)
		if k == nil {
			return false
		}
		switch sent, durable := k.Cancelling(); {
		case durable:
		case !sent, !x.tree.byID[c.Start.Run].treeCancelled():
			return false
		default:
			k.CancelDurable()
		}
	}
	return x.children.Cancelled()
}

// applyReport delivers a report of a child to the run.
func (x *simRun) applyReport(report *engine.ChildReported) error {
	if !childrun.Applies(x.m.run, report) {
		return nil
	}
	return x.m.step(x.tree.clock, report)
}

// origin returns the event that started the run.
func (x *simRun) origin() childrun.Origin {
	if x.parent == nil {
		return childrun.Root
	}
	return childrun.Node
}

// attachToParent returns the next step of registering the run with its parent, nil while it waits for the parent.
func (x *simRun) attachToParent() func() error {
	x.link.Continue(x.origin(), false, x.m.childReport)
	parent := x.parent
	if !parent.driven {
		return func() error { return x.tree.resume(parent) }
	}
	if len(parent.m.staged)+len(parent.m.direct) > 0 {
		return nil
	}
	report := x.link.Sent()
	answer, _ := childrun.AnswerTo(parent.m.run, report)
	switch {
	case answer == childrun.ReportFirst:
		return func() error { return parent.m.step(x.tree.clock, report) }
	case answer == childrun.Accepted && parent.link.State() != childrun.Attached:
		return nil
	}
	return func() error { return x.applyAnswer(answer) }
}

// applyAnswer applies the parent's answer.
func (x *simRun) applyAnswer(a childrun.Answer) error {
	action := x.link.Answered(a, x.m.run.CancelRequested())
	x.launchHeld = false
	if action == childrun.LaunchCancelled {
		return x.m.step(x.tree.clock, &engine.CancelRequested{Reason: notAwaitedReason})
	}
	return x.launch()
}

// notifyParent delivers the run's open questions to the parent while it continues.
func (x *simRun) notifyParent() error {
	report := x.m.childReport()
	x.link.Notified(report)
	if !x.parent.driven {
		return nil
	}
	return x.parent.applyReport(report)
}

// handOver removes the run from memory and delivers its report to the parent.
func (x *simRun) handOver() error {
	report, m := x.m.childReport(), x.m
	action := x.link.Ended(x.origin(), childrun.Rests)
	x.kill()
	x.driven, x.lastMachine, x.m = false, m, nil
	if action != childrun.Report {
		return nil
	}
	if err := x.tree.resume(x.parent); err != nil {
		return err
	}
	return x.parent.applyReport(report)
}
