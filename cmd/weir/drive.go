package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// driving is how a command that drives a run reports on it.
type driving struct {
	p       *program
	events  bool
	noInput bool
	record  string
	replay  string
	accept  bool     // what has changed since the run was started
	forked  *forked  // of a run that shares the past of another
	atWork  []string // nodes that were when the run was opened, and go on
}

// flags adds the flags that all commands share that drive a run.
func (d *driving) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&d.p.json, "json", false, "print one JSON object last on stdout")
	f.BoolVar(&d.events, "events", false, "print the events of the run and its child runs on stdout, one JSON object per line")
	f.BoolVar(&d.noInput, "no-input", false, "ask no questions in the terminal; pause instead")
	f.StringVar(&d.record, "record", "", "write all model calls to `FILE`")
	f.StringVar(&d.replay, "replay", "", "answer model calls from `FILE`, a recording of --record; call no model")
}

// acceptFlag adds the flag of commands that continue a run under other versions.
func (d *driving) acceptFlag(c *cobra.Command) {
	c.Flags().BoolVar(&d.accept, "accept-changes", false, "continue with the current node types and tools if they differ from those that the run started with")
}

// acceptChanges has a run continue under what there is now, where that was asked for.
func (d *driving) acceptChanges(ctx context.Context, desk *desk, id string) error {
	if !d.accept {
		return nil
	}
	changes, err := desk.AcceptChanges(ctx, id, d.p.person())
	for _, change := range changes {
		d.p.say("accepted: %s", printable(change))
	}
	return err
}

// drive follows a run until it ends, waits for somebody who is not here, or a
// signal comes, and reports. seen is what of its events is no news.
func (d *driving) drive(ctx context.Context, desk *desk, run *weir.Run, seen seen) error {
	w := d.watcher()
	for {
		last, err := d.follow(ctx, run, seen, w)
		if err == nil {
			var r weir.Result
			if r, err = run.Wait(ctx); err == nil {
				var on *weir.Run
				if on, err = d.ask(ctx, desk, r); on != nil && err == nil {
					run, seen = on, last
					continue
				}
				if err == nil {
					return d.finish(desk, r, w)
				}
			}
		}
		if s, ok := errors.AsType[*errSignal](context.Cause(ctx)); ok {
			return d.interrupted(desk, run, w, s)
		}
		return err
	}
}

// seen is how far the events of a run are no news: up to the item of a cursor, or, where
// there is none, up to the event of that number.
type seen struct {
	cursor string
	number int64
}

// follow hands the run's events, and those of its children, to whoever watches until the
// execution ends, and returns what it has seen.
func (d *driving) follow(ctx context.Context, run *weir.Run, from seen, w watcher) (seen, error) {
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

// ask puts the run's questions to the person at the terminal, if there is one.
// It returns the run that goes on because one was answered, nil where none was.
func (d *driving) ask(ctx context.Context, desk *desk, r weir.Result) (*weir.Run, error) {
	if r.Status != engine.Paused || !d.interactive() {
		return nil, nil
	}
	for _, i := range r.Interrupts {
		if i.Kind == engine.AwaitEvent || i.Kind == engine.AwaitTimer {
			continue
		}
		v, ok, err := d.p.question(ctx, i)
		if err != nil || !ok {
			return nil, err
		}
		return desk.Answer(ctx, r.Run, i.ID, v, d.p.person())
	}
	return nil, nil
}

// interactive reports whether questions can be asked in place.
func (d *driving) interactive() bool {
	return !d.noInput && !d.events && !d.p.json && isTerminal(d.p.in) && isTerminal(d.p.err)
}

// finish closes the desk and reports.
func (d *driving) finish(desk *desk, r weir.Result, w watcher) error {
	err := desk.close()
	if w != nil {
		w.end(r)
	}
	d.p.report(r, d)
	if err != nil {
		return err
	}
	if code := statusCode(r.Status); code != exitOK {
		return &exit{code}
	}
	return nil
}

// interrupted stops the run where it can be resumed, and says so.
func (d *driving) interrupted(desk *desk, run *weir.Run, w watcher, s *errSignal) error {
	d.p.say("Stopping... press Ctrl-C again to force.")
	err := desk.close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	r, waitErr := run.Wait(ctx)
	if errors.Is(waitErr, runner.ErrStopped) {
		waitErr = nil // the report says how to continue it
	}
	if err = errors.Join(err, waitErr); err != nil {
		return err
	}
	if w != nil {
		w.end(r)
	}
	d.p.report(r, d)
	return &exit{s.code()}
}

// statusCode is the exit code for how far a run has come.
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
