package runner

import (
	"fmt"

	"github.com/weir-run/weir/engine"
)

// Refusal is an ErrStatus with the refused operation, the reason, and an alternative.
type Refusal struct {
	// What is the refused operation, as "run r cannot be cancelled", and Why the reason.
	What, Why string
	// Instead is a hint, "" if there is none.
	Instead string
}

// Error returns the operation and the reason.
func (e *Refusal) Error() string { return e.What + ": " + e.Why }

// Unwrap returns ErrStatus.
func (e *Refusal) Unwrap() error { return ErrStatus }

// endedHint returns what to do about a run that has ended.
func endedHint(run string) string {
	return fmt.Sprintf("`%s` makes a run that continues from an earlier point of it, `%s` runs all of it again",
		engine.CommandLine("fork", run, "--from", "NODE"), engine.CommandLine("rerun", run))
}

// overrideVerb describes an override of a node.
func overrideVerb(op string) string {
	switch op {
	case "retry":
		return "retried"
	case "skip":
		return "skipped"
	default:
		return "completed by hand"
	}
}

// overrideError refuses to override the node at path, which is not stuck.
func overrideError(r *engine.Run, path, what string) error {
	e := &Refusal{What: fmt.Sprintf("run %s: node %s cannot be %s", r.ID, path, what)}
	switch s := r.Status(); {
	case s == engine.Cancelled:
		e.Why, e.Instead = "the run was cancelled, which is for good", endedHint(r.ID)
	case s == engine.Completed:
		e.Why, e.Instead = "the run has completed, and its nodes stay as they are", endedHint(r.ID)
	case r.CancelRequested():
		e.Why = "the run is being cancelled"
	case r.HasOpenChild(path):
		e.Why, e.Instead = waitsForChild(r, path)
	case s == engine.Failed:
		e.Why = fmt.Sprintf("it is %s; in a run that failed that can be done with nodes that failed or were cancelled with it", r.StatusOf(path))
		if f := r.Failure(); f != nil && f.Node != "" {
			e.Instead = "the node that failed is " + f.Node
		}
	default:
		e.Why = fmt.Sprintf("it is %s; while a run is running, this works only for waiting nodes", r.StatusOf(path))
	}
	return e
}

// waitsForChild returns why a node whose child run continues cannot be overridden, and what can be.
func waitsForChild(r *engine.Run, path string) (why, instead string) {
	for _, c := range r.OpenChildren() {
		if c.Node == path {
			return "it waits for the child run " + c.Start.Run, fmt.Sprintf("force a node of that run (`%s`), or cancel it (`%s`)",
				engine.CommandLine("show", c.Start.Run), engine.CommandLine("cancel", c.Start.Run))
		}
	}
	return "it waits for a child run", ""
}
