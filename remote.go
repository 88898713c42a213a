package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// setRunner sets what differs where a runner.Scheduler schedules the runs.
func (w *Weir) setRunner(o *Options, ro *runner.Options) {
	ro.Runner = o.Executes
	if w.runner = o.Runner; o.Runner != nil {
		ro.Runner, ro.RecordOnly = o.Runner.Name(), true
	}
	if o.Executes != "" {
		ro.Program = w.programIfRunnable
		ro.Rest = cmp.Or(o.Rest, time.Second)
	}
}

// ErrRunner: the operation needs a process that executes runs itself.
var ErrRunner = errors.New("the configured runner does not support this")

// notWithRunner returns an ErrRunner if other processes execute the runs.
func (w *Weir) notWithRunner(what string) error {
	if w.runner == nil {
		return nil
	}
	return fmt.Errorf("%s: runner %s: %w", what, w.runner.Name(), ErrRunner)
}

// ref returns the reference of a run.
func (w *Weir) ref(ctx context.Context, id string) (runner.RunRef, error) {
	row, err := w.store.Run(ctx, id)
	if err != nil {
		return runner.RunRef{}, fmt.Errorf("run %s: %w", id, err)
	}
	return runner.RunRef{ID: id, Flow: row.Flow, User: row.User, Session: row.Session}, nil
}

// handOver has a worker execute a run that this process has recorded, if there is a runner. An
// error of a worker that owns the run is none: it executes the run already.
func (w *Weir) handOver(ctx context.Context, id string, x *runner.Execution, err error) (*Run, error) {
	if w.runner == nil {
		if err != nil {
			return nil, err
		}
		return &Run{ID: id, w: w, exec: x}, nil
	}
	if err == nil {
		_, err = x.Wait(ctx)
	}
	if err != nil && !errors.Is(err, store.ErrOwned) {
		return nil, err
	}
	return w.wake(ctx, id, false)
}

// wake has a worker execute a run. With resume a person asks for it.
func (w *Weir) wake(ctx context.Context, id string, resume bool) (*Run, error) {
	r, err := w.ref(ctx, id)
	if err == nil {
		err = w.local.CheckRunner(ctx, id)
	}
	if err == nil {
		err = w.runner.Wake(ctx, r, resume)
	}
	if err != nil {
		return nil, err
	}
	return &Run{ID: id, w: w}, nil
}

// deliver puts a message into the inbox of a run and has a worker apply it.
func (w *Weir) deliver(ctx context.Context, p store.Post) (*Run, error) {
	r, err := w.ref(ctx, p.Run)
	if err == nil {
		err = w.local.CheckRunner(ctx, p.Run)
	}
	if err == nil {
		p.Value, err = engine.Normalize(p.Value)
	}
	if err != nil {
		return nil, err
	}
	if err := w.post(ctx, &p); err != nil {
		return nil, err
	}
	if err := w.runner.Deliver(ctx, r, p); err != nil {
		return nil, err
	}
	if _, err := w.Outcome(ctx, p); err != nil { // another message may have been faster
		return nil, err
	}
	return &Run{ID: p.Run, w: w}, nil
}

// post puts a message into the inbox of a run and sets its ID. An answer from the queue of a session that is there already
// is not put there again.
func (w *Weir) post(ctx context.Context, p *store.Post) error {
	p.At = time.Now()
	if p.Kind == runner.PostQueuedAnswer {
		if err := w.findPost(ctx, p); p.ID != 0 || err != nil {
			return err
		}
	}
	if err := w.store.Post(ctx, *p); err != nil {
		return fmt.Errorf("run %s: %w", p.Run, err)
	}
	return w.findPost(ctx, p)
}

// findPost sets the ID of a message to that of the newest equal one in the inbox of its run.
func (w *Weir) findPost(ctx context.Context, p *store.Post) error {
	posts, err := w.store.Inbox(ctx, p.Run)
	if err != nil {
		return fmt.Errorf("run %s: %w", p.Run, err)
	}
	// order: of equal messages either stands for this one, and the newest is the likeliest.
	for _, found := range posts {
		if found.Kind == p.Kind && found.Name == p.Name && found.By == p.By {
			p.ID = max(p.ID, found.ID)
		}
	}
	return nil
}

