package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

func (p *cli) cancelCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run",
		Long: `Cancel a run, and return when it has ended. No further effect starts; effects in flight
have 10 seconds to end. If another process executes the run, it is notified, and the
command waits for it. That process exits with code 4. A cancelled run cannot be resumed.`,
		Args:              exactArgs("RUN"),
		ValidArgsFunction: p.completeRuns,
		RunE: func(c *cobra.Command, args []string) error {
			return p.cancel(c.Context(), args[0], reason)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "the reason, for the record")
	return c
}

func (p *cli) cancel(ctx context.Context, prefix, reason string) error {
	a, id, err := p.openRun(ctx, prefix, app.Options{})
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // the run has ended, or the error says more
	// The process that owns the run may end before it reads the message, so the status is read again.
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for cancelled := false; ; cancelled = true {
		status, done, err := p.cancelRun(ctx, a, id, reason, cancelled)
		if err != nil {
			return err
		}
		if done {
			return p.cancelled(id, status)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("run %s was cancelled and has not stopped yet: %w", id, context.Cause(ctx))
		}
	}
}

// cancelRun cancels a run that no process executes, and otherwise notifies the process that executes it,
// unless that has been printed. done says that the run has ended, and how.
func (p *cli) cancelRun(ctx context.Context, a *application, id, reason string, cancelled bool) (s engine.Status, done bool, err error) {
	r, err := a.Store.Run(ctx, id)
	if err != nil {
		return 0, false, err
	}
	if cancelled && r.Head.Status.Ended() {
		return r.Head.Status, true, nil
	}
	if cancelled && r.Owner != "" && !r.Expired {
		return 0, false, nil
	}
	run, err := a.Cancel(ctx, id, p.userName(), reason)
	if err != nil {
		return 0, false, err
	}
	if run == nil {
		p.notef("another process, %s, executes the run; it has been notified", runner.OwnerName(r.Owner))
		return 0, false, nil
	}
	result, err := run.Wait(ctx)
	return result.Status, err == nil, err
}

func (p *cli) cancelled(id string, s engine.Status) error {
	if s != engine.Cancelled {
		return fmt.Errorf("run %s has %s before it could be cancelled", id, s)
	}
	fmt.Fprintf(p.out, "run %s is cancelled\n", id)
	return nil
}
