package weir

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Rest is the state in which a worker leaves a run.
type Rest struct {
	Status Status
	// Commits is the length of the journal.
	Commits int64
	// Due is when a timer of the run or of a child run fires, zero for never: until then only
	// answers, events and cancellations continue the run.
	Due time.Time
}

// ExecuteOptions are options of Execute; the zero value is for a run that nobody asked to
// continue.
type ExecuteOptions struct {
	// Resume executes a run also if several workers died while they executed it, see
	// runner.ErrPoisoned: a person has asked for it.
	Resume bool
	// Commits is the length that the journal has at least; a shorter one is an
	// ErrJournalBehind.
	Commits int64
	// Drain is how long effects in flight may take to end once ctx has ended, before they
	// are cancelled.
	Drain time.Duration
}

// ErrJournalBehind: the journal of a run is shorter than it has been, as after the store was
// restored from a copy. Effects may have happened that it does not know.
var ErrJournalBehind = errors.New("the journal is shorter than what was recorded before")

// Execute executes a run of the runner that Options.Executes names, with the messages in its
// inbox, until it rests: it has ended, waits for people or events, or for a timer that is
// further away than Options.Rest. Its child runs are executed with it. When ctx ends, the run
// stops where it is, so that another process can continue it, and the error is that of ctx.
//
// The error is a *runner.Missing if this process lacks something that the run needs, and
// store.ErrOwned while another process holds the run.
func (w *Weir) Execute(ctx context.Context, id string, o ExecuteOptions) (Rest, error) {
	row, err := w.store.Run(ctx, id)
	if err != nil {
		return Rest{}, fmt.Errorf("run %s: %w", id, err)
	}
	if row.Commits < o.Commits {
		return Rest{}, fmt.Errorf("run %s has %d commits and had %d: %w", id, row.Commits, o.Commits, ErrJournalBehind)
	}
	for {
		x, err := w.continueRun(ctx, id, o.Resume)
		if err != nil {
			return Rest{}, err
		}
		rest, err := w.awaitRest(ctx, x, o.Drain)
		if err != nil {
			return rest, err
		}
		posts, err := w.store.Inbox(ctx, id)
		if err != nil || len(posts) == 0 || rest.Status.Ended() {
			return rest, err
		}
	}
}

