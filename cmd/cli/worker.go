package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
)

func (p *cli) workerCommand() *cobra.Command {
	o := WorkerOptions{}
	c := &cobra.Command{
		Use:   "worker",
		Short: "Execute runs that Temporal schedules",
		Long: `Execute the runs that Temporal schedules, until SIGTERM or Ctrl-C. The configuration
needs "runner: temporal". Runs in progress are left where they are, and another worker
continues them. Without --task-queue the worker polls the queue of the configuration.

With --deployment the worker is a version of a deployment, named by --build-id, by default
the version of the program. It gets runs once that version is the current one:

  temporal worker deployment set-current-version --deployment-name NAME --build-id ID

The binary must have Temporal: weir-temporal, built from the module
github.com/weir-run/weir/temporal.`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return p.worker(c.Context(), o) },
	}
	c.Flags().StringVar(&o.TaskQueue, "task-queue", "", "poll this `QUEUE`")
	c.Flags().StringVar(&o.Deployment, "deployment", "", "make the worker a version of the deployment with this `NAME`")
	c.Flags().StringVar(&o.BuildID, "build-id", "", "with --deployment, the `ID` of the version (default: that of the program)")
	c.Flags().IntVar(&o.Runs, "runs", 0, "execute at most `N` runs at once (default 100)")
	return c
}

func (p *cli) worker(ctx context.Context, o WorkerOptions) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if cfg.Runner != config.Temporal {
		return usagef("weir worker: the configuration does not have `runner: temporal`; see docs/temporal.md")
	}
	if o.Runs < 0 {
		return usagef("--runs: expected a positive number")
	}
	if o.BuildID != "" && o.Deployment == "" {
		return usagef("--build-id needs --deployment")
	}
	if o.Deployment != "" && o.BuildID == "" {
		o.BuildID = buildID(app.ThisBuild())
	}
	if p.options.Worker == nil {
		return app.NoTemporal()
	}
	a, err := p.open(ctx, app.Options{Executes: cfg.Runner, AllTools: true})
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // the error of the worker says more
	o.Config, o.App, o.Logger = cfg, a.App, p.logger()
	o.Notify = func(s string) { p.notef("%s", s) }
	return p.options.Worker(ctx, o)
}

// maxCommit is how many digits of a commit a build id has.
const maxCommit = 12

// buildID names the build of a program.
func buildID(b app.Build) string {
	if b.Commit == "" {
		return b.Version
	}
	return b.Version + "-" + b.Commit[:min(len(b.Commit), maxCommit)]
}
