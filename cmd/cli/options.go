package cli

import (
	"context"
	"log/slog"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/runner"
)

// Options are what a binary adds to the commands; the zero value adds nothing.
type Options struct {
	// Runner connects to the runner that the configuration names, if it is not the local one; notify prints a note. nil
	// is a binary without other runners.
	Runner func(ctx context.Context, cfg *config.Config, notify func(string)) (runner.Scheduler, error)
	// Worker executes runs for that runner until ctx ends. It is set if Runner is.
	Worker func(ctx context.Context, o WorkerOptions) error
}

// WorkerOptions are what a worker works with.
type WorkerOptions struct {
	Config *config.Config
	App    *app.App
	// TaskQueue replaces that of the configuration; "" does not.
	TaskQueue string
	// Runs is the largest number of runs that are executed at once; 0 is the default of the runner.
	Runs int
	// Deployment and BuildID name the version of the worker; both are "" for a worker without a version.
	Deployment, BuildID string

	Notify func(note string)
	Logger *slog.Logger
}
