package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner/childrun"
	"github.com/weir-run/weir/store"
)

// parentLink describes the link to the parent's execution. A child starts nothing before this process executes its
// parent too and the parent has its report.
type parentLink struct {
	// link, parent and asked belong to the driver. parent is nil for a run without one or whose parent has ended.
	// asked is closed when a request to attach was answered; nil if there was none.
	link   childrun.Link
	parent *Execution
	asked  chan struct{}

	mu      sync.Mutex
	isReady bool          // attached, or the execution has ended; guarded by mu
	ready   chan struct{} // closed once isReady; nil before the first wait; guarded by mu
}

// whenReady returns a channel that is closed once the execution is attached to its parent
// and that one to its own, or has ended.
func (b *parentLink) whenReady() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ready == nil {
		b.ready = make(chan struct{})
		if b.isReady {
			close(b.ready)
		}
	}
	return b.ready
}

// markReady closes the channel of whenReady.
func (b *parentLink) markReady() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isReady {
		return
	}
	b.isReady = true
	if b.ready != nil {
		close(b.ready)
	}
}

// reattachToParent attaches to the parent again after a person has increased budgets of ancestor runs, before
// anything is started that needs the increase.
func (x *Execution) reattachToParent() {
	b := &x.parentLink
	if !b.link.Increased(x.m.run.IncreasesAbove()) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isReady, b.ready = false, nil
}

// originOf returns the event that started a run.
func originOf(s *engine.RunStarted) childrun.Origin {
	switch {
	case s.Node != "":
		return childrun.Node
	case s.Parent != "" && s.Origin == originTool:
		return childrun.Tool
	}
	return childrun.Root
}

// attachToParent registers the run with its parent, which this process then executes too. It is called while the
// execution is active.
func (x *Execution) attachToParent() {
	b := &x.parentLink
	s := x.m.run.Start
	switch b.link.Continue(originOf(s), x.m.program.recorded, x.m.childReport) {
	case childrun.NoRequest:
	case childrun.LaunchAtOnce:
		b.markReady()
	case childrun.NobodyWaits:
		x.command(func(*engine.Run) (engine.Event, error) { return x.applyAnswer(childrun.NotAwaited, nil, func() {}) })
	case childrun.AskParent:
		report, asked := b.link.Sent(), make(chan struct{})
		b.asked = asked
		x.local.loops.Go(func() {
			defer close(asked)
			parent, answer, budgets, err := x.local.attach(s.Parent, report)
			x.command(func(*engine.Run) (engine.Event, error) {
				return x.applyAnswer(answer, err, func() {
					b.parent = parent
					x.publishTo(parent, x.durableEvents())
					x.m.ledger.attachParent(parent, x.ID, &budgets)
				})
			})
		})
	}
}

// applyAnswer applies the answer of the parent; below is called if the run is attached to a parent that is executed
// here.
func (x *Execution) applyAnswer(a childrun.Answer, err error, below func()) (engine.Event, error) {
	b := &x.parentLink
	action := b.link.Answered(a, x.draining() || x.m.run.CancelRequested())
	if action == childrun.NoPermission {
		return nil, nil
	}
	defer b.markReady()
	switch {
	case action == childrun.LaunchCancelled:
		return &engine.CancelRequested{Reason: notAwaitedReason}, nil
	case action == childrun.Abort:
		x.err = fmt.Errorf("run %s, whose parent is %s: %w", x.ID, x.m.run.Start.Parent, err)
	case action == childrun.LaunchBelow && !x.draining():
		below()
	}
	return nil, nil
}

// notAwaitedReason is the reason of a run that cancels itself because no node or tool call waits for it.
const notAwaitedReason = "no run waits for this one"

// attach delivers a report to the parent of a run until the parent has it, and returns the parent's answer. If that
// is Accepted, the parent's execution is attached to its own parent, and stays as long as the child is executed.
func (l *Local) attach(parent string, report *engine.ChildReported) (x *Execution, answer childrun.Answer, budgets childrun.Budgets, err error) {
	posted := false
	for answer = childrun.ReportFirst; answer == childrun.ReportFirst; {
		x, err = l.drive(parent, func(r *engine.Run) (engine.Event, error) {
			if answer, budgets = childrun.AnswerTo(r, report); answer == childrun.ReportFirst {
				return report, nil
			}
			return nil, nil
		})
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, childrun.ParentEnded, budgets, nil
		case errors.Is(err, store.ErrOwned) && !posted:
			l.notifyOwner(parent, report.Run)
			posted = true
			// The owner may have released the parent before it could read the message.
			if row, e := l.store.Run(l.ctx, parent); e != nil || row.Owner != "" {
				return nil, childrun.Unavailable, budgets, err
			}
		case err != nil:
			return nil, childrun.Unavailable, budgets, err
		}
	}
	if answer != childrun.Accepted {
		return nil, answer, budgets, nil
	}
	if x.m.program.recorded {
		err = fmt.Errorf("run %s cannot be continued by this process: %w", parent, ErrDependenciesChanged)
		return nil, childrun.Unavailable, budgets, err
	}
	select {
	case <-x.parentLink.whenReady():
		return x, answer, budgets, nil
	case <-x.done:
		return nil, childrun.Unavailable, budgets, cmp.Or(x.err, ErrClosed)
	}
}