// RecoverSessions has the workers of a runner execute rounds for messages to sessions whose senders have died, until stop
// is called. It is for the worker processes, see Options.Executes.
func (w *Weir) RecoverSessions(r runner.Scheduler) (stop func()) {
	o := w.localOptions
	o.Runner, o.RecordOnly, o.Program, o.Trajectories, o.Rested, o.Rest = r.Name(), true, nil, nil, nil, 0
	recorder := newWeir(w.resources)
	recorder.runner, recorder.localOptions, recorder.local = r, o, runner.NewLocal(o)
	recorder.sessions = recorder.newSessions(true)
	return func() {
		recorder.sessions.Close()
		_ = recorder.local.Close(context.Background()) // it executes nothing
	}
}

// Runner returns the name of the runner whose workers execute the run, "" if this process does.
func (r *Run) Runner() string {
	if r.w.runner == nil {
		return ""
	}
	return r.w.runner.Name()
}

// The interval at which a run that another process executes is looked at, at first and later.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = 200 * time.Millisecond
)

// maxAnswered is how often a run is looked at, or continued, that rests with a question that has been answered. A child run
// tells its caller of an answer soon.
const maxAnswered = 100

// looks calls look at growing intervals until it reports true or fails.
func looks(ctx context.Context, look func() (bool, error)) error {
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rests reports whether a run has ended or waits for people, and no message waits for it.
func (w *Weir) rests(ctx context.Context, id string) (bool, error) {
	row, err := w.store.Run(ctx, id)
	if err != nil {
		return false, fmt.Errorf("run %s: %w", id, err)
	}
	if row.Head.Status != engine.Paused || row.Owner != "" {
		return row.Head.Status.Ended(), nil
	}
	posts, err := w.store.Inbox(ctx, id)
	return len(posts) == 0, err
}

// waitForWorker returns the result of a run that a worker executes.
func (w *Weir) waitForWorker(ctx context.Context, id string) (Result, error) {
	answered := 0
	err := looks(ctx, func() (bool, error) {
		rests, err := w.rests(ctx, id)
		if err != nil || !rests {
			return false, err
		}
		open, err := w.local.OpenQuestions(ctx, id)
		answered++
		return open || answered >= maxAnswered, err
	})
	if err != nil {
		return Result{}, err
	}
	return w.resultOf(ctx, id)
}

// resultOf reads how far a run has come.
func (w *Weir) resultOf(ctx context.Context, id string) (Result, error) {
	p, err := w.programForReading(ctx, id)
	if err != nil {
		return Result{}, err
	}
	v, err := w.local.Inspect(ctx, p, id, 0)
	if err != nil {
		return Result{}, err
	}
	return v.Result(), nil
}

// itemsOfWorker yields the events and the live text of a run that a worker executes, after the cursor or the event
// number, until the run rests.
func (w *Weir) itemsOfWorker(ctx context.Context, id, cursor string, after int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		looking, stop := context.WithCancel(ctx)
		defer stop()
		done, failed := make(chan struct{}), error(nil)
		go func() {
			defer close(done)
			failed = looks(looking, func() (bool, error) { return w.rests(looking, id) })
		}()
		for it, err := range w.local.FollowJournals(ctx, id, cursor, after, done) {
			if !yield(it, err) || err != nil {
				return
			}
		}
		if <-done; failed != nil {
			yield(Item{}, failed)
		}
	}
}

// Execute executes a run of the runner that Options.Executes names until it rests; see
// runner.Local.Execute.
func (w *Weir) Execute(ctx context.Context, id string, o runner.ExecuteOptions) (runner.Rest, error) {
	return w.local.Execute(ctx, id, o)
}

// Outcome returns the outcome of a message in the inbox of a run; see runner.Local.Outcome.
func (w *Weir) Outcome(ctx context.Context, p store.Post) (pending bool, err error) {
	return w.local.Outcome(ctx, p)
}

// SettlePost reports what became of a message in the inbox of a run; see runner.Local.SettlePost.
func (w *Weir) SettlePost(ctx context.Context, run string, id int64) (pending, refused bool, err error) {
	return w.local.SettlePost(ctx, run, id)
}

// RequestCancel puts a cancellation into the inbox of a run, unless one waits there already.
// The process that executes the run applies it.
func (w *Weir) RequestCancel(ctx context.Context, run, by string) error {
	return w.local.RequestCancel(ctx, run, by)
}

// Unscheduled lists the runs that no process executes although there is something to do; see
// runner.Local.Unscheduled.
func (w *Weir) Unscheduled(ctx context.Context) ([]runner.Unscheduled, error) {
	return w.local.Unscheduled(ctx)
}
