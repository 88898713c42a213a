package app

import (
	"context"
	"slices"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/tool"
)

// NoTemporal is the error of a program without Temporal whose configuration asks for it.
func NoTemporal() error {
	return usagef("the configuration has `runner: %s`, and this program was built without Temporal; use weir-temporal, built with `go build ./cmd/weir-temporal` in the folder temporal of the sources",
		config.Temporal)
}

// openRunner connects to the runner that the configuration names, for a process that may start or change runs.
func (o *Options) openRunner(ctx context.Context, w *weir.Options) (err error) {
	switch {
	case o.Executes != "":
		w.Executes = o.Executes
		return nil
	case o.Config.Runner != config.Temporal || o.ReadOnly && !o.WithRunner:
		return nil
	case o.Runner == nil:
		return NoTemporal()
	case o.Record != "" || o.Replay != "":
		return usagef("--record and --replay: the workers of `runner: %s` call the models; use a configuration without it", config.Temporal)
	}
	w.Runner, err = o.Runner(ctx)
	return err
}

// closeRunner closes the runner of options that no Weir has taken.
func closeRunner(w *weir.Options) error {
	if w.Runner == nil {
		return nil
	}
	return w.Runner.Close()
}

// toolsOf returns the tools of a process. One that executes no run starts no servers for them.
func (a *App) toolsOf(ctx context.Context, o *Options) ([]*tool.Tool, error) {
	if o.AllTools {
		return a.tools.allTools(ctx)
	}
	return a.tools.toolsFor(ctx, append(slices.Clip(o.Flows), o.Flow)...)
}