// drive carries out a command on a run of which only the id is known, with the recorded program if this process
// cannot execute the run.
func (l *Local) drive(id string, c Command) (x *Execution, err error) {
	do := func(p *Program) (err error) {
		x, err = l.Do(context.WithoutCancel(l.ctx), p, id, c)
		return err
	}
	if held := l.Held(id); held != nil {
		err = do(held.m.program)
		return x, err
	}
	row, err := l.store.Run(l.ctx, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	err = l.withProgram(l.ctx, id, row.Fingerprint, do)
	return x, err
}

// reportToParent delivers a child's report to the parent. It resumes the parent here unless another process executes
// it, which is then notified through the inbox.
func (l *Local) reportToParent(parent string, news *engine.ChildReported) error {
	for posted := false; ; posted = true {
		_, err := l.drive(parent, reportCommand(news))
		if !errors.Is(err, store.ErrOwned) {
			return err
		}
		if posted {
			return nil
		}
		l.notifyOwner(parent, news.Run)
		// The owner may have released the parent before it could read the message.
		if row, err := l.store.Run(l.ctx, parent); err != nil || row.Owner != "" {
			return err
		}
	}
}

// reportCommand returns the command that delivers the report to the parent. It does nothing if the parent has the
// report or does not need it.
func reportCommand(report *engine.ChildReported) Command {
	return func(r *engine.Run) (engine.Event, error) {
		if !childrun.Applies(r, report) {
			return nil, nil
		}
		return report, nil
	}
}

// notifyOwner asks the process that executes a run to check a child again.
func (l *Local) notifyOwner(run, child string) {
	if err := l.store.Post(l.ctx, store.Post{Run: run, Kind: "child", Name: child, At: time.Now()}); err != nil && l.ctx.Err() == nil {
		l.o.Logger.Warn("post", "run", run, "error", err)
	}
}

// childReport returns the run's cumulative report to its parent.
func (m *machine) childReport() *engine.ChildReported {
	r := m.run
	e := &engine.ChildReported{
		ID: r.Start.Node, Run: r.ID, Status: r.Status(), Usage: r.CommittedUsage(), Increases: r.IncreasesAbove(), Error: r.Failure(),
	}
	switch {
	case !e.Status.Ended():
		e.Interrupts = r.Interrupts()
	case e.Status == engine.Completed:
		main := m.contexts[engine.MainContext]
		e.Began, e.Length = r.Start.Contexts[0].At, main.History.Len()
		e.Outputs, e.Answer = r.Outputs(), finalAnswer(main, e.Began)
	}
	return e
}

// finalAnswer returns the last text of a model in a context from a position on, and the
// context's current output if there is none.
func finalAnswer(c convo.Context, began int) string {
	for i := c.History.Len() - 1; i >= max(began, c.Epoch); i-- {
		m, err := c.History.Read(i)
		if err != nil {
			break
		}
		if m.Role == convo.Assistant && m.Text != "" {
			return m.Text
		}
	}
	return c.Output
}

// notifyParent delivers the run's open questions to the parent while its execution continues.
func (x *Execution) notifyParent() {
	b := &x.parentLink
	if b.parent == nil || !x.m.questionsChanged {
		return
	}
	x.m.questionsChanged = false
	if !b.link.IsNews(x.m.run.Status(), x.m.run.Interrupts()) {
		return
	}
	report := x.m.childReport()
	b.link.Notified(report)
	b.parent.command(reportCommand(report))
}

// endOf describes how the execution ends, if it does.
func (x *Execution) endOf() childrun.End {
	switch {
	case x.draining() && x.missing == nil:
		return childrun.Closing
	case x.err == nil:
		return childrun.Rests
	case errors.Is(x.err, store.ErrFenced), errors.Is(x.err, store.ErrOwned):
		return childrun.Lost
	}
	return childrun.Broken
}

// handOver ends the execution for all callers that wait for it. The parent gets the report first, so that reports of
// the run's next execution follow it.
func (x *Execution) handOver(end childrun.End) {
	s := x.m.run.Start
	if s == nil {
		x.afterRelease()
		return
	}
	action := x.parentLink.link.Ended(originOf(s), end)
	if action == childrun.NoHandover {
		x.afterRelease()
		return
	}
	report, asked := x.m.childReport(), x.parentLink.asked
	x.local.loops.Go(func() {
		defer x.afterRelease()
		if asked != nil { // an older report may still be in delivery to the parent
			<-asked
		}
		if action == childrun.Report {
			x.local.reportEnd(s.Parent, report)
			return
		}
		parent := cmp.Or(x.parentLink.parent, x.local.Held(s.Parent))
		switch {
		case parent == nil:
		case action == childrun.AbortParent:
			parent.failWith(x.err)
		case action == childrun.Rejoin:
			parent.command(func(*engine.Run) (engine.Event, error) {
				parent.children.Forget(report.ID)
				parent.m.checkChildren = true
				return nil, nil
			})
		}
	})
}

// reportEnd is reportToParent without a caller that waits for the result.
func (l *Local) reportEnd(parent string, report *engine.ChildReported) {
	err := l.reportToParent(parent, report)
	if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, store.ErrNotFound) && l.ctx.Err() == nil {
		l.o.Logger.Warn("report to the parent", "run", report.Run, "parent", parent, "error", err)
	}
}

func (x *Execution) afterRelease() {
	if x.parentLink.link.State() != childrun.Attached {
		x.parentLink.markReady()
	}
	x.local.removeExecution(x)
	if len(x.askingRuns) > 0 && x.err == nil && x.stopped == nil {
		x.local.loops.Go(func() { x.local.continueForChildren(x) })
	}
}
