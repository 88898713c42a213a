package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// runDriver is how a command that drives a run reports on it.
type runDriver struct {
	p            *cli
	events       bool
	noInput      bool
	record       string
	replay       string
	accept       bool         // what has changed since the run was started
	forked       *forkDetails // of a run that shares the past of another
	runningNodes []string     // that were executing when the run was opened, and still are
}

// flags adds the flags that all commands share that drive a run.
func (d *runDriver) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&d.p.json, "json", false, "print one JSON object last on stdout")
	f.BoolVar(&d.events, "events", false, "print the events of the run and its child runs on stdout, one JSON object per line")
	f.BoolVar(&d.noInput, "no-input", false, "ask no questions in the terminal; pause instead")
	f.StringVar(&d.record, "record", "", "write all model calls to `FILE`")
	f.StringVar(&d.replay, "replay", "", "answer model calls from `FILE`, a recording of --record; call no model")
}

// acceptFlag adds the flag of commands that continue a run under other versions.
func (d *runDriver) acceptFlag(c *cobra.Command) {
	c.Flags().BoolVar(&d.accept, "accept-changes", false, "continue with the current node types and tools if they differ from those that the run started with")
}

// acceptChanges has a run continue under what there is now, where that was asked for.
func (d *runDriver) acceptChanges(ctx context.Context, a *application, id string) error {
	if !d.accept {
		return nil
	}
	changes, err := a.AcceptChanges(ctx, id, d.p.userName())
	for _, change := range changes {
		d.p.notef("accepted: %s", app.Printable(change))
	}
	return err
}

// drive follows a run until it ends, waits for an answer that this terminal cannot give, or a
// signal arrives, and reports. Events up to seen are not reported again.
func (d *runDriver) drive(ctx context.Context, a *application, run *weir.Run, seen position) error {
	w := d.watcher()
	for {
		last, err := d.follow(ctx, run, seen, w)
		if err == nil {
			var r weir.Result
			if r, err = run.Wait(ctx); err == nil {
				var on *weir.Run
				if on, err = d.askAndAnswer(ctx, a, r); on != nil && err == nil {
					run, seen = on, last
					continue
				}
				if err == nil {
					return d.reportResult(a, r, w)
				}
			}
		}
		if s, ok := errors.AsType[*errSignal](context.Cause(ctx)); ok {
			return d.reportSignal(a, run, w, s)
		}
		return err
	}
}

// position is how far the events of a run are no news: up to the item of a cursor, or, where
// there is none, up to the event of that number.
type position struct {
	cursor string
	number int64
}

// follow passes the run's events, and those of its children, to the watcher until the
// execution ends, and returns what it has seen.
func (d *runDriver) follow(ctx context.Context, run *weir.Run, from position, w watcher) (position, error) {
	if w == nil {
		return from, nil
	}
	source := run.EventsAfter(ctx, from.number)
	if from.cursor != "" {
		source = run.EventsFrom(ctx, from.cursor)
	}
	items := make(chan runner.Item, 256)
	var failed error
	go func() {
		defer close(items)
		for it, err := range source {
			if failed = err; err != nil {
				return
			}
			items <- it
			from.cursor = it.Cursor()
		}
	}()
	err := w.watch(items)
	for range items { // what is left where the watcher failed
	}
	return from, errors.Join(err, failed)
}

// askAndAnswer puts the run's questions to the person at the terminal, if there is one.
// It returns the run that continues because one was answered, nil if none was.
func (d *runDriver) askAndAnswer(ctx context.Context, a *application, r weir.Result) (*weir.Run, error) {
	if r.Status != engine.Paused || !d.interactive() {
		return nil, nil
	}
	for _, i := range r.Interrupts {
		if i.Kind == engine.AwaitEvent || i.Kind == engine.AwaitTimer {
			continue
		}
		v, ok, err := d.p.askQuestion(ctx, i)
		if err != nil || !ok {
			return nil, err
		}
		return a.Answer(ctx, r.Run, i.ID, v, d.p.userName())
	}
	return nil, nil
}

// interactive reports whether questions can be asked in place.
func (d *runDriver) interactive() bool {
	return !d.noInput && !d.events && !d.p.json && isTerminal(d.p.in) && isTerminal(d.p.err)
}

// reportResult closes the application and reports the result.
func (d *runDriver) reportResult(a *application, r weir.Result, w watcher) error {
	err := a.close()
	if w != nil {
		w.complete(r)
	}
	d.p.report(r, d)
	if err != nil {
		return err
	}
	if code := statusCode(r.Status); code != exitOK {
		return &exitError{code}
	}
	return nil
}

// stopTime bounds how long a stopped run may take to report its last state.
const stopTime = 15 * time.Second

// reportSignal stops the run where it can be resumed, and says so. A run that other processes execute continues.
func (d *runDriver) reportSignal(a *application, run *weir.Run, w watcher, s *errSignal) error {
	if r := run.Runner(); r != "" {
		d.p.notef("run %s continues on the runner %s; follow it with: %s", run.ID, r, d.p.commandLine("resume", run.ID))
		return errors.Join(a.close(), &exitError{s.code()})
	}
	d.p.notef("Stopping... press Ctrl-C again to force.")
	err := a.close()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	r, waitErr := run.Wait(ctx)
	if errors.Is(waitErr, runner.ErrStopped) {
		waitErr = nil // the report says how to continue it
	}
	if err = errors.Join(err, waitErr); err != nil {
		return err
	}
	if w != nil {
		w.complete(r)
	}
	d.p.report(r, d)
	return &exitError{s.code()}
}

// statusCode returns the exit code for how far a run has come.
func statusCode(s engine.Status) int {
	switch s {
	case engine.Completed:
		return exitOK
	case engine.Cancelled:
		return exitCancelled
	case engine.Paused:
		return exitPaused
	default:
		return exitFailed
	}
}
