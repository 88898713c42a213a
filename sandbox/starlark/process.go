package starlark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// maxReport limits the size of the child's report, in bytes.
const maxReport = 64 << 20

// childResult describes the end of a child.
type childResult struct {
	report         *report
	raw            []byte // the report as it was sent
	stdout, stderr string
	took           time.Duration
	pid            int
}

// runChild runs a child for a request until it reports, exceeds a limit or ctx ends; the child has then ended. The
// error is a *sandbox.Error.
func (e *Executor) runChild(ctx context.Context, r *request, job *sandbox.Job, limits sandbox.Limits) (*childResult, error) {
	line := e.self.Command(roleName)
	if line == nil {
		return nil, unavailable()
	}
	input, err := json.Marshal(r)
	if err != nil {
		return nil, internalError("write the job", err)
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, internalError("make a pipe", err)
	}
	defer reportRead.Close() //nolint:errcheck // the file was only read
	limited, cancel := context.WithTimeoutCause(ctx, limits.Time, errTime)
	defer cancel()
	cmd := exec.CommandContext(limited, line[0], line[1:]...) //nolint:gosec // this program
	live := job.LiveStdout()
	stdout, stderr := &cappedBuffer{most: limits.Output, stop: cancel, live: live}, &cappedBuffer{most: limits.Output, stop: cancel}
	reported := &cappedBuffer{most: maxReport, stop: cancel}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), stdout, stderr
	// The code must not see either. Without the first variable the runtime would observe the number of processors,
	// for which it reads files.
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	if race := os.Getenv("GORACE"); raceEnabled && race != "" { // how long it waits for race reports before it exits
		cmd.Env = append(cmd.Env, "GORACE="+race)
	}
	cmd.Dir, cmd.ExtraFiles = string(os.PathSeparator), []*os.File{reportWrite}
	cmd.SysProcAttr, cmd.WaitDelay = childAttributes(), time.Second
	began := time.Now()
	err = cmd.Start()
	_ = reportWrite.Close()
	if err != nil {
		return nil, internalError("start a process for the code", err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(reported, reportRead)
	}()
	waited := cmd.Wait()
	<-read
	live.Close()
	done := &childResult{stdout: stdout.String(), stderr: stderr.String(), took: time.Since(began), pid: cmd.Process.Pid}
	switch {
	case stdout.over || stderr.over || reported.over:
		return done, &sandbox.Error{
			Code: engine.CodeCodeOutput, Message: fmt.Sprintf("the code wrote more than %d bytes", limits.Output),
		}
	case ctx.Err() != nil:
		return done, cancelledError(ctx)
	case errors.Is(context.Cause(limited), errTime):
		return done, &sandbox.Error{Code: engine.CodeCodeTimeout, Message: fmt.Sprintf("the code ran longer than %s", limits.Time)}
	case waited != nil:
		return done, missingReportError(waited, done.stderr, r.Memory)
	}
	done.report, done.raw = &report{}, reported.buf.Bytes()
	if err := json.Unmarshal(done.raw, done.report); err != nil {
		return done, internalError("read what the code left", err)
	}
	return done, nil
}

// errTime ends a child that exceeded its time.
var errTime = errors.New("out of time")

// missingReportError returns why a child ended without a report.
func missingReportError(waited error, stderr string, memory int64) *sandbox.Error {
	exit, ok := errors.AsType[*exec.ExitError](waited)
	says := func(what string) bool { return strings.Contains(stderr, what) }
	switch {
	case ok && says("stack exceeds"):
		return &sandbox.Error{Code: engine.CodeCodeFailed, Message: "the code, or a value in it, is nested too deep"}
	// If the kernel refuses memory, Go's runtime ends with an out-of-memory message or a memory fault. Other faults
	// of the interpreter are panics, which the child reports.
	case ok && (exit.ExitCode() == exitMemory || says("out of memory") || says("cannot allocate") || says("pthread_create failed") || says("SIGSEGV")):
		return &sandbox.Error{
			Code: engine.CodeCodeMemory, Message: fmt.Sprintf("the code took more than %d MB of memory", memory>>20),
			Hint: "process less data at once, or increase the executor's limit",
		}
	}
	return &sandbox.Error{Code: engine.CodeCodeKilled, Message: "the process that ran the code ended: " + waited.Error()}
}

// cancelledError returns the error of a job whose context ended.
func cancelledError(ctx context.Context) *sandbox.Error {
	return &sandbox.Error{Code: engine.CodeCancelled, Message: "the code was stopped: " + context.Cause(ctx).Error()}
}

func internalError(what string, err error) *sandbox.Error {
	return &sandbox.Error{Code: engine.CodeSandboxFailed, Message: what + ": " + err.Error(), Retry: true}
}

// cappedBuffer stores output up to a limit, and stops the writer beyond it.
type cappedBuffer struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	most int64
	over bool
	stop func()
	live *sandbox.LiveOutput // or nil
}

// Write never fails: the writer is stopped by its process.
func (c *cappedBuffer) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := c.most - int64(c.buf.Len())
	n := len(p)
	if int64(n) > room {
		p, c.over = p[:room], true
		c.stop()
	}
	c.buf.Write(p)
	if c.live != nil {
		_, _ = c.live.Write(p)
	}
	return n, nil
}

// String returns the stored output.
func (c *cappedBuffer) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}
