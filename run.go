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

// Events yields all events of the run and of its child runs, with live output between them,
// until the run ends or pauses. A slow reader never delays the run: it loses live output, which
// an item with Gap reports, and no event. Item documents how the items combine.
func (r *Run) Events(ctx context.Context) iter.Seq2[Item, error] {
	return r.EventsAfter(ctx, 0)
}

// EventsAfter yields what Events yields after the run's event number n. Events of child runs
// that the run waited for at that event are yielded only if they are new.
func (r *Run) EventsAfter(ctx context.Context, n int64) iter.Seq2[Item, error] {
	if r.w.runner != nil {
		return r.w.itemsOfWorker(ctx, r.ID, "", n)
	}
	return r.execution().Items(ctx, n)
}

// EventsFrom yields what Events yields after the item with the cursor (Item.Cursor). The cursor
// may come from an earlier execution or from another process. The error is runner.ErrCursor for
// a cursor of another run.
func (r *Run) EventsFrom(ctx context.Context, cursor string) iter.Seq2[Item, error] {
	if r.w.runner != nil {
		return r.w.itemsOfWorker(ctx, r.ID, cursor, 0)
	}
	return r.execution().Stream(ctx, cursor)
}

// Follow is EventsFrom for any run, in whichever process it executes. An empty cursor starts at
// the first event. Follow ends when the run has ended, not when it pauses. If another process
// executes the run, it polls the journals four times a second, and yields live output in steps
// of 250 ms, if the store has the capability LiveText, otherwise events only.
func (w *Weir) Follow(ctx context.Context, id, cursor string) iter.Seq2[Item, error] {
	return w.local.Follow(ctx, id, cursor)
}

// Cursor returns the position after everything that a run and its child runs have done so far.
// Follow and Run.EventsFrom yield what comes after it.
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

// OverrideNode unblocks a stuck node: op is "retry", "skip" or "complete", the last with the
// outputs of the node. A failed run continues. The path may lead into child runs, as
// "PATH>NODE". A run that failed because of a child continues once the child has completed;
// OverrideNode waits for that.
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

// setExecution replaces the execution by the one that a command on the run returned.
func (r *Run) setExecution(done *Run, err error) error {
	if done != nil && done.exec != nil {
		r.mu.Lock()
		r.exec = done.exec
		r.mu.Unlock()
	}
	return err
}

// do executes a command on any run, and resumes the run in this process.
func (w *Weir) do(ctx context.Context, id string, c runner.Command) (*Run, error) {
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.doForRequest(ctx, id, func(with func(runner.Command) runner.Command) (*Run, error) {
		return w.doWithProgram(ctx, p, id, with(c))
	})
}

// doAtNode executes a command on a node of any run or of its child runs.
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
	r, err := w.doForRequest(ctx, id, func(with func(runner.Command) runner.Command) (*Run, error) {
		command := func(path string) runner.Command { return with(at(path)) }
		return w.retryWhileOwned(ctx, p, id, func() (*runner.Execution, error) { return w.local.DoAt(ctx, p, id, path, command) })
	})
	if r == nil || err != nil || w.runner == nil {
		return r, err
	}
	return w.handOver(ctx, id, r.exec, nil)
}

// ChildAt returns the id of the newest child run that the node at a path has started, "" if
// there is none. The path is relative to the run and must not lead into a child run.
func (w *Weir) ChildAt(ctx context.Context, id, path string) (string, error) {
	i, err := w.local.ChildAt(ctx, id, path)
	if err != nil || i.Child == nil {
		return "", err
	}
	return i.Child.Run, nil
}

// AcceptChanges lets a run, with the child runs that it waits for, continue under the versions
// of node types and tools that this process has. It returns the differences from the versions
// that the run was started with, nil if there are none. The acceptance is recorded with by.
// Nothing is executed: call Resume, Answer or another method afterwards. The error is a
// *runner.Changed if the ports of a node type differ so that the record could change its
// meaning; such a run can only be forked. The error is runner.ErrStatus if the run has
// completed or was cancelled.
func (w *Weir) AcceptChanges(ctx context.Context, id, by string) ([]string, error) {
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.local.Accept(ctx, p, id, by)
}

// doStop is do for commands that stop a run. They also work if the tools or node types of the
// run differ from those of this process.
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

// retryWhileOwned executes a command on a run, and retries it for a short time if another
// process is about to release the run. What a child run has already recorded is not repeated.
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

// ownedRetryTimeout limits how long a command waits for another process to release a paused
// run.
const ownedRetryTimeout = 2 * time.Second

// isAboutToBeReleased reports whether a process owns the run although it waits only for people.
// That process is about to release it.
func (w *Weir) isAboutToBeReleased(ctx context.Context, id string) bool {
	r, err := w.store.Run(ctx, id)
	return err == nil && r.Head.Status == engine.Paused && r.Head.Due == 0
}

