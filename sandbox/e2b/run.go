package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// serverGrace is how long to wait for the server to end a job that the sandbox should have ended.
const serverGrace = 20 * time.Second

// Run runs the job's code in its own sandbox.
func (e *Executor) Run(ctx context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	limits := withDefaults(job.Limits)
	out, err := e.runInSandbox(ctx, job, limits, sandbox.HarnessPython(), "run")
	if out == nil {
		return nil, err
	}
	result, err := out.buildResult(job, limits, err)
	result.Sandbox, result.Duration = out.sandbox, out.took
	return result, err
}

// Check finds problems in the job's code, in its own sandbox with a Python interpreter.
func (e *Executor) Check(ctx context.Context, job *sandbox.Job) ([]sandbox.Problem, error) {
	limits := withDefaults(job.Limits)
	out, err := e.runInSandbox(ctx, job, limits, sandbox.CheckPython(), "check")
	if err != nil {
		return nil, err
	}
	if out.end.End != "done" || out.end.Report == "" {
		_, err := out.buildResult(job, limits, nil)
		return nil, err
	}
	list, err := sandbox.ReadProblems([]byte(out.end.Report))
	if err != nil {
		return nil, lostSandboxError("check the code", err)
	}
	return list, nil
}

// outcome is the result of a sandbox.
type outcome struct {
	sandbox        string
	end            endFile
	stdout, stderr string
	took           time.Duration
}

// runInSandbox creates a sandbox, runs a program with the job, and deletes it. There is an outcome if the program
// started; the error is a *sandbox.Error.
func (e *Executor) runInSandbox(ctx context.Context, job *sandbox.Job, limits sandbox.Limits, program, function string) (*outcome, error) {
	if err := e.Probe(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, cancelledError(ctx)
	}
	uploads, err := uploadsOf(job, limits, program, function)
	if err != nil {
		return nil, err
	}
	b, fault := e.createOrDelete(ctx, limits.Time)
	if fault != nil {
		return nil, fault
	}
	defer e.remove(ctx, b.ID)
	if fault := e.write(ctx, b, uploads); fault != nil {
		return nil, cancelledOr(ctx, fault)
	}
	return e.executeJob(ctx, b, limits, job.OnOutput)
}

// createOrDelete is create for a caller that may stop waiting: a sandbox that is created after that is deleted.
func (e *Executor) createOrDelete(ctx context.Context, jobTime time.Duration) (*cloudSandbox, *sandbox.Error) {
	type made struct {
		box *cloudSandbox
		err *sandbox.Error
	}
	done := make(chan made, 1)
	go func() {
		b, err := e.create(context.WithoutCancel(ctx), jobTime)
		done <- made{b, err}
	}()
	select {
	case m := <-done:
		return m.box, m.err
	case <-ctx.Done():
		go func() {
			if m := <-done; m.err == nil {
				e.remove(ctx, m.box.ID)
			}
		}()
		return nil, cancelledError(ctx)
	}
}

// executeJob runs the code in a complete sandbox.
func (e *Executor) executeJob(ctx context.Context, b *cloudSandbox, limits sandbox.Limits, onOutput func(stdout, stderr string)) (*outcome, error) {
	limited, cancel := context.WithTimeoutCause(ctx, limits.Time+serverGrace, errTimeout)
	defer cancel()
	began := time.Now()
	s, fault := e.execute(limited, b, callExpression(limits), limits.Output, onOutput)
	out := &outcome{sandbox: b.ID, took: time.Since(began)}
	if s != nil {
		out.stdout, out.stderr = s.stdout.String(), s.stderr.String()
	}
	switch {
	case fault == nil:
	case ctx.Err() != nil:
		return out, cancelledError(ctx)
	case errors.Is(context.Cause(limited), errTimeout):
		return out, timeoutError(limits)
	default:
		return out, fault
	}
	raw, fault := e.read(ctx, b, endPath, maxEnd)
	if fault != nil {
		return out, cancelledOr(ctx, fault)
	}
	if err := json.Unmarshal(raw, &out.end); err != nil {
		return out, lostSandboxError("read how the code ended", err)
	}
	out.took = seconds(out.end.Took)
	return out, nil
}

// errTimeout ends a request for an execution that should have ended.
var errTimeout = errors.New("the execution is late")

// buildResult converts the end of the code. It always returns a result.
func (o *outcome) buildResult(job *sandbox.Job, limits sandbox.Limits, err error) (*sandbox.Result, error) {
	failed := &sandbox.Result{Stdout: o.stdout, Stderr: o.stderr}
	switch {
	case err != nil:
		return failed, err
	case o.end.End == "time":
		return failed, timeoutError(limits)
	case o.end.End == "output":
		return failed, outputLimitError(limits.Output)
	case o.end.Report == "":
		return failed, o.missingReportError()
	}
	report, err := sandbox.ReadReport([]byte(o.end.Report))
	if err != nil {
		return failed, lostSandboxError("read what the code left", err)
	}
	return report.BuildResult(job, o.stdout, o.stderr)
}

// missingReportError returns the error of a process that ended without a report.
func (o *outcome) missingReportError() *sandbox.Error {
	err := &sandbox.Error{Code: engine.CodeCodeKilled, Message: fmt.Sprintf("the code ended its process with the exit code %d", o.end.Exit)}
	if o.end.Exit < 0 {
		err.Message = "the code's process was killed: " + syscall.Signal(-o.end.Exit).String()
	}
	if strings.Contains(o.stderr, "MemoryError") {
		err.Code = engine.CodeCodeMemory
	}
	return err
}

func timeoutError(limits sandbox.Limits) *sandbox.Error {
	return &sandbox.Error{Code: engine.CodeCodeTimeout, Message: fmt.Sprintf("the code ran longer than %s", limits.Time)}
}

func outputLimitError(most int64) *sandbox.Error {
	return &sandbox.Error{Code: engine.CodeCodeOutput, Message: fmt.Sprintf("the code wrote more than %d bytes", most)}
}

// cancelledError returns the error of a job whose context ended.
func cancelledError(ctx context.Context) *sandbox.Error {
	return &sandbox.Error{Code: engine.CodeCancelled, Message: "the code was stopped: " + context.Cause(ctx).Error()}
}

func cancelledOr(ctx context.Context, fault *sandbox.Error) *sandbox.Error {
	if ctx.Err() != nil {
		return cancelledError(ctx)
	}
	return fault
}
