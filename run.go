package weir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// Run is a run that this process executes, or has executed. Its ID identifies it in all
// processes.
type Run struct {
	ID string

	w    *Weir
	mu   sync.Mutex
	exec *runner.Execution
}

// Result is the state of a run: its Status, the Outputs by name, the open Interrupts, the
// Usage and the Error.
type Result = runner.Result

// Item is one item of the stream of a run: an Event of its journal, or a Chunk of live
// output, with the Run, Path and Effect that it belongs to.
type Item = runner.Item

func (r *Run) execution() *runner.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exec
}

// Wait returns when the run has ended or waits for people or outside events.
// Ending ctx ends the wait and not the run.
func (r *Run) Wait(ctx context.Context) (Result, error) {
	if r.w.runner != nil {
		return r.w.waitForWorker(ctx, r.ID)
	}
	return r.execution().Wait(ctx)
}

// Events yields the events of the run from its first on, and those of its child runs,
// with live output between them, until the run ends or pauses. It never slows the run
// down: a reader that lags loses live output, which an item with Gap says, and no event.
// Item says how items add up.
func (r *Run) Events(ctx context.Context) iter.Seq2[Item, error] {
	return r.EventsAfter(ctx, 0)
}

// EventsAfter is Events from the run's event after number n on; of child runs that the
// run was waiting for then it yields what comes from now on.
func (r *Run) EventsAfter(ctx context.Context, n int64) iter.Seq2[Item, error] {
	if r.w.runner != nil {
		return r.w.eventsOfWorker(ctx, r.ID, "", n)
	}
	return r.execution().Items(ctx, n)
}

// EventsFrom is Events from behind the item that has the cursor (Item.Cursor), also of an
// earlier execution or of another process. The error is runner.ErrCursor for a cursor of
// another run.
func (r *Run) EventsFrom(ctx context.Context, cursor string) iter.Seq2[Item, error] {
	if r.w.runner != nil {
		return r.w.eventsOfWorker(ctx, r.ID, cursor, 0)
	}
	return r.execution().Stream(ctx, cursor)
}

// Follow is EventsFrom for any run, whichever process executes it, from its beginning
// where the cursor is "". It ends when the run has ended and not when it pauses. Live
// output comes while this process executes the run; while another does, or none, the
// journals are looked at four times a second.
func (w *Weir) Follow(ctx context.Context, id, cursor string) iter.Seq2[Item, error] {
	return w.local.Follow(ctx, id, cursor)
}

// Cursor is the position behind all that a run and its child runs have done, from which
// Follow and Run.EventsFrom yield what is new.
func (w *Weir) Cursor(ctx context.Context, id string) (string, error) {
	return w.local.Cursor(ctx, id)
}

// Answer resolves an interrupt and returns when the answer is durable. A paused run
// continues.
func (r *Run) Answer(ctx context.Context, interrupt string, v any) error {
	return r.setExecution(r.w.Answer(ctx, r.ID, interrupt, v, ""))
}

// Signal delivers an outside event to the node that has waited longest for an event with
// this name.
func (r *Run) Signal(ctx context.Context, event string, v any) error {
	return r.setExecution(r.w.Signal(ctx, r.ID, event, v, ""))
}

// Cancel cancels the run. When it returns, the cancellation is durable and no further effect
// starts. Wait returns when the run has ended.
func (r *Run) Cancel(ctx context.Context, reason string) error {
	if r.w.runner != nil {
		return r.setExecution(r.w.Cancel(ctx, r.ID, "", reason))
	}
	return r.do(ctx, runner.Cancel("", reason))
}

// OverrideNode moves a stuck node: op is "retry", "skip" or "complete", the last with
// the node's outputs. A failed run continues. The path leads into child runs as
// "PATH>NODE"; a run that a child failed continues once the child has completed,
// which Force waits for.
func (r *Run) OverrideNode(ctx context.Context, op, path string, outputs map[string]any) error {
	return r.setExecution(r.w.OverrideNode(ctx, r.ID, op, path, outputs, ""))
}

// IncreaseBudget adds to the budget that a node of a failed run ran out of, maxTokens,
// maxCalls or maxCost (US dollars), and tries the node again: the run continues.
func (r *Run) IncreaseBudget(ctx context.Context, path string, more map[string]any) error {
	return r.setExecution(r.w.IncreaseBudget(ctx, r.ID, path, more, ""))
}

func valuesOf(m map[string]any) (engine.Values, error) {
	var vs engine.Values
	for _, k := range sortedKeys(m) {
		v, err := engine.Normalize(m[k])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		vs = append(vs, engine.Named{Name: k, Value: v})
	}
	return vs, nil
}

func (r *Run) do(ctx context.Context, c runner.Command) error {
	return r.setExecution(r.w.do(ctx, r.ID, c))
}

// setExecution takes over the execution that a command on the run has returned.
func (r *Run) setExecution(done *Run, err error) error {
	if done != nil && done.exec != nil {
		r.mu.Lock()
		r.exec = done.exec
		r.mu.Unlock()
	}
	return err
}

