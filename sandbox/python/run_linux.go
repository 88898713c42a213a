//go:build linux && (amd64 || arm64)

package python

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// Run runs the job's code. The report is trusted, because code that forges it can do no more than change its context;
// it is required only if the process ended by itself and without an error.
func (e *Executor) Run(ctx context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	o, err := e.execute(ctx, job, false)
	if err != nil {
		return nil, err
	}
	r, err := o.buildResult(job)
	if r == nil {
		r = &sandbox.Result{Stdout: o.stdout.String(), Stderr: o.stderr.String()}
	}
	r.Sandbox, r.Duration = o.id, o.took
	return r, err
}

// Check finds problems in the code, in a sandbox like that of Run.
func (e *Executor) Check(ctx context.Context, job *sandbox.Job) ([]sandbox.Problem, error) {
	o, err := e.execute(ctx, job, true)
	if err != nil {
		return nil, err
	}
	if err := o.failure(); err != nil {
		return nil, err
	}
	list, err := sandbox.ReadProblems(o.report.Bytes())
	if err != nil {
		return nil, failed("check the code", err)
	}
	return list, nil
}

// outcome describes the end of a job's process.
type outcome struct {
	*jobOutput
	id          string
	took        time.Duration
	limits      sandbox.Limits
	state       *os.ProcessState
	timedOut    bool  // the time limit was reached
	cancelCause error // the cause if the context ended
	outOfMemory bool  // the memory of the cgroup was exhausted
}

func (e *Executor) execute(ctx context.Context, job *sandbox.Job, check bool) (*outcome, error) {
	in, err := e.installation(ctx)
	if err != nil {
		return nil, err
	}
	limits := e.limits(job.Limits)
	p, err := e.plan(in, job, limits)
	if err != nil {
		return nil, err
	}
	text, err := p.message(job, check)
	if err != nil {
		return nil, err
	}
	leave, err := e.acquireSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	began := time.Now()
	c, err := p.start()
	if err != nil {
		e.forget(in, err)
		return nil, explainSetupError(err)
	}
	o := &outcome{id: p.id, limits: limits}
	var late atomic.Bool
	timer := time.AfterFunc(limits.Time, func() { late.Store(true); c.kill() })
	stop := context.AfterFunc(ctx, c.kill)
	o.jobOutput = c.exchange(text, job, limits.Output)
	o.state = c.wait()
	timer.Stop()
	stop()
	if c.cgroupErr != nil && ctx.Err() == nil {
		return nil, failed("put the code's process into a cgroup", c.cgroupErr)
	}
	o.took, o.timedOut, o.cancelCause, o.outOfMemory = time.Since(began), late.Load(), ctx.Err(), c.outOfMemory
	return o, nil
}

// sandboxPrefix is the prefix of sandbox ids.
const sandboxPrefix = "py-"

// newSandboxID returns an id for the record.
func newSandboxID() string { return sandboxPrefix + strings.ToLower(rand.Text()) }

// plan returns the description of the job's process.
func (e *Executor) plan(in *installation, job *sandbox.Job, l sandbox.Limits) (*jobPlan, error) {
	p := &jobPlan{
		installation: in, id: newSandboxID(), memory: l.Memory, disk: l.Disk, tasks: l.Processes, time: l.Time,
		root: mountpoint(), dropGroups: os.Geteuid() == 0, cgroups: in.groups,
	}
	if in.abi == 0 {
		return nil, unavailable("the kernel has no Landlock", landlockHint)
	}
	for _, file := range job.Files {
		g, err := openInputFile(file, p.dropGroups)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, g)
	}
	return p, nil
}

const landlockHint = "Linux 5.13 or later with landlock among the security modules that are started (lsm= on the kernel's command line)"

