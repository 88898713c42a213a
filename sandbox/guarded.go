package sandbox

import (
	"context"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
)

// guarded is an executor whose errors can be read, and whose Run always returns something, whatever the executor of
// a program does.
type guarded struct{ Executor }

// Probe implements Executor.
func (g guarded) Probe(ctx context.Context) error { return g.plain(g.Executor.Probe(ctx)) }

// Check implements Executor.
func (g guarded) Check(ctx context.Context, job *Job) ([]Problem, error) {
	found, err := g.Executor.Check(ctx, job)
	return found, g.plain(err)
}

// Run implements Executor.
func (g guarded) Run(ctx context.Context, job *Job) (*Result, error) {
	r, err := g.Executor.Run(ctx, job)
	if r == nil && err == nil {
		return nil, &Error{Code: engine.CodeSandboxFailed, Message: "the executor " + g.Name() + " returned neither a result nor an error"}
	}
	return r, g.plain(err)
}

// plain replaces an error that is a nil pointer, panics, or wraps without end.
func (g guarded) plain(err error) error {
	if !guard.Unreadable(err) {
		return err
	}
	return &Error{Code: engine.CodeSandboxFailed, Message: "the executor " + g.Name() + ": " + guard.Text(err)}
}
