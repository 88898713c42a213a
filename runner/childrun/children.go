package childrun

import (
	"slices"

	"github.com/weir-run/weir/engine"
)

// Children is what an execution knows of the open children of its run. One goroutine at a
// time uses it. The zero value knows none, as after a restart.
type Children struct {
	open map[string]*Child // by interrupt
}

// Child is an open child. It belongs to the goroutine that uses the Children.
type Child struct {
	join         progress
	cancel       progress
	cancelWanted bool
	stopped      bool // StopJoin has begun
}

type progress uint8

const (
	notBegun progress = iota
	underWay
	completed
)

// TaskKind is something that a parent does for a child.
type TaskKind uint8

// The kinds of tasks.
const (
	// Join: start the child or resume it, and call Joined once it is attached or has
	// reported its end.
	Join TaskKind = iota
	// StopJoin: give up the Join that is under way, so that a child that has not started
	// does not start, and call Joined.
	StopJoin
	// Cancel: cancel the child, and call CancelDurable once that is durable in it and in
	// its own children.
	Cancel
)

// Task is due for one child.
type Task struct {
	Kind  TaskKind
	Open  engine.OpenChild
	Child *Child
}

// Begin is the event that the driver starts to carry out the task.
func (t *Task) Begin() {
	switch t.Kind {
	case Join:
		t.Child.join = underWay
	case StopJoin:
		t.Child.stopped = true
	case Cancel:
		t.Child.cancel = underWay
	}
}

// Due returns the tasks for the children that the journal says are open, in their order,
// and forgets all others. Unchanged says that nothing has happened to the run or its
// children since this process released it, so that a child that pauses has nothing to
// report.
func (cs *Children) Due(open []engine.OpenChild, unchanged bool) []Task {
	before := cs.open
	cs.open = make(map[string]*Child, len(open))
	var due []Task
	for i := range open {
		c := &open[i]
		k := before[c.ID]
		if k == nil {
			k = &Child{}
		}
		cs.open[c.ID] = k
		k.cancelWanted = k.cancelWanted || c.ToCancel
		switch {
		case c.ToCancel && k.join == underWay && !k.stopped:
			due = append(due, Task{StopJoin, *c, k})
		case c.ToCancel && k.join != underWay && k.cancel == notBegun:
			due = append(due, Task{Cancel, *c, k})
		case !c.ToCancel && k.join == notBegun && (c.Active() || !unchanged):
			due = append(due, Task{Join, *c, k})
		}
	}
	return due
}

// Joined returns the event that a Join is complete. It reports whether a Cancel is due now.
func (c *Child) Joined() (cancelDue bool) {
	c.join = completed
	return c.cancelWanted && c.cancel == notBegun
}

// CancelDurable is the event that the cancellation is durable in the child and below it.
func (c *Child) CancelDurable() { c.cancel = completed }

// CancelRefused is the event that the cancellation could not be sent and is due again.
func (c *Child) CancelRefused() { c.cancel = notBegun }

// Get returns an open child by its interrupt, nil for none.
func (cs *Children) Get(interrupt string) *Child { return cs.open[interrupt] }

// Joining reports whether a child is being joined. Its end may be missing in the parent's
// journal, since a process may have died before it reported.
func (c *Child) Joining() bool { return c.join == underWay }

// Cancelling reports whether a cancellation of the child was sent, and whether it is
// durable.
func (c *Child) Cancelling() (sent, durable bool) { return c.cancel != notBegun, c.cancel == completed }

// Joining reports whether any child is being joined.
func (cs *Children) Joining() bool {
	// order: the answer is the same for each.
	for _, c := range cs.open {
		if c.Joining() {
			return true
		}
	}
	return false
}

// Cancelled reports whether a cancellation is durable in all children.
func (cs *Children) Cancelled() bool {
	// order: the answer is the same for each.
	for _, c := range cs.open {
		if _, durable := c.Cancelling(); !durable {
			return false
		}
	}
	return true
}

// None reports whether no child is open.
func (cs *Children) None() bool { return len(cs.open) == 0 }

// Forget has a child joined again.
func (cs *Children) Forget(interrupt string) { delete(cs.open, interrupt) }

// Row is what the store says of a child run.
type Row struct {
	Exists    bool
	Committed bool // it has a commit
	Status    engine.Status
	Waiting   []engine.Interrupt
}

// RestsAsReported reports whether a child needs no Join, since it pauses and the parent
// knows all that it asks.
func RestsAsReported(c *engine.OpenChild, row Row) bool {
	return row.Committed && !c.Active() && row.Status == engine.Paused &&
		SameInterrupts(row.Waiting, c.Report.Interrupts) && !AsksBelow(row.Waiting)
}

// CancelMeans is how a child is cancelled.
type CancelMeans uint8

// The ways to cancel a child.
const (
	// ReportCancelled: there is no child run. The parent reports it as cancelled itself.
	ReportCancelled CancelMeans = iota
	// CancelFirst: the run has no commit. Its first commit starts and cancels it.
	CancelFirst
	// SendCancel: send the run a cancellation. One that has ended reports its end.
	SendCancel
)

// MeansToCancel returns how a child is cancelled.
func MeansToCancel(row Row) CancelMeans {
	switch {
	case !row.Exists:
		return ReportCancelled
	case !row.Committed:
		return CancelFirst
	}
	return SendCancel
}

// SameInterrupts reports whether two lists name the same interrupts.
func SameInterrupts(a, b []engine.Interrupt) bool {
	return slices.EqualFunc(a, b, func(a, b engine.Interrupt) bool { return a.ID == b.ID })
}
