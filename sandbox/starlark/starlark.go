package starlark

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// The default limits of jobs.
const (
	DefaultTime   = 60 * time.Second
	DefaultMemory = 256 << 20 // bytes
	DefaultOutput = 1 << 20   // bytes
	// DefaultSteps is the default number of interpreter steps; a line takes a few.
	DefaultSteps = 2_000_000_000
)

// maxFiles limits the total size of a job's files, in bytes.
const maxFiles = 32 << 20

// Options configure an Executor; the zero value works.
type Options struct {
	// Steps is the maximum number of interpreter steps of a job; 0 means DefaultSteps.
	Steps uint64
}

// Executor runs Starlark in child processes.
type Executor struct {
	self  sandbox.SelfCommand
	steps uint64
}

// New returns the executor of a program that passed Role to sandbox.RunChildRole, which returned self.
func New(self sandbox.SelfCommand, o Options) *Executor {
	if o.Steps == 0 {
		o.Steps = DefaultSteps
	}
	return &Executor{self: self, steps: o.Steps}
}

// Name is "starlark".
func (e *Executor) Name() string { return "starlark" }

// Language is "starlark".
func (e *Executor) Language() string { return "starlark" }

// Probe fails if the program cannot start itself as a child.
func (e *Executor) Probe(context.Context) error {
	if e.self.Command(roleName) == nil {
		return unavailable()
	}
	return nil
}

func unavailable() *sandbox.Error {
	return &sandbox.Error{
		Code: engine.CodeSandboxUnavailable, Message: "Starlark runs in a child process, and this program cannot start one",
		Hint: "Call sandbox.Begin first thing in main, with starlark.Role().",
	}
}

// Check finds syntax errors, undefined names, and missing keys of context, inputs and files that are read by name.
func (e *Executor) Check(ctx context.Context, job *sandbox.Job) ([]sandbox.Problem, error) {
	r, err := e.request(job)
	if err != nil {
		return nil, err
	}
	r.Check = true
	done, err := e.runChild(ctx, r, job, withDefaults(job.Limits))
	if err != nil {
		return nil, err
	}
	if done.report.Kind != kindProblems {
		return nil, &sandbox.Error{Code: engine.CodeSandboxFailed, Message: done.report.Message}
	}
	list := make([]sandbox.Problem, len(done.report.Problems))
	for i, p := range done.report.Problems {
		list[i] = sandbox.Problem(p)
	}
	return list, nil
}

// Run runs the job's code in a child process.
func (e *Executor) Run(ctx context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, cancelledError(ctx)
	}
	r, err := e.request(job)
	if err != nil {
		return nil, err
	}
	done, err := e.runChild(ctx, r, job, withDefaults(job.Limits))
	if done == nil {
		return nil, err
	}
	result, err := buildResult(job, done, err)
	result.Sandbox, result.Duration = "starlark-"+strconv.Itoa(done.pid), done.took
	return result, err
}

// buildResult converts the end of a child. It always returns a result.
func buildResult(job *sandbox.Job, done *childResult, err error) (*sandbox.Result, error) {
	if err != nil {
		return &sandbox.Result{Stdout: done.stdout}, err
	}
	rep := done.report
	switch rep.Kind {
	case kindSteps:
		return &sandbox.Result{Stdout: done.stdout}, &sandbox.Error{
			Code: engine.CodeCodeTimeout, Message: rep.Message, Traceback: rep.Traceback, Line: rep.Line,
		}
	case kindFailed:
		return &sandbox.Result{Stdout: done.stdout}, &sandbox.Error{Code: engine.CodeSandboxFailed, Message: rep.Message}
	}
	read, err := sandbox.ReadReport(done.raw)
	if err != nil {
		return &sandbox.Result{Stdout: done.stdout}, internalError("read what the code left", err)
	}
	return read.BuildResult(job, done.stdout, "")
}

// request returns the child's input for the job.
func (e *Executor) request(job *sandbox.Job) (*request, error) {
	r := &request{Code: job.Code, Steps: e.steps, Memory: withDefaults(job.Limits).Memory}
	var err error
	if r.Context, err = engine.AppendValue(nil, job.CodeContext()); err != nil {
		return nil, internalError("write the context", err)
	}
	inputs := job.Inputs
	if inputs == nil {
		inputs = map[string]any{}
	}
	if r.Inputs, err = engine.AppendValue(nil, inputs); err != nil {
		return nil, internalError("write the inputs", err)
	}
	if r.Files, err = contents(job.Files); err != nil {
		return nil, err
	}
	return r, nil
}

// contents reads the files.
func contents(files []sandbox.File) (map[string][]byte, error) {
	m := make(map[string][]byte, len(files))
	room := int64(maxFiles)
	for _, f := range files {
		b, err := read(f.Path, room)
		if err != nil {
			return nil, &sandbox.Error{Code: engine.CodeSandboxFailed, Message: fmt.Sprintf("the file %s: %v", f.Name, err)}
		}
		room -= int64(len(b))
		m[f.Name] = b
	}
	return m, nil
}

func read(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("the files of a job in Starlark may hold %s MB together", strconv.Itoa(maxFiles>>20))
	}
	return b, nil
}

func withDefaults(l sandbox.Limits) sandbox.Limits {
	return l.WithDefaults(sandbox.Limits{Time: DefaultTime, Memory: DefaultMemory, Output: DefaultOutput})
}