// do carries out a command on any run, resuming it here.
func (w *Weir) do(ctx context.Context, id string, c runner.Command) (*Run, error) {
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.doWithProgram(ctx, p, id, c)
}

// doAtNode carries out a command on a node of any run or of its child runs.
func (w *Weir) doAtNode(ctx context.Context, id, path string, at func(path string) runner.Command) (*Run, error) {
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	if strings.Contains(path, ">") {
		if err := w.notWithRunner("change a node of a child run"); err != nil {
			return nil, err
		}
	}
	r, err := w.retryWhileOwned(ctx, p, id, func() (*runner.Execution, error) { return w.local.DoAt(ctx, p, id, path, at) })
	if err != nil || w.runner == nil {
		return r, err
	}
	return w.handOver(ctx, id, r.exec, nil)
}

// ChildAt is the id of the newest child run that the node at a path of a run has
// begun, "" where there is none. The path is of that run: it leads into no child.
func (w *Weir) ChildAt(ctx context.Context, id, path string) (string, error) {
	i, err := w.local.ChildAt(ctx, id, path)
	if err != nil || i.Child == nil {
		return "", err
	}
	return i.Child.Run, nil
}

// AcceptChanges has a run, with the child runs that it waits for, continue under the
// versions of node types and tools that this process has, and returns what is different
// from what it was started with; nothing where nothing is. It is recorded with by, and
// nothing is executed: Resume, Answer and the rest work afterwards. A *runner.Changed
// error says that the ports of a node type differ so that the record may mean something
// else; Fork continues such a run. A run that has completed or was cancelled is
// runner.ErrStatus.
func (w *Weir) AcceptChanges(ctx context.Context, id, by string) ([]string, error) {
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.local.Accept(ctx, p, id, by)
}

// doStop is do for what stops a run, also where its tools have changed and where its
// node types are not those of this process.
func (w *Weir) doStop(ctx context.Context, id string, c runner.Command) (*Run, error) {
	p, err := w.programOf(ctx, id)
	if err == nil {
		r, err := w.doWithProgram(ctx, p.IgnoringToolChanges(), id, c)
		if !errors.Is(err, runner.ErrDependenciesChanged) {
			return r, err
		}
	}
	recorded, recordErr := w.recordedProgramOf(ctx, id)
	if recordErr != nil {
		return nil, cmp.Or(err, recordErr)
	}
	return w.doWithProgram(ctx, recorded, id, c)
}

func (w *Weir) doWithProgram(ctx context.Context, p *runner.Program, id string, c runner.Command) (*Run, error) {
	return w.retryWhileOwned(ctx, p, id, func() (*runner.Execution, error) { return w.local.Do(ctx, p, id, c) })
}

