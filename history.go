package weir

import (
	"context"
	"iter"

	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/node/codegen/learned"
	"github.com/weir-run/weir/runner"
)

// Inspect returns a run as it was after event number at; 0 means the latest event. It executes
// nothing and needs no lease and no node types.
func (w *Weir) Inspect(ctx context.Context, id string, at int64) (*runner.RunView, error) {
	return w.history.Inspect(ctx, id, at)
}

// InspectPrompts returns the model calls of a node's newest attempt: the messages of each, what
// was omitted, and why; see history.Reader.InspectPrompts.
func (w *Weir) InspectPrompts(ctx context.Context, id, path string) ([]runner.ModelCall, error) {
	return w.history.InspectPrompts(ctx, id, path)
}

// Chain yields the chain of work of a run: each attempt of a node when it has ended, and
// finally the attempts that have not ended. The values of the state are not copied.
func (w *Weir) Chain(ctx context.Context, id string) iter.Seq2[history.Work, error] {
	return w.history.Chain(ctx, id)
}

// Diff compares two runs in their present state. It reads both journals in full.
func (w *Weir) Diff(ctx context.Context, a, b string) (*history.Diff, error) {
	return w.history.Diff(ctx, a, b)
}

// LearnedCode gives access to the programs that models wrote for code nodes and that the store
// keeps for later runs: they can be listed, disabled, enabled and deleted.
func (w *Weir) LearnedCode() *learned.Library { return learned.New(w.store) }

// recordedPrograms implements history.Programs.
type recordedPrograms struct{ w *Weir }

// Recorded implements history.Programs.
func (r recordedPrograms) Recorded(ctx context.Context, run string) (*runner.Program, error) {
	return r.w.programForReading(ctx, run)
}

// Executable implements history.Programs.
func (r recordedPrograms) Executable(ctx context.Context, run string) (*runner.Program, error) {
	return r.w.programOf(ctx, run)
}
