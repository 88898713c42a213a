// Package app wires a process: it reads the configuration and opens a weir.Weir with its
// store, model providers, code executors and tools. The command and the server share it.
//
// It must not know how results are shown: it imports no flags, no terminal and no HTTP
// handlers, and does not prompt.
package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node/builtin/safehttp"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/store"
)

// Options say what a process needs. Config and Database are required.
type Options struct {
	Config *config.Config
	// Database is the path of an SQLite file or the URL of a PostgreSQL database; see
	// OpenDatabase. Open creates it unless ReadOnly is set.
	Database string
	// ReadOnly accepts a database that cannot be written; writes to it fail.
	ReadOnly bool
	// WithRunner connects to the runner also with ReadOnly: the process deletes runs, or asks about them.
	WithRunner bool
	// Sync overrides that of Config unless it is "": see DatabaseOptions.
	Sync string
	// Flow is the flow that is going to run, and Run a prefix of the id of a run that is
	// going to continue. Open starts the MCP servers of their tools, and fails where a
	// tool that they need cannot be used. Set neither where nothing is executed.
	Flow *weir.Flow
	Run  string
	// Flows are flows that a server offers: Open prepares their tools as those of Flow.
	Flows []*weir.Flow
	// Recover has the process continue runs that other processes left; see
	// weir.Options.Recover.
	Recover bool
	// Runner connects to the runner that the configuration names; nil is a program without
	// one, which refuses to start or change runs if the configuration names one.
	Runner func(ctx context.Context) (runner.Scheduler, error)
	// Executes is the name of the runner for which the process is a worker; see
	// weir.Options.Executes. AllTools starts all configured MCP servers.
	Executes string
	AllTools bool
	// Record and Replay are files: model calls are recorded to the one, or answered from
	// the other. At most one is set.
	Record, Replay string
	// Sandboxes starts this program again for code in sandboxes; see ChildRoles. The zero
	// value cannot.
	Sandboxes sandbox.SelfCommand
	// Logger is where warnings go; nil is slog.Default.
	Logger *slog.Logger
}

// App is an open Weir with the parts that it was opened from. Call Shutdown at the end,
// instead of Close.
type App struct {
	*weir.Weir
	Store *store.Full
	// Providers are the names of the model providers, in order.
	Providers []string
	// Note says in what way a database that cannot be written was opened; "" for others.
	Note string
	// Drain is how long Shutdown should wait for effects in flight where a supervisor
	// stops the process.
	Drain time.Duration
	// HTTP is the client with which flows reach the network; it refuses private addresses
	// that the configuration does not allow.
	HTTP *http.Client
	// Backup writes a copy of the database to a new file while it is in use; nil for a database server.
	Backup func(ctx context.Context, path string) error
	// Deployed are the flows that clients have put into the store.
	Deployed *Deployed
	// Quotas bound what users and tokens may spend on a day.
	Quotas *Quotas

	reloading reloading

	tools    *Toolbox
	recorder *recorded.Recorder // nil without Options.Record
	closed   bool
}

const (
	// closeTime bounds how long nodes have to stop; their effects get 10 seconds.
	closeTime = 15 * time.Second
	// defaultDrain is Drain without a configured value.
	defaultDrain = 5 * time.Second
)

// Open opens the store and a Weir over it. It checks the options and the tools that
// Options.Flow needs first, so that a mistake leaves no new database behind. A
// UsageError names a mistake in options or configuration.
func Open(ctx context.Context, o Options) (*App, error) {
	if o.Record != "" && o.Replay != "" {
		return nil, usagef("--record and --replay exclude each other: replayed calls are recorded already")
	}
	cfg := o.Config
	w := weir.Options{
		Providers: providers(cfg), Timeouts: timeouts(cfg), Breakers: breakers(cfg), Logger: o.Logger, Parallel: cfg.Parallel,
		Models: models(cfg), Limits: llm.NewLimits(cfg.Limits), Secrets: cfg.Secret, Executors: Executors(cfg, o.Sandboxes), Recover: o.Recover,
	}
	w.Models.Logger = o.Logger
	client, err := HTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	w.HTTP = client
	if !o.ReadOnly {
		if w.Traces, err = traces(cfg.OTel); err != nil {
			return nil, err
		}
	}
	a := &App{HTTP: client, Providers: slices.Sorted(maps.Keys(w.Providers)), Drain: cmp.Or(cfg.Drain, defaultDrain)}
	a.reloading.first, a.reloading.current = cfg, cfg
	a.reloading.replaceable(w.Providers)
	if a.tools, err = NewToolbox(cfg); err != nil {
		return nil, err
	}
	if err := a.recordOrReplay(&o, &w); err != nil {
		return nil, err
	}
	if err := a.openWeir(ctx, &o, &w); err != nil {
		return nil, errors.Join(err, a.tools.Close(), a.stopRecording())
	}
	return a, nil
}

