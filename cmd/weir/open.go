package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node/builtin/safehttp"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// desk is an open Weir with what the commands need beside it. Close it.
type desk struct {
	*weir.Weir
	store     weir.Store
	providers []string           // their names, in order
	recorder  *recorded.Recorder // nil where nothing is recorded
	closed    bool
}

// open opens the database and wires the providers of models. With record or
// replay, calls are written to that file or answered from it.
func (p *program) open(ctx context.Context, record, replay string) (*desk, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	if record != "" && replay != "" {
		return nil, usagef("--record and --replay exclude each other: what is replayed is recorded already")
	}
	o := weir.Options{Providers: p.providers(cfg), Logger: p.logger(), Parallel: cfg.Parallel}
	if o.HTTP, err = safehttp.Client(safehttp.Options{AllowPrivate: cfg.HTTP.AllowPrivate}); err != nil {
		return nil, usagef("configuration (%s): http: %w", strings.Join(cfg.files, ", "), err)
	}
	d := &desk{providers: slices.Sorted(maps.Keys(o.Providers))}
	if replay != "" {
		if o.Replay, err = recorded.Open(replay); err != nil {
			return nil, &usageError{err}
		}
	}
	if record != "" {
		if d.recorder, err = recorded.Record(record); err != nil {
			return nil, &usageError{err}
		}
		for name, provider := range o.Providers {
			o.Providers[name] = d.recorder.Wrap(provider)
		}
	}
	if d.store, err = sqlite.Open(ctx, p.database(), sqlite.Options{}); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", p.database(), err), d.stopRecording())
	}
	o.Store = d.store
	if d.Weir, err = weir.Open(o); err != nil {
		return nil, errors.Join(err, d.store.Close(), d.stopRecording())
	}
	return d, nil
}

// look opens the database for a command that only makes sense where there is
// one, so that a mistyped path does not make a new one.
func (p *program) look(ctx context.Context) (*desk, error) {
	if err := p.mustExist(); err != nil {
		return nil, err
	}
	return p.open(ctx, "", "")
}

// find returns the id of the one run whose id begins with prefix.
func (d *desk) find(ctx context.Context, prefix string) (string, error) {
	id, err := d.Find(ctx, prefix)
	if err != nil && errors.Unwrap(err) == nil { // more than one: the store had nothing against it
		return "", &usageError{err}
	}
	return id, err
}

func (p *program) mustExist() error {
	if _, err := os.Stat(p.database()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database at %s: %w", filepath.Clean(p.database()), store.ErrNotFound)
	}
	return nil
}

// closeTime bounds how long nodes have to stop; their effects get 10 seconds.
const closeTime = 15 * time.Second

// close stops all runs where they can be resumed; calling it again does
// nothing.
func (d *desk) close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(d.Close(ctx), d.stopRecording())
}

func (d *desk) stopRecording() error {
	if d.recorder == nil {
		return nil
	}
	return d.recorder.Close()
}