// mountpoint returns an existing folder; its content is not changed.
func mountpoint() string {
	for _, dir := range []string{"/tmp", "/var", "/usr"} {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return "/dev"
}

// openInputFile opens a file for the code. If this process is root, whose sandboxes have another user, a file that
// not everybody may read is copied.
func openInputFile(f sandbox.File, root bool) (inputFile, error) {
	refuse := func(err error) (inputFile, error) {
		return inputFile{}, &sandbox.Error{Code: engine.CodeSandboxFailed, Message: fmt.Sprintf("the file %s cannot be given to the code: %v", f.Name, err)}
	}
	if f.Name == "" || f.Name == "." || f.Name == ".." || strings.ContainsAny(f.Name, "/\x00") {
		return refuse(errors.New("its name has to be one without separators"))
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return refuse(err)
	}
	defer file.Close() //nolint:errcheck // the file was only read
	info, err := file.Stat()
	if err != nil {
		return refuse(err)
	}
	if !info.Mode().IsRegular() {
		return refuse(errors.New("it is no regular file"))
	}
	g := inputFile{from: f.Path, name: f.Name, size: -1}
	if root && info.Mode().Perm()&0o004 == 0 {
		g.size = info.Size()
	}
	return g, nil
}

// message returns the input of the process: the harness, and the job as JSON.
func (p *jobPlan) message(job *sandbox.Job, check bool) ([]byte, error) {
	code := p.installation.run
	if check {
		code = p.installation.check
	}
	files := make(map[string]any, len(p.files))
	for _, g := range p.files {
		files[g.name] = g.sandboxPath()
	}
	path := make([]any, 0, len(p.installation.path))
	for _, dir := range p.installation.path {
		path = append(path, dir)
	}
	inputs := job.Inputs
	if inputs == nil {
		inputs = map[string]any{}
	}
	head := append(strconv.AppendInt(nil, int64(len(code)), 10), '\n')
	head = append(head, code...)
	text, err := engine.AppendValue(head, map[string]any{
		"code": job.Code, "context": job.CodeContext(), "inputs": inputs, "files": files, "path": path, "depth": int64(sandbox.MaxDepth),
	})
	if err != nil {
		return nil, failed("write the job", err)
	}
	return text, nil
}

// failure returns why the process did not end by itself and without an error.
func (o *outcome) failure() error {
	e := &sandbox.Error{}
	status, _ := o.state.Sys().(syscall.WaitStatus)
	switch {
	case o.timedOut:
		e.Code, e.Message = engine.CodeCodeTimeout, fmt.Sprintf("the code was not done after %s, and was killed", o.limits.Time)
		e.Hint = "raise timeout, up to 300 seconds, or do less"
	case o.over == "the context":
		e.Code, e.Message = engine.CodeCodeOutput, fmt.Sprintf("the code left more than %d MB in the context", maxReport>>20)
	case o.over != "":
		e.Code, e.Message = engine.CodeCodeOutput, fmt.Sprintf("the code wrote more than %d bytes to %s", o.limits.Output, o.over)
		e.Hint = "write less, or raise the executor's limit"
	case o.cancelCause != nil:
		return cancelled(o.cancelCause)
	case o.outOfMemory:
		e.Code, e.Message = engine.CodeCodeMemory, fmt.Sprintf("the code took more than %d MB of memory", o.limits.Memory>>20)
	case status.Signaled() && status.Signal() == unix.SIGXCPU:
		e.Code, e.Message = engine.CodeCodeTimeout, "the code used more time of the processor than it may"
	case status.Signaled():
		e.Code, e.Message = engine.CodeCodeKilled, "the code was ended by the signal "+unix.SignalName(status.Signal())
	case status.ExitStatus() != 0:
		e.Code, e.Message = engine.CodeCodeFailed, fmt.Sprintf("the code ended its process with the exit code %d", status.ExitStatus())
	case o.report.Len() == 0:
		e.Code, e.Message = engine.CodeCodeKilled, "the code ended its process before its end, without a word of how it left things"
		e.Hint = "use sys.exit(), or nothing, in place of os._exit()"
	default:
		return nil
	}
	return e
}

// buildResult returns the result of the job.
func (o *outcome) buildResult(job *sandbox.Job) (*sandbox.Result, error) {
	if err := o.failure(); err != nil {
		return nil, err
	}
	r, err := sandbox.ReadReport(o.report.Bytes())
	if err != nil {
		return nil, &sandbox.Error{Code: engine.CodeCodeKilled, Message: "the code ended with a report that cannot be read", Hint: "it may not write to files that it did not open"}
	}
	return r.BuildResult(job, text(o.stdout.String()), text(o.stderr.String()))
}

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
