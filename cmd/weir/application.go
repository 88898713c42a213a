package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node/builtin/safehttp"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// application is an open Weir with what the commands need beside it. Close it.
type application struct {
	*weir.Weir
	store      weir.Store
	providers  []string           // their names, in order
	tools      *toolbox           // what models may call
	recorder   *recorded.Recorder // nil where nothing is recorded
	trajectory config.Trajectory
	closed     bool
	// drain is how long closing waits for effects in flight.
	drain func() time.Duration
}

// openOptions says what a desk is opened for.
type openOptions struct {
	// record and replay are files: model calls are written to the one or
	// answered from the other.
	record, replay string
	// flow is what is going to run, and run the beginning of the id of a run that
	// is going on: the servers of their tools are started. Neither is set for a
	// command that runs nothing.
	flow *weir.Flow
	run  string
	// readOnly says that the database may be one that cannot be written.
	readOnly bool
}

// open opens the database and wires the providers of models and their tools.
func (p *cli) open(ctx context.Context, what openOptions) (*application, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	if what.record != "" && what.replay != "" {
		return nil, usagef("--record and --replay exclude each other: replayed calls are recorded already")
	}
	o := weir.Options{
		Providers: providers(cfg), Timeouts: timeouts(cfg), Logger: p.logger(), Parallel: cfg.Parallel,
		Models: models(cfg), Limits: llm.NewLimits(cfg.Limits), Secrets: cfg.Secret,
	}
	o.Models.Logger = o.Logger
	client, err := safeClient(cfg)
	if err != nil {
		return nil, err
	}
	o.HTTP, o.Executors = client, p.executors(cfg)
	d := &application{providers: slices.Sorted(maps.Keys(o.Providers)), trajectory: cfg.Trajectory, drain: drainOf(ctx, cfg)}
	if d.tools, err = p.toolbox(cfg, client); err != nil {
		return nil, err
	}
	if err := d.recordOrReplay(what, &o); err != nil {
		return nil, err
	}
	if err := d.openStore(ctx, p, what, &o); err != nil {
		return nil, errors.Join(err, d.tools.close(), d.stopRecording())
	}
	return d, nil
}

// safeClient is how flows and tools reach the network.
func safeClient(cfg *config.Config) (*http.Client, error) {
	client, err := safehttp.Client(safehttp.Options{AllowPrivate: cfg.HTTP.AllowPrivate})
	if err != nil {
		return nil, usagef("configuration (%s): http: %w", strings.Join(cfg.Files, ", "), err)
	}
	return client, nil
}

// openStore opens the store, with the tools beforehand where the flow is known: a
// tool that cannot be used leaves no database behind.
func (d *application) openStore(ctx context.Context, p *cli, what openOptions, o *weir.Options) (err error) {
	if o.Flows, err = d.tools.flowTools(); err != nil && (what.flow != nil || what.run != "") {
		return err // whoever only looks can do without
	}
	if what.run == "" {
		if o.Tools, err = d.tools.toolsFor(ctx, what.flow); err != nil {
			return err
		}
	}
	if d.store, err = p.openSQLite(ctx, what.readOnly); err != nil {
		return fmt.Errorf("open %s: %w", p.database(), err)
	}
	if what.run != "" {
		o.Tools, err = d.tools.toolsFor(ctx, recordedFlow(ctx, d.store, what.run))
	}
	if err == nil {
		err = d.addMemoryTools(o)
	}
	if err == nil {
		o.Store, o.Trajectories = d.store, trajectories(d.trajectory, d.store)
		d.Weir, err = weir.Open(*o)
	}
	if err != nil {
		return errors.Join(err, d.store.Close())
	}
	return nil
}

func (p *cli) openSQLite(ctx context.Context, reads bool) (*sqlite.Store, error) {
	if !reads {
		return sqlite.Open(ctx, p.database(), sqlite.Options{})
	}
	s, err := sqlite.OpenReadOnly(ctx, p.database(), sqlite.Options{})
	if err == nil {
		p.noteReadOnly(s)
	}
	return s, err
}

// recordOrReplay has model calls recorded or replayed.
func (d *application) recordOrReplay(what openOptions, o *weir.Options) (err error) {
	if what.replay != "" {
		if o.Replay, err = recorded.Open(what.replay); err != nil {
			return &usageError{err}
		}
	}
	if what.record != "" {
		if d.recorder, err = recorded.NewFileRecorder(what.record); err != nil {
			return &usageError{err}
		}
		for name, provider := range o.Providers {
			o.Providers[name] = d.recorder.Wrap(provider)
		}
	}
	return nil
}

// openReadOnly opens the database for a command that only makes sense where there is
// one, so that a mistyped path does not make a new one. Where it cannot be written it
// is open for reading, and what the command writes fails.
func (p *cli) openReadOnly(ctx context.Context) (*application, error) {
	if err := p.mustExist(); err != nil {
		return nil, err
	}
	return p.open(ctx, openOptions{readOnly: true})
}

// openRun opens the database for work on one run that is in it, and finds it by the
// beginning of its id.
func (p *cli) openRun(ctx context.Context, prefix string, what openOptions) (*application, string, error) {
	if err := p.mustExist(); err != nil {
		return nil, "", err
	}
	d, err := p.open(ctx, what)
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
func (d *application) find(ctx context.Context, prefix string) (string, error) {
	id, err := d.Find(ctx, prefix)
	if err != nil && errors.Unwrap(err) == nil { // more than one: the store had nothing against it
		return "", &usageError{err}
	}
	return id, err
}

func (p *cli) mustExist() error {
	if _, err := os.Stat(p.database()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database at %s: %w", filepath.Clean(p.database()), store.ErrNotFound)
	}
	return nil
}

// closeTime bounds how long nodes have to stop; their effects get 10 seconds.
const closeTime = 15 * time.Second

// defaultDrain is how long a command that SIGTERM ends waits for effects in flight.
const defaultDrain = 5 * time.Second

// drainOf says how long to wait for effects in flight: where SIGTERM ends the command, as
// a supervisor does, no time where a person does.
func drainOf(ctx context.Context, cfg *config.Config) func() time.Duration {
	return func() time.Duration {
		if s, ok := errors.AsType[*errSignal](context.Cause(ctx)); ok && s.signal == syscall.SIGTERM {
			return cmp.Or(cfg.Drain, defaultDrain)
		}
		return 0
	}
}

// close stops all runs where they can be resumed; calling it again does
// nothing.
func (d *application) close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	wait := d.drain()
	d.SetDrain(wait)
	ctx, cancel := context.WithTimeout(context.Background(), closeTime+wait)
	defer cancel()
	return errors.Join(d.Close(ctx), d.tools.close(), d.stopRecording())
}

func (d *application) stopRecording() error {
	if d.recorder == nil {
		return nil
	}
	return d.recorder.Close()
}
