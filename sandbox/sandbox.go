// Package sandbox is the contract of code executors: a piece of code with its values
// and limits, the update of the state that the code reports, and how a program starts
// itself again as the isolated child that runs the code.
//
// It must not know flows, nodes or how an executor isolates code.
package sandbox

import (
	"cmp"
	"context"
	"time"

	"github.com/weir-run/weir/engine"
)

// Executor runs code of one language in isolation. It may be used by many
// goroutines at once.
type Executor interface {
	// Name is how flows call it: "python", "starlark", "e2b".
	Name() string
	// Language is that of the code: "python", "starlark".
	Language() string
	// Probe says whether code can be isolated here; the error is an *Error with
	// the code sandbox_unavailable that says what is missing and how to get it.
	// An executor never runs code where Probe fails.
	Probe(ctx context.Context) error
	// Check finds what is wrong with the job's code without running it: its
	// syntax, names that nothing defines, and keys of the context that are read
	// and not there. No problem is an empty list.
	Check(ctx context.Context, job *Job) ([]Problem, error)
	// Run runs the job's code. The error is an *Error; the Result is there too
	// where the code began to run.
	Run(ctx context.Context, job *Job) (*Result, error)
}

// Job is a piece of code with what it is given. The code finds the names
// context, inputs and files, and the module json where the language has one.
type Job struct {
	Code string
	// Context is the state, which the code may change; the values are those of
	// engine.Value without handles.
	Context map[string]any
	// Inputs are the values of the node's ports.
	Inputs map[string]any
	// Decision: the key branch_decision is taken from the context before the code
	// runs, and the code must set it.
	Decision bool
	// Files are what the code may read beside; it finds their paths under their
	// names in files.
	Files  []File
	Limits Limits
}

// File is a file that code may read and not write.
type File struct {
	Name string // how the code calls it; no separators
	Path string // where it is, outside the sandbox
}

// Limits bound one job; zero fields are the executor's defaults.
type Limits struct {
	Time   time.Duration // until everything that the code began is killed
	Memory int64         // bytes, of all its processes together where the system can tell
	Output int64         // bytes of stdout and of stderr, each; more fails the job
	Disk   int64         // bytes of files it may write, which are gone with it
	// Processes is how many it may have at once, threads counted.
	Processes int
}

// WithDefaults is l with those of other where l has none.
func (l Limits) WithDefaults(other Limits) Limits {
	return Limits{
		Time: cmp.Or(max(l.Time, 0), other.Time), Memory: cmp.Or(max(l.Memory, 0), other.Memory),
		Output: cmp.Or(max(l.Output, 0), other.Output), Disk: cmp.Or(max(l.Disk, 0), other.Disk),
		Processes: cmp.Or(max(l.Processes, 0), other.Processes),
	}
}

// Result is what a job brought.
type Result struct {
	// Set and Delete are the change of the context: what the code printed as its
	// update, or else what it did to context. Neither has branch_decision.
	Set    map[string]any
	Delete []string
	// Branch is what a decision decided: the name of a branch, as text.
	Branch string
	// Message is what the code printed with its update.
	Message string
	// Printed: the update is the one that was printed.
	Printed bool
	// Stdout and Stderr are what it wrote, without the line of the update.
	Stdout, Stderr string
	// Sandbox is the id of the sandbox it ran in, Took how long it ran.
	Sandbox  string
	Duration time.Duration
}

// Problem is what Check found.
type Problem struct {
	Line    int // in the job's code, from 1; 0 for all of it
	Message string
}

// Error is why a job brought nothing.
type Error struct {
	// Code is one of the engine's codes for code nodes.
	Code    string
	Message string
	// Traceback is the language's own, with the lines of the job's code; Line is
	// the innermost of those, from 1, 0 for none.
	Traceback string
	Line      int
	// Key is the key of the context whose value is at fault, "" for none.
	Key string
	// Retry: the fault is not the code's, and another try may go well.
	Retry bool
	// Hint says what to do.
	Hint string
}

// Error says what happened, and where in the code.
func (e *Error) Error() string { return e.Message }

// Failure is the error as the journal keeps it.
func (e *Error) Failure() *engine.Error {
	message := e.Message
	if e.Traceback != "" {
		message += "\n" + e.Traceback
	}
	return &engine.Error{Code: e.Code, Message: message, Hint: e.Hint, Permanent: !e.Retry}
}