// continueRun applies the messages in the inbox of a run and continues it.
func (w *Weir) continueRun(ctx context.Context, id string, resume bool) (*runner.Execution, error) {
	p, err := w.programIfRunnable(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := w.local.DeliverPosts(ctx, p, id); err != nil {
		return nil, err
	}
	if resume {
		return w.local.Resume(ctx, p, id)
	}
	return w.local.Recover(ctx, p, id)
}

// awaitRest waits until an execution ends.
func (w *Weir) awaitRest(ctx context.Context, x *runner.Execution, drain time.Duration) (Rest, error) {
	stopped := false
	select {
	case <-x.Done():
	case <-ctx.Done():
		stopped = true
		w.local.Suspend(x.ID, drain)
		<-x.Done()
	}
	result, err := x.Wait(context.WithoutCancel(ctx))
	if err != nil && (!stopped || !errors.Is(err, runner.ErrStopped)) {
		return Rest{}, err
	}
	rest := Rest{Status: result.Status}
	rest.Due, _ = x.RestsUntil()
	row, err := w.store.Run(context.WithoutCancel(ctx), x.ID)
	if err != nil {
		return rest, fmt.Errorf("run %s: %w", x.ID, err)
	}
	rest.Commits = row.Commits
	if stopped && result.Status == engine.Running {
		return rest, context.Cause(ctx)
	}
	return rest, nil
}

// Outcome returns the outcome of a message that was put into the inbox of a run: nil if the
// journal has it, why it was refused, or pending if it still waits. A message that cannot be
// applied is removed. Without p.Value, the value is that of the inbox, and not compared once
// the message has been applied.
func (w *Weir) Outcome(ctx context.Context, p store.Post) (pending bool, err error) {
	posts, err := w.store.Inbox(ctx, p.Run)
	if err != nil {
		return false, fmt.Errorf("run %s: %w", p.Run, err)
	}
	for _, found := range posts {
		if found.ID == p.ID {
			p.Value, pending = found.Value, true
		}
	}
	switch p.Kind {
	case "cancel":
		err = w.cancelOutcome(ctx, &p, pending)
	case "event":
		err = w.eventOutcome(ctx, &p, pending)
	default:
		err = w.answerOutcome(ctx, p.Run, p.Name, &p, pending)
	}
	if err == nil || !pending {
		return pending, err
	}
	if removed := w.store.RemovePosts(ctx, []int64{p.ID}); removed != nil {
		return false, removed
	}
	return false, err
}

// cancelOutcome returns why a cancellation cannot be applied, if it is pending, or was not.
func (w *Weir) cancelOutcome(ctx context.Context, p *store.Post, pending bool) error {
	v, err := w.inspectForCommand(ctx, p.Run)
	if err != nil || v.Run.CancelRequested() {
		return err
	}
	e, err := runner.Cancel(p.By, "")(v.Run)
	if err == nil && e != nil && !pending {
		err = fmt.Errorf("run %s: the cancellation was not applied; send it again: %w", p.Run, runner.ErrStatus)
	}
	return err
}

// eventOutcome is cancelOutcome for an outside event.
func (w *Weir) eventOutcome(ctx context.Context, p *store.Post, pending bool) error {
	v, err := w.inspectForCommand(ctx, p.Run)
	if err != nil {
		return err
	}
	if !pending {
		found, err := w.findAnswer(ctx, p.Run, p)
		if found || err != nil {
			return err
		}
	}
	for _, i := range v.Run.Interrupts() {
		if i.Kind == engine.AwaitEvent && i.Event == p.Name {
			return w.answerOutcome(ctx, p.Run, i.ID, p, true)
		}
	}
	_, err = runner.Signal(p.Name, p.Value, p.By)(v.Run)
	return err
}

// answerOutcome is cancelOutcome for the answer to an interrupt of a run or of one of its child
// runs.
func (w *Weir) answerOutcome(ctx context.Context, run, id string, p *store.Post, pending bool) error {
	v, err := w.inspectForCommand(ctx, run)
	if err != nil {
		return err
	}
	if outer, inner, below := strings.Cut(id, ">"); below {
		child, err := w.ChildAt(ctx, run, outer)
		if err != nil || child == "" {
			return errors.Join(err, fmt.Errorf("run %s: %s: %w", run, id, runner.ErrNoInterrupt))
		}
		return w.answerOutcome(ctx, child, inner, p, pending)
	}
	if !pending {
		for _, c := range v.Commits {
			for _, e := range c.Events {
				if a, ok := e.(*engine.InterruptAnswered); ok && a.ID == id && isAnswer(a, p) {
					return nil
				}
			}
		}
	}
	if _, err = runner.Answer(id, p.Value, p.By)(v.Run); err == nil && !pending {
		err = fmt.Errorf("run %s: %s: the answer was not applied; send it again: %w", run, id, runner.ErrAnswer)
	}
	return err
}

// isAnswer reports whether an event of a journal is the answer of a message.
func isAnswer(a *engine.InterruptAnswered, p *store.Post) bool {
	return a.By == p.By && (p.Value == nil || reflect.DeepEqual(a.Value, p.Value))
}

// findAnswer reports whether a run or one of its child runs has an answer in its journal.
func (w *Weir) findAnswer(ctx context.Context, run string, p *store.Post) (bool, error) {
	var children []string
	for c, err := range w.store.Commits(ctx, run, 0) {
		if err != nil {
			return false, fmt.Errorf("read run %s: %w", run, err)
		}
		for _, e := range c.Events {
			switch e := e.(type) {
			case *engine.InterruptAnswered:
				if isAnswer(e, p) {
					return true, nil
				}
			case *engine.NodeWaiting:
				for _, i := range e.Interrupts {
					if i.Child != nil {
						children = append(children, i.Child.Run)
					}
				}
			}
		}
	}
	for _, child := range children {
		found, err := w.findAnswer(ctx, child, p)
		if errors.Is(err, store.ErrNotFound) { // it has not started
			continue
		}
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// inspectForCommand reads the present state of a run.
func (w *Weir) inspectForCommand(ctx context.Context, id string) (*runner.RunView, error) {
	p, err := w.programForReading(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.local.Inspect(ctx, p, id, 0)
}

// RequestCancel puts a cancellation into the inbox of a run, unless one waits there already. Who executes the run applies
// it.
func (w *Weir) RequestCancel(ctx context.Context, run, by string) error {
	posts, err := w.store.Inbox(ctx, run)
	if err != nil {
		return fmt.Errorf("run %s: %w", run, err)
	}
	for _, p := range posts {
		if p.Kind == "cancel" {
			return nil
		}
	}
	if err := w.store.Post(ctx, store.Post{Run: run, Kind: "cancel", By: by, At: time.Now()}); err != nil {
		return fmt.Errorf("run %s: %w", run, err)
	}
	return nil
}

// Unscheduled is a run that no process executes.
type Unscheduled struct {
	RunRef
	Messages bool // there are messages in its inbox
}

// unscheduledPage is how many unfinished runs are read at a time.
const unscheduledPage = 500

// Unscheduled lists the runs of the runner that Options.Executes names that no process executes although there is
// something to do: a node, a timer that is due, a message. Child runs, which are executed with their parents, and runs
// that are set aside are not among them.
func (w *Weir) Unscheduled(ctx context.Context) ([]Unscheduled, error) {
	recovery := w.store.Capabilities().Recovery
	if recovery == nil {
		return nil, fmt.Errorf("list unscheduled runs: %w", &store.Unsupported{Capability: "recovery"})
	}
	var out []Unscheduled
	for after := int64(0); ; {
		page, err := recovery.Unfinished(ctx, "", after, unscheduledPage)
		if err != nil {
			return out, fmt.Errorf("list unscheduled runs: %w", err)
		}
		for i := range page {
			u := &page[i]
			after = u.Number
			free := u.Owner == "" || u.Expired || runner.OwnerDead(u.Owner)
			if u.Parent != "" || !free || u.Crashes >= runner.MaxCrashes || w.local.CheckRunner(ctx, u.Run) != nil {
				continue
			}
			r, err := w.ref(ctx, u.Run)
			if err != nil {
				return out, err
			}
			out = append(out, Unscheduled{r, u.Posts})
		}
		if len(page) < unscheduledPage {
			return out, nil
		}
	}
}
