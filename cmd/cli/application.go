package cli

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/runner"
)

// application is an open Weir. Close it.
type application struct {
	*app.App
	// drain returns how long close waits for effects in flight.
	drain func() time.Duration
}

// open opens the database and what the options ask for. The caller sets only what differs
// between commands.
func (p *cli) open(ctx context.Context, o app.Options) (*application, error) {
	var err error
	if o.Config, err = p.config(); err != nil {
		return nil, err
	}
	o.Database, o.Sync, o.Sandboxes, o.Logger = p.database(), p.syncMode(), p.sandboxes, p.logger()
	if open := p.options.Runner; open != nil {
		o.Runner = func(ctx context.Context) (runner.Scheduler, error) {
			return open(ctx, o.Config, func(s string) { p.notef("note: %s", s) })
		}
	}
	a, err := app.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if a.Note != "" {
		p.notef("note: %s: %s", p.databaseName(), a.Note)
	}
	return &application{App: a, drain: func() time.Duration { return drainAfter(ctx, a.Drain) }}, nil
}

// openReadOnly opens an existing database, so that a mistyped path does not create one.
// If the database cannot be written, writes of the command fail.
func (p *cli) openReadOnly(ctx context.Context) (*application, error) {
	if err := p.mustExist(); err != nil {
		return nil, err
	}
	return p.open(ctx, app.Options{ReadOnly: true})
}

// openWithRunner is openReadOnly with the runner that the configuration names.
func (p *cli) openWithRunner(ctx context.Context) (*application, error) {
	if err := p.mustExist(); err != nil {
		return nil, err
	}
	return p.open(ctx, app.Options{ReadOnly: true, WithRunner: true})
}

// openRun opens an existing database and finds the run whose id begins with prefix.
func (p *cli) openRun(ctx context.Context, prefix string, o app.Options) (*application, string, error) {
	if err := p.mustExist(); err != nil {
		return nil, "", err
	}
	d, err := p.open(ctx, o)
	if err != nil {
		return nil, "", err
	}
	id, err := d.find(ctx, prefix)
	if err != nil {
		return nil, "", errors.Join(err, d.close())
	}
	return d, id, nil
}

// find returns the id of the one run whose id begins with prefix.
func (a *application) find(ctx context.Context, prefix string) (string, error) {
	id, err := a.Find(ctx, prefix)
	if err != nil && errors.Unwrap(err) == nil { // several runs match; the store did not fail
		return "", &usageError{Err: err}
	}
	return id, err
}

func (p *cli) mustExist() error {
	return app.CheckDatabaseExists(p.database())
}

// drainAfter returns how long effects in flight may take once ctx has ended: the given time
// after SIGTERM, which supervisors send, and none after Ctrl-C.
func drainAfter(ctx context.Context, configured time.Duration) time.Duration {
	if s, ok := errors.AsType[*errSignal](context.Cause(ctx)); ok && s.signal == syscall.SIGTERM {
		return configured
	}
	return 0
}

// close stops all runs where they can be resumed. A second call does nothing.
func (a *application) close() error { return a.Shutdown(a.drain()) }