// retryWhileOwned carries out a command on a run, and tries again for a moment while
// another process is about to release the run. What a child run has recorded is not
// carried out again.
func (w *Weir) retryWhileOwned(ctx context.Context, p *runner.Program, id string, do func() (*runner.Execution, error)) (*Run, error) {
	var accepted *runner.AcceptedByChild
	for begin := time.Now(); ; {
		x, err := do()
		if x != nil {
			return &Run{ID: id, w: w, exec: x}, err
		}
		if accepted == nil && errors.As(err, &accepted) {
			do = func() (x *runner.Execution, err error) {
				if x, accepted.Err = w.local.Resume(ctx, p, id); x == nil {
					err = accepted
				}
				return x, err
			}
		}
		if !errors.Is(err, store.ErrOwned) || time.Since(begin) > ownedRetryTimeout || accepted == nil && !w.isAboutToBeReleased(ctx, id) {
			return nil, err
		}
		select {
		case <-time.After(ownedRetryTimeout / 100):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ownedRetryTimeout is how long a command waits for a run that rests in another process.
const ownedRetryTimeout = 2 * time.Second

// isAboutToBeReleased reports whether a run that somebody has waits for people alone: it is
// about to be given back.
func (w *Weir) isAboutToBeReleased(ctx context.Context, id string) bool {
	r, err := w.store.Run(ctx, id)
	return err == nil && r.Head.Status == engine.Paused && r.Head.Due == 0
}

// Resume drives a run again after a crash, shutdown or pause.
func (w *Weir) Resume(ctx context.Context, id string) (*Run, error) {
	if w.runner != nil {
		return w.wake(ctx, id)
	}
	if x, err := w.startPendingRound(ctx, id, w.local.Start); x != nil || err != nil {
		return x, err
	}
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	x, err := w.local.Resume(ctx, p, id)
	if err != nil {
		return nil, err
	}
	return &Run{ID: id, w: w, exec: x}, nil
}

// startPendingRound starts a round that has no commit yet; see
// session.Manager.StartPendingRound. It returns nil for any other run.
func (w *Weir) startPendingRound(ctx context.Context, id string, start session.StartFunc) (*Run, error) {
	x, err := w.sessions.StartPendingRound(ctx, id, start)
	if x == nil || err != nil {
		return nil, err
	}
	return &Run{ID: id, w: w, exec: x}, nil
}

// Answer resolves an interrupt of any run and drives the run on here. The run
// is nil where it could not be had.
func (w *Weir) Answer(ctx context.Context, id, interrupt string, v any, by string) (*Run, error) {
	if w.runner != nil {
		return w.deliver(ctx, store.Post{Run: id, Kind: "answer", Name: interrupt, Value: v, By: by})
	}
	return w.do(ctx, id, runner.Answer(interrupt, v, by))
}

// Signal brings an outside event to any run and drives the run on here.
func (w *Weir) Signal(ctx context.Context, id, event string, v any, by string) (*Run, error) {
	if w.runner != nil {
		return w.deliver(ctx, store.Post{Run: id, Kind: "event", Name: event, Value: v, By: by})
	}
	return w.do(ctx, id, runner.Signal(event, v, by))
}

// Cancel stops any run. One that another process drives is sent a message, and
// the Run is nil.
func (w *Weir) Cancel(ctx context.Context, id, by, reason string) (*Run, error) {
	if w.runner != nil {
		return w.deliver(ctx, store.Post{Run: id, Kind: "cancel", By: by})
	}
	cancelled := func(ctx context.Context, p *runner.Program, b runner.StartOptions) (*runner.Execution, error) {
		return w.local.StartCancelled(ctx, p.IgnoringToolChanges(), b, by, reason)
	}
	if x, err := w.startPendingRound(ctx, id, cancelled); x != nil || err != nil && !errors.Is(err, store.ErrOwned) {
		return x, err
	}
	for posted := false; ; posted = true {
		r, err := w.doStop(ctx, id, runner.Cancel(by, reason))
		if !errors.Is(err, store.ErrOwned) {
			return r, err
		}
		if posted {
			return nil, nil
		}
		if err := w.store.Post(ctx, store.Post{Run: id, Kind: "cancel", By: by, At: time.Now()}); err != nil {
			return nil, err
		}
		// The owner may have given the run back before it could see the message.
		if row, err := w.store.Run(ctx, id); err != nil || row.Owner != "" {
			return nil, err
		}
	}
}

// OverrideNode moves a stuck node of any run and drives the run on here; see
// Run.OverrideNode.
func (w *Weir) OverrideNode(ctx context.Context, id, op, path string, outputs map[string]any, by string) (*Run, error) {
	vs, err := valuesOf(outputs)
	if err != nil {
		return nil, err
	}
	return w.doAtNode(ctx, id, path, func(path string) runner.Command { return runner.OverrideNode(op, path, vs, by) })
}

// IncreaseBudget adds to the budget that a node of any failed run ran out of and drives
// the run on here; see Run.IncreaseBudget.
func (w *Weir) IncreaseBudget(ctx context.Context, id, path string, more map[string]any, by string) (*Run, error) {
	return w.doAtNode(ctx, id, path, func(path string) runner.Command { return runner.IncreaseBudget(path, more, by) })
}

// Runs lists runs, newest first.
func (w *Weir) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	return w.store.Runs(ctx, f)
}

// Find returns the one run whose id begins with prefix, its child runs, whose ids
// begin with the same, aside.
func (w *Weir) Find(ctx context.Context, prefix string) (string, error) {
	ids, err := w.store.FindRunIDs(ctx, prefix)
	if !slices.Contains(ids, prefix) {
		ids = rootRuns(ids)
	}
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", fmt.Errorf("run %q: %w", prefix, store.ErrNotFound)
	case len(ids) > 1 && !slices.Contains(ids, prefix):
		return "", fmt.Errorf("%q is the beginning of %d run ids; give more of it", prefix, len(ids))
	case len(ids) > 1:
		return prefix, nil
	}
	return ids[0], nil
}

// maxFound is how many ids of runs a store finds at most.
const maxFound = 100

// rootRuns leaves out the runs of a list, sorted, that are children of others in it:
// their ids begin with the id of the root of their tree. A list that is full is
// as it is, since it may lack others.
func rootRuns(ids []string) []string {
	if len(ids) >= maxFound {
		return ids
	}
	var out []string
	for _, id := range ids {
		if n := len(out); n == 0 || !strings.HasPrefix(id, out[n-1]+".") {
			out = append(out, id)
		}
	}
	return out
}

// Output returns an output of a completed run as a T; an error says what it is
// instead.
func Output[T any](r Result, name string) (T, error) {
	var out T
	v, ok := r.Outputs.Get(name)
	if !ok {
		return out, fmt.Errorf("run %s (%s) has no output %q", r.Run, r.Status, name)
	}
	if t, ok := v.(T); ok {
		return t, nil
	}
	b, err := engine.AppendValue(nil, v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return out, fmt.Errorf("output %s of run %s: %w", name, r.Run, err)
	}
	return out, nil
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
