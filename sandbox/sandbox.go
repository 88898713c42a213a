// Package sandbox defines code executors: jobs with code, values and limits, the state
// update that code reports, and how a program starts itself again as the isolated child
// that runs the code.
//
// It must not know flows, nodes or how an executor isolates code.
package sandbox

import (
	"cmp"
	"context"
	"time"

	"github.com/weir-run/weir/engine"
)

// Executor runs code of one language in isolation. It is safe for concurrent use.
type Executor interface {
	// Name is its name in flows: "python", "starlark", "e2b".
	Name() string
	// Language is the language of the code: "python", "starlark".
	Language() string
	// Probe reports whether code can be isolated on this machine. The error is an *Error
	// with the code sandbox_unavailable that says what is missing and how to install it. An
	// executor never runs code if Probe fails.
	Probe(ctx context.Context) error
	// Check finds problems in the job's code without running it: syntax errors, undefined
	// names, and missing keys of the context that are read. Without problems the list is
	// empty.
	Check(ctx context.Context, job *Job) ([]Problem, error)
	// Run runs the job's code. The error is an *Error; a Result is also returned with an
	// error if the code started.
	Run(ctx context.Context, job *Job) (*Result, error)
}

// Job is code with its values. The code has the names context, inputs and files, and the
// module json if the language has one.
type Job struct {
	Code string
	// Context is the state, which the code may change. The values are those of engine.Value
	// without handles.
	Context map[string]any
	// Inputs are the values of the node's ports.
	Inputs map[string]any
	// Decision: the key branch_decision is removed from the context before the code runs,
	// and the code must set it.
	Decision bool
	// ReadOnly: the code only examines the values. What it prints is no update, so that a
	// status that is neither success nor error is one of its values.
	ReadOnly bool
	// Files are files that the code may read; files maps their names to paths.
	Files  []File
	Limits Limits
	// OnOutput, unless nil, receives what the code prints as soon as it is read: pieces of
	// stdout or of stderr with whole characters, at most Limits.Output bytes of each. It
	// must not block, is called by one goroutine for each stream, and not after Run has
	// returned.
	OnOutput func(stdout, stderr string)
}

// File is a file that code may read but not write.
type File struct {
	Name string // name in the code; no separators
	Path string // path outside the sandbox
}

// Limits are the limits of one job; zero fields mean the executor's defaults.
type Limits struct {
	Time   time.Duration // until all processes of the code are killed
	Memory int64         // bytes, of all its processes together if the system supports that
	Output int64         // bytes of stdout and of stderr, each; exceeding it fails the job
	Disk   int64         // bytes of written files, which are deleted after the job
	// Processes limits its concurrent processes, including threads.
	Processes int
}

// WithDefaults returns l with zero fields set from other.
func (l Limits) WithDefaults(other Limits) Limits {
	return Limits{
		Time: cmp.Or(max(l.Time, 0), other.Time), Memory: cmp.Or(max(l.Memory, 0), other.Memory),
		Output: cmp.Or(max(l.Output, 0), other.Output), Disk: cmp.Or(max(l.Disk, 0), other.Disk),
		Processes: cmp.Or(max(l.Processes, 0), other.Processes),
	}
}

// Result is the result of a job.
type Result struct {
	// Set and Delete are the change of the context: the update that the code printed, or
	// else its changes to context. Neither has branch_decision.
	Set    map[string]any
	Delete []string
	// Branch is the branch that a decision chose, as text.
	Branch string
	// Message is the message that the code printed with its update.
	Message string
	// Printed says that the update was printed.
	Printed bool
	// Stdout and Stderr are the output, without the line of the update.
	Stdout, Stderr string
	// Sandbox is the id of the sandbox, Took the duration.
	Sandbox  string
	Duration time.Duration
}

// Problem is a finding of Check.
type Problem struct {
	Line    int // in the job's code, from 1; 0 for the whole code
	Message string
}

// Error is the error of a job.
type Error struct {
	// Code is one of the engine's codes for code nodes.
	Code    string
	Message string
	// Traceback is in the language's own format, with the lines of the job's code; Line is
	// the innermost of those, from 1, 0 for none.
	Traceback string
	Line      int
	// Key is the key of the context with the invalid value, "" for none.
	Key string
	// Retry says that the code is not at fault, and that another try may succeed.
	Retry bool
	// Hint is the next thing to do.
	Hint string
}

// Error returns what happened, and where in the code.
func (e *Error) Error() string { return e.Message }

// Failure converts the error to the journal's form.
func (e *Error) Failure() *engine.Error {
	message := e.Message
	if e.Traceback != "" {
		message += "\n" + e.Traceback
	}
	return &engine.Error{Code: e.Code, Message: message, Hint: e.Hint, Permanent: !e.Retry}
}
