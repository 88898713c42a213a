// Package barepython runs Python code in a process of its own and without any
// isolation: for tests of what uses executors, on machines where code cannot be
// isolated, and for nothing else. It must not know flows, nodes or runs, nor be
// linked by anything but tests.
package barepython

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

//go:embed prelude.py
var prelude string

// Executor runs code with the python3 of the machine.
type Executor struct {
	count atomic.Int64
	// Fail, where set, is asked before each execution; its error is that of Run.
	Fail func() error
}

// Name is that of the executor for Python.
func (*Executor) Name() string { return "python" }

// Language is Python.
func (*Executor) Language() string { return "python" }

// Runs is how many executions there were.
func (x *Executor) Runs() int { return int(x.count.Load()) }

// Probe reports whether there is a python3.
func (*Executor) Probe(context.Context) error {
	if _, err := exec.LookPath("python3"); err != nil {
		return &sandbox.Error{Code: engine.CodeSandboxUnavailable, Message: err.Error()}
	}
	return nil
}

// told is what the prelude says when the code has ended.
type told struct {
	Context   map[string]any    `json:"context"`
	Odd       []sandbox.Odd     `json:"odd"`
	Error     string            `json:"error"`
	Traceback string            `json:"traceback"`
	Line      int               `json:"line"`
	Problems  []sandbox.Problem `json:"problems"`
}

// Check compiles the code.
func (x *Executor) Check(ctx context.Context, job *sandbox.Job) ([]sandbox.Problem, error) {
	t, _, _, err := x.start(ctx, job, "check")
	if err != nil {
		return nil, err
	}
	return t.Problems, nil
}

// Run runs the code.
func (x *Executor) Run(ctx context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	if x.Fail != nil {
		if err := x.Fail(); err != nil {
			return nil, err
		}
	}
	n := x.count.Add(1)
	begin := time.Now()
	t, out, errs, err := x.start(ctx, job, "run")
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("bare-%d", n)
	if t.Error != "" {
		failed := &sandbox.Error{Code: engine.CodeCodeFailed, Message: t.Error, Traceback: t.Traceback, Line: t.Line}
		if t.Line < 0 {
			failed = &sandbox.Error{Code: engine.CodeCodeInvalid, Message: t.Error}
		}
		return &sandbox.Result{Stdout: out, Stderr: errs, Sandbox: id, Took: time.Since(begin)}, failed
	}
	r, err := sandbox.Conclude(job, &sandbox.Ended{Context: t.Context, Odd: t.Odd, Stdout: out, Stderr: errs})
	if r != nil {
		r.Sandbox, r.Took = id, time.Since(begin)
	}
	return r, err
}

func (x *Executor) start(ctx context.Context, job *sandbox.Job, what string) (t told, out, errs string, err error) {
	files := map[string]string{}
	for _, f := range job.Files {
		files[f.Name] = f.Path
	}
	input, err := json.Marshal(map[string]any{"code": job.Code, "context": job.Given(), "inputs": job.Inputs, "files": files, "what": what})
	if err != nil {
		return t, "", "", err
	}
	folder, err := os.MkdirTemp("", "bare-")
	if err != nil {
		return t, "", "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	limited := ctx
	if job.Limits.Time > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, job.Limits.Time)
		defer cancel()
	}
	result := filepath.Join(folder, "result")
	cmd := exec.CommandContext(limited, "python3", "-I", "-S", "-B", "-c", prelude, result) // #nosec G204 -- a constant program
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = bytes.NewReader(input), &stdout, &stderr, folder
	ran := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return t, "", "", ctx.Err()
	case limited.Err() != nil:
		return t, "", "", &sandbox.Error{Code: engine.CodeCodeTimeout, Message: fmt.Sprintf("the code ran longer than %v", job.Limits.Time)}
	}
	b, err := os.ReadFile(result) // #nosec G304 -- in a folder of our own
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		err = d.Decode(&t)
	}
	if err != nil {
		return t, "", "", &sandbox.Error{Code: engine.CodeCodeKilled, Message: errors.Join(err, ran).Error() + stderr.String()}
	}
	return t, stdout.String(), stderr.String(), nil
}
