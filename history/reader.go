package history

import (
	"context"
	"fmt"
	"iter"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Programs finds the programs of runs.
type Programs interface {
	// Recorded returns the program for reading a run. It has the node types with which
	// the run was recorded, and cannot be executed.
	Recorded(ctx context.Context, run string) (*runner.Program, error)
	// Executable returns the program with the node types of this process. The error is a
	// *flow.Invalid if a type is missing.
	Executable(ctx context.Context, run string) (*runner.Program, error)
}

// Reader reads the history of runs. It executes no node and needs no lease.
type Reader struct {
	store    store.Journal
	local    *runner.Local
	programs Programs
}

// NewReader returns a Reader of the runs in a store.
func NewReader(s store.Journal, l *runner.Local, p Programs) *Reader {
	return &Reader{store: s, local: l, programs: p}
}

// Inspect returns a run as it was after its event number at; 0 means now. It needs no node
// types.
func (r *Reader) Inspect(ctx context.Context, run string, at int64) (*runner.RunView, error) {
	p, err := r.programs.Recorded(ctx, run)
	if err != nil {
		return nil, err
	}
	return r.local.Inspect(ctx, p, run, at)
}

// InspectPrompts returns the model calls of a node's newest attempt: what each was sent,
// what was omitted, and why. Path is as "refine#2/draft". If this process lacks the node's
// type, or its types do not fit the record, the calls are as the journal has them, and
// their Request is nil.
func (r *Reader) InspectPrompts(ctx context.Context, run, path string) ([]runner.ModelCall, error) {
	recorded, err := r.programs.Recorded(ctx, run)
	if err != nil {
		return nil, err
	}
	p, err := r.programs.Executable(ctx, run)
	if err != nil {
		return r.local.ModelCalls(ctx, recorded, run, path)
	}
	sent, err := r.local.InspectPrompt(ctx, p, run, path)
	if err != nil && p.Specs != recorded.Specs {
		return r.local.ModelCalls(ctx, recorded, run, path)
	}
	return sent, err
}

// Diff compares two runs as they are now. It reads the whole journal of both.
func (r *Reader) Diff(ctx context.Context, a, b string) (*Diff, error) {
	va, err := r.Inspect(ctx, a, 0)
	if err != nil {
		return nil, err
	}
	vb, err := r.Inspect(ctx, b, 0)
	if err != nil {
		return nil, err
	}
	return Compare(va, vb)
}

// Chain yields the chain of work of a run: each attempt of a node when it has ended, and
// at the end those that have not. States are not copied.
func (r *Reader) Chain(ctx context.Context, run string) iter.Seq2[Work, error] {
	return func(yield func(Work, error) bool) {
		p, err := r.programs.Recorded(ctx, run)
		if err != nil {
			yield(Work{}, err)
			return
		}
		c := chainBuilder{run: engine.NewRun(run, p.Plan), running: make(map[string]*Work), yield: yield}
		for commit, err := range r.store.Commits(ctx, run, 0) {
			if err == nil {
				err = c.applyCommit(&commit)
			}
			if err != nil {
				yield(Work{}, fmt.Errorf("chain of work of run %s: %w", run, err))
				return
			}
			if c.stopped {
				return
			}
		}
		c.yieldRunning()
	}
}