// Resume continues a run in this process after a crash, shutdown or pause.
func (w *Weir) Resume(ctx context.Context, id string) (*Run, error) {
	if w.runner != nil {
		return w.wake(ctx, id, true)
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

// Answer resolves an interrupt of any run and continues the run in this process. The error is
// store.ErrOwned if another process executes the run; with Options.Runner a worker gets the answer.
func (w *Weir) Answer(ctx context.Context, id, interrupt string, v any, by string) (*Run, error) {
	if w.runner != nil {
		return w.deliver(ctx, store.Post{Run: id, Kind: "answer", Name: interrupt, Value: v, By: by})
	}
	return w.do(ctx, id, runner.Answer(interrupt, v, by))
}

// Signal delivers an outside event to any run and continues the run in this process.
func (w *Weir) Signal(ctx context.Context, id, event string, v any, by string) (*Run, error) {
	if w.runner != nil {
		return w.deliver(ctx, store.Post{Run: id, Kind: "event", Name: event, Value: v, By: by})
	}
	return w.do(ctx, id, runner.Signal(event, v, by))
}

// Cancel cancels any run. If another process executes the run, that process is sent a message
// and the returned Run is nil.
func (w *Weir) Cancel(ctx context.Context, id, by, reason string) (*Run, error) {
	post := store.Post{Run: id, Kind: "cancel", By: by}
	if reason != "" {
		post.Value = reason
	}
	if w.runner != nil {
		return w.deliver(ctx, post)
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
		post.At = time.Now()
		if err := w.store.Post(ctx, post); err != nil {
			return nil, err
		}
		// The owner may have given the run back before it could see the message.
		if row, err := w.store.Run(ctx, id); err != nil || row.Owner != "" {
			return nil, err
		}
	}
}

// OverrideNode unblocks a stuck node of any run and continues the run in this process; see
// Run.OverrideNode.
func (w *Weir) OverrideNode(ctx context.Context, id, op, path string, outputs map[string]any, by string) (*Run, error) {
	vs, err := valuesOf(outputs)
	if err != nil {
		return nil, err
	}
	return w.doAtNode(ctx, id, path, func(path string) runner.Command { return runner.OverrideNode(op, path, vs, by) })
}

// IncreaseBudget increases the budget that a node of any failed run exceeded, and continues the
// run in this process; see Run.IncreaseBudget.
func (w *Weir) IncreaseBudget(ctx context.Context, id, path string, more map[string]any, by string) (*Run, error) {
	return w.doAtNode(ctx, id, path, func(path string) runner.Command { return runner.IncreaseBudget(path, more, by) })
}

// Runs lists runs, newest first.
func (w *Weir) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	return w.store.Runs(ctx, f)
}

// Find returns the one run whose id begins with prefix. Child runs, whose ids begin with the id
// of their root run, do not count.
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

// maxFound is the maximum number of run ids that a store returns for a prefix.
const maxFound = 100

// rootRuns removes from a sorted list the runs that are children of other runs in it: their ids
// begin with the id of the root of their tree. A list of maxFound ids is returned unchanged,
// since it may be incomplete.
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

// Output returns an output of a completed run as a T. If the run has no such output, or the
// output is not a T, the error says so.
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

// Wait returns when the run has ended, or is paused until a person answers or an outside event
// arrives. Questions that were answered in another process, or through another Run, are not
// returned: Wait then continues the run here, or waits while another process executes it.
// Cancelling ctx ends the wait, not the run.
func (r *Run) Wait(ctx context.Context) (Result, error) {
	if r.w.runner != nil {
		return r.w.waitForWorker(ctx, r.ID)
	}
	var result Result
	answered := 0
	err := looks(ctx, func() (done bool, err error) {
		x := r.execution()
		if result, err = x.Wait(ctx); err != nil || result.Status != engine.Paused {
			return true, err
		}
		if open, err := x.AllOpen(ctx); open || err != nil {
			return true, nil //nolint:nilerr // the result is that of the execution in any case
		}
		next, err := r.w.rejoin(ctx, r.ID)
		switch {
		case err == nil && next == x: // it has not ended yet
		case err == nil:
			_ = r.setExecution(&Run{exec: next}, nil)
			answered++ // a child reports its answer soon
		case !errors.Is(err, store.ErrOwned):
			return true, nil // for example a run whose flow this process lacks
		}
		return answered > maxAnswered, nil
	})
	return result, err
}

// rejoin continues a run of which a question was answered elsewhere.
func (w *Weir) rejoin(ctx context.Context, id string) (*runner.Execution, error) {
	p, err := w.programOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.local.Rejoin(ctx, p, id, "")
}

// Steer sends a message to a node of a run that works, whichever process executes it, and
// returns the path of the node. It is durable then; the next model call of the node takes it,
// and an agent that was about to end makes one more call. With s.Interrupt, the model's answer
// ends where it is. The error is runner.ErrSteeringLate if no node works that could take it, and
// input_invalid if several do and s.Path names none.
func (w *Weir) Steer(ctx context.Context, run string, s runner.Steering) (node string, err error) {
	known := s.ID != ""
	s.ID = cmp.Or(s.ID, runner.NewID())
	if err := s.Check(); err != nil {
		return "", err
	}
	if known {
		if path, unread := w.local.FindSteering(ctx, run, s.ID); unread == nil && path != "" {
			return path, nil // sent before, perhaps to another node
		}
	}
	_, err = w.do(ctx, run, runner.Steer(s, &node))
	if errors.Is(err, store.ErrOwned) {
		node, err = w.local.PostSteering(ctx, run, s)
	}
	if err == nil && w.runner != nil { // no worker executes the run if this process has recorded the message
		_, err = w.wake(ctx, run, false)
	}
	if err != nil {
		return "", err
	}
	return node, nil
}

// Waits returns what the runs that this process executes wait for; ok is false while one of them does anything else. It
// is for tests of flows: without Options.Skip, ok is always false.
func (w *Weir) Waits() (waits runner.Waits, ok bool) { return w.local.Waits() }

// MoveClock moves the clock of the runs that this process executes forward to a time, and fires the timers that are due
// then. A paused run fires its timer when it is resumed. It is for tests of flows: without Options.Skip it is an error.
func (w *Weir) MoveClock(at time.Time) error { return w.local.MoveClock(at) }
