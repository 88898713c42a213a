package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Rest is the state in which a worker leaves a run.
type Rest struct {
	Status engine.Status
	// Commits is the length of the journal.
	Commits int64
	// Due is when a timer of the run or of a child run fires, zero for never: until then only
	// answers, events and cancellations continue the run.
	Due time.Time
}

// ExecuteOptions are options of Execute; the zero value is for a run that no person has asked to continue.
type ExecuteOptions struct {
	// Resume executes a run also if several workers died while they executed it, see
	// ErrPoisoned: a person has asked for it.
	Resume bool
	// Commits is the length that the journal has at least; a shorter one is an
	// ErrJournalBehind.
	Commits int64
	// Drain is how long effects in flight may take to end once ctx has ended, before they
	// are cancelled.
	Drain time.Duration
}

// ErrJournalBehind: the journal of a run is shorter than it has been, as after the store was
// restored from a copy. Effects may have happened that it does not record.
var ErrJournalBehind = errors.New("the journal is shorter than what was recorded before")

// ErrNoRun: the store does not have the run, as after it was deleted.
var ErrNoRun = errors.New("there is no such run")

// Execute executes a run of the runner that Options.Runner names, with the messages in its
// inbox, until it rests: it has ended, waits for people or events, or for a timer that is
// further away than Options.Rest. Its child runs are executed with it. When ctx ends, the run
// stops where it is, so that another process can continue it, and the error is that of ctx.
//
// The error is a *Missing if this process lacks something that the run needs, store.ErrOwned while another process holds
// the run, and ErrNoRun if there is no run.
func (l *Local) Execute(ctx context.Context, id string, o ExecuteOptions) (Rest, error) {
	row, err := l.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return Rest{}, fmt.Errorf("run %s: %w: %w", id, ErrNoRun, err)
	}
	if err != nil {
		return Rest{}, fmt.Errorf("run %s: %w", id, err)
	}
	if row.Commits < o.Commits {
		return Rest{}, fmt.Errorf("run %s has %d commits and had %d: %w", id, row.Commits, o.Commits, ErrJournalBehind)
	}
	for {
		x, err := l.continueRun(ctx, id, o.Resume)
		if err != nil {
			return Rest{}, err
		}
		rest, err := l.awaitRest(ctx, x, o.Drain)
		if err != nil {
			return rest, err
		}
		posts, err := l.store.Inbox(ctx, id)
		if err != nil || len(posts) == 0 || rest.Status.Ended() {
			return rest, err
		}
	}
}

// continueRun applies the messages in the inbox of a run and continues it.
func (l *Local) continueRun(ctx context.Context, id string, resume bool) (*Execution, error) {
	p, err := l.o.Program(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := l.DeliverPosts(ctx, p, id); err != nil {
		return nil, err
	}
	if resume {
		return l.Resume(ctx, p, id)
	}
	return l.Recover(ctx, p, id)
}

// awaitRest waits until an execution ends.
func (l *Local) awaitRest(ctx context.Context, x *Execution, drain time.Duration) (Rest, error) {
	stopped := false
	select {
	case <-x.Done():
	case <-ctx.Done():
		stopped = true
		l.Suspend(x.ID, drain)
		<-x.Done()
	}
	result, err := x.Wait(context.WithoutCancel(ctx))
	if err != nil && (!stopped || !errors.Is(err, ErrStopped)) {
		return Rest{}, err
	}
	rest := Rest{Status: result.Status}
	rest.Due, _ = x.RestsUntil()
	row, err := l.store.Run(context.WithoutCancel(ctx), x.ID)
	if err != nil {
		return rest, fmt.Errorf("run %s: %w", x.ID, err)
	}
	rest.Commits = row.Commits
	if stopped && result.Status == engine.Running {
		return rest, context.Cause(ctx)
	}
	return rest, nil
}

// RequestCancel puts a cancellation into the inbox of a run, unless one waits there already. The process that executes the run applies
// it.
func (l *Local) RequestCancel(ctx context.Context, run, by string) error {
	posts, err := l.store.Inbox(ctx, run)
	if err != nil {
		return fmt.Errorf("run %s: %w", run, err)
	}
	for _, p := range posts {
		if p.Kind == "cancel" {
			return nil
		}
	}
	if err := l.store.Post(ctx, store.Post{Run: run, Kind: "cancel", By: by, At: time.Now()}); err != nil {
		return fmt.Errorf("run %s: %w", run, err)
	}
	return nil
}

// Scheduler has runs executed by other processes, its workers; package temporal implements it.
// The store is shared: this process records what starts or changes a run, and a worker
// executes it.
type Scheduler interface {
	// Name is recorded with each run: "temporal". Processes of other runners leave the run
	// alone.
	Name() string
	// Wake has a worker execute a run until it rests. What there is to do is durable in the
	// store. Waking a run that is being executed, or that waits, is harmless. With resume a person asks for it: a run that
	// is set aside is executed, see ErrPoisoned.
	Wake(ctx context.Context, r RunRef, resume bool) error
	// Deliver has a worker apply a message that is in the inbox of a run, and returns when it
	// is durable, or why it was refused: ErrNoInterrupt, ErrAnswer, ErrStatus.
	Deliver(ctx context.Context, r RunRef, p store.Post) error
	// Forget deletes all that the scheduler keeps about runs, and stops scheduling them: their
	// workflows, in whatever state, and the histories of those. The deletion is durable when it
	// returns. Runs of which nothing is kept are no error.
	Forget(ctx context.Context, runs []string) error
	// Obstacle says why a run does not advance that has something to do and that no live process owns; nil if
	// the scheduler is about to have it executed.
	Obstacle(ctx context.Context, r RunRef) (*Obstacle, error)
	// Close ends the connection.
	Close() error
}

// Obstacle is why nothing advances a run: a stable code, a sentence, and what to do.
type Obstacle struct{ Code, Detail, Next string }

// RunRef identifies a run for a Scheduler.
type RunRef struct{ ID, Flow, User, Session string }

// Unscheduled is a run that no process executes.
type Unscheduled struct {
	RunRef
	Messages bool // there are messages in its inbox
}

// unscheduledPage is how many unfinished runs are read at a time.
const unscheduledPage = 500

// Unscheduled lists the runs of the runner that Options.Runner names that no process executes although there is
// something to do: a node, a timer that is due, a message. Child runs, which are executed with their parents, and runs
// that are set aside are not among them.
func (l *Local) Unscheduled(ctx context.Context) ([]Unscheduled, error) {
	recovery := l.store.Capabilities().Recovery
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
			free := u.Owner == "" || u.Expired || OwnerDead(u.Owner)
			if u.Parent != "" || !free || u.Crashes >= MaxCrashes || l.CheckRunner(ctx, u.Run) != nil {
				continue
			}
			row, err := l.store.Run(ctx, u.Run)
			if err != nil {
				return out, fmt.Errorf("run %s: %w", u.Run, err)
			}
			out = append(out, Unscheduled{RunRef{ID: u.Run, Flow: row.Flow, User: row.User, Session: row.Session}, u.Posts})
		}
		if len(page) < unscheduledPage {
			return out, nil
		}
	}
}
