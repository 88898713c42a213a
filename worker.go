package weir

import (
	"context"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Execute executes a run of the runner that Options.Executes names until it rests; see
// runner.Local.Execute.
func (w *Weir) Execute(ctx context.Context, id string, o runner.ExecuteOptions) (runner.Rest, error) {
	return w.local.Execute(ctx, id, o)
}

// Outcome returns the outcome of a message in the inbox of a run; see runner.Local.Outcome.
func (w *Weir) Outcome(ctx context.Context, p store.Post) (pending bool, err error) {
	return w.local.Outcome(ctx, p)
}

// RequestCancel puts a cancellation into the inbox of a run, unless one waits there already.
// The process that executes the run applies it.
func (w *Weir) RequestCancel(ctx context.Context, run, by string) error {
	return w.local.RequestCancel(ctx, run, by)
}

// Unscheduled lists the runs that no process executes although there is something to do; see
// runner.Local.Unscheduled.
func (w *Weir) Unscheduled(ctx context.Context) ([]runner.Unscheduled, error) {
	return w.local.Unscheduled(ctx)
}