// HTTPClient returns the client with which flows and tools reach the network. It
// refuses private addresses that the configuration does not allow.
func HTTPClient(cfg *config.Config) (*http.Client, error) {
	client, err := safehttp.Client(safehttp.Options{AllowPrivate: cfg.HTTP.AllowPrivate})
	if err != nil {
		return nil, usagef("configuration (%s): http: %w", strings.Join(cfg.Files, ", "), err)
	}
	return client, nil
}

// GuardedClient is HTTPClient for a process without a configuration.
func GuardedClient() (*http.Client, error) { return safehttp.Client(safehttp.Options{}) }

// recordOrReplay connects the providers to a recording.
func (a *App) recordOrReplay(o *Options, w *weir.Options) (err error) {
	if o.Replay != "" {
		if w.Replay, err = recorded.Open(o.Replay); err != nil {
			return &UsageError{err}
		}
	}
	if o.Record != "" {
		if a.recorder, err = recorded.NewFileRecorder(o.Record); err != nil {
			return &UsageError{err}
		}
		for name, provider := range w.Providers {
			w.Providers[name] = a.recorder.Wrap(provider)
		}
	}
	return nil
}

// openWeir prepares the tools, opens the store, and opens the Weir over both.
func (a *App) openWeir(ctx context.Context, o *Options, w *weir.Options) (err error) {
	if w.Flows, err = a.tools.flowTools(); err != nil && (o.Flow != nil || o.Run != "" || o.Flows != nil) {
		return err // a process that executes nothing does not need the tools
	}
	if err := o.openRunner(ctx, w); err != nil {
		return err
	}
	if o.Run == "" {
		if w.Tools, err = a.toolsOf(ctx, o); err != nil {
			return errors.Join(err, closeRunner(w))
		}
	}
	if err := a.openStore(ctx, o); err != nil {
		return errors.Join(err, closeRunner(w))
	}
	if o.Run != "" {
		w.Tools, err = a.tools.toolsFor(ctx, recordedFlow(ctx, a.Store, o.Run))
	}
	if err == nil {
		err = a.addMemoryTools(w)
	}
	if err == nil {
		a.Deployed = &Deployed{store: a.Store, providers: a.Providers, opened: make(chan struct{})}
		w.Grants, w.Current = a.Deployed.grants, a.Deployed.current
		a.Quotas = NewQuotas(a.Store, cmp.Or(o.Logger, slog.Default()))
		w.Quotas = a.Quotas
		w.Store, w.Trajectories = a.Store, trajectories(o.Config.Trajectory, a.Store)
		a.Weir, err = weir.Open(*w)
		a.Deployed.weir = a.Weir
		close(a.Deployed.opened)
	}
	if err != nil {
		return errors.Join(err, a.Store.Close(), closeRunner(w))
	}
	return nil
}

func (a *App) openStore(ctx context.Context, o *Options) error {
	d, err := OpenDatabase(ctx, o.Database, DatabaseOptions{ReadOnly: o.ReadOnly, Sync: cmp.Or(o.Sync, o.Config.Sync), Storage: o.Config.Storage})
	if err != nil {
		return err
	}
	a.Backup = d.Backup
	if a.Store = d.Full; o.ReadOnly {
		a.Note = d.Note
	}
	return nil
}

// Shutdown starts no more effects, waits up to drain for those in flight, stops all runs
// where they can be resumed, and closes the store and the tool servers. A second call does
// nothing.
func (a *App) Shutdown(drain time.Duration) error {
	if a.closed {
		return nil
	}
	a.closed = true
	a.SetDrain(drain)
	ctx, cancel := context.WithTimeout(context.Background(), closeTime+drain)
	defer cancel()
	return errors.Join(a.Close(ctx), a.tools.Close(), a.stopRecording())
}

func (a *App) stopRecording() error {
	if a.recorder == nil {
		return nil
	}
	return a.recorder.Close()
}
