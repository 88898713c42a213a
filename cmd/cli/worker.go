package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
)

func (p *cli) workerCommand() *cobra.Command {
	var queue string
	var runs int
	c := &cobra.Command{
		Use:   "worker",
		Short: "Execute runs that Temporal schedules",
		Long: `Execute the runs that Temporal schedules, until SIGTERM or Ctrl-C. The configuration
needs "runner: temporal". Runs in progress are left where they are, and another worker
continues them. Without --task-queue the worker polls the queue of the configuration.

The binary must have Temporal: weir-temporal, built from the module
github.com/weir-run/weir/temporal.`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return p.worker(c.Context(), queue, runs) },
	}
	c.Flags().StringVar(&queue, "task-queue", "", "poll this `QUEUE`")
	c.Flags().IntVar(&runs, "runs", 0, "execute at most `N` runs at once (default 100)")
	return c
}

func (p *cli) worker(ctx context.Context, queue string, runs int) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if cfg.Runner != config.Temporal {
		return usagef("weir worker: the configuration does not have `runner: temporal`; see docs/temporal.md")
	}
	if runs < 0 {
		return usagef("--runs: expected a positive number")
	}
	if p.options.Worker == nil {
		return app.NoTemporal()
	}
	a, err := p.open(ctx, app.Options{Executes: cfg.Runner, AllTools: true})
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // the error of the worker says more
	return p.options.Worker(ctx, WorkerOptions{
		Config: cfg, App: a.App, TaskQueue: queue, Runs: runs, Notify: func(s string) { p.notef("%s", s) }, Logger: p.logger(),
	})
}
