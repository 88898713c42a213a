// Command weir-temporal is weir with Temporal: with `runner: temporal` in the configuration its commands have a Temporal
// cluster schedule runs, and `weir-temporal worker` executes them.
package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/cmd/cli"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/temporal"
)

func main() { cli.Main(cli.Options{Runner: connect, Worker: work}) }

// options reads the configuration of the cluster.
func options(cfg *config.Config, notify func(string)) (temporal.Options, error) {
	c := &cfg.Temporal
	o := temporal.Options{
		Address: c.Address, Namespace: c.Namespace, TaskQueue: c.TaskQueue, TaskQueues: c.TaskQueues,
		Heartbeat: c.Heartbeat, SearchAttributes: c.SearchAttributes, Notify: notify, Logger: slog.New(slog.DiscardHandler),
	}
	var err error
	if o.TLS, err = c.TLS.Config(); err != nil {
		return o, err
	}
	if o.APIKey, err = c.APIKey.Value(); err != nil { // "" where none is configured
		return o, err
	}
	o.UserKey, err = c.UserKey.Value()
	return o, err
}

// connect implements cli.Options.Runner.
func connect(ctx context.Context, cfg *config.Config, notify func(string)) (runner.Scheduler, error) {
	o, err := options(cfg, notify)
	if err != nil {
		return nil, err
	}
	return temporal.Dial(ctx, o)
}

// work implements cli.Options.Worker.
func work(ctx context.Context, w cli.WorkerOptions) error {
	o, err := options(w.Config, w.Notify)
	if err != nil {
		return err
	}
	o.Logger = w.Logger
	c, err := temporal.Dial(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it never fails
	k := temporal.NewWorker(w.App.Weir, c, temporal.WorkerOptions{TaskQueue: w.TaskQueue, Runs: w.Runs, Drain: w.App.Drain, Deployment: w.Deployment, BuildID: w.BuildID})
	if err := k.Start(); err != nil {
		return err
	}
	w.Notify(fmt.Sprintf("polling the task queue %q of namespace %q at %s", k.TaskQueue(), c.Namespace(), c.Address()))
	<-ctx.Done()
	w.Notify("stopping; runs in progress are left where they are")
	k.Stop()
	return nil
}
