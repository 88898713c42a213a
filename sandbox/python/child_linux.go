//go:build linux && (amd64 || arm64)

package python

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-run/weir/sandbox"
)

// jobNamespaces are the namespaces that are created for each job.
const jobNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// setupTimeout limits the time for creating a sandbox.
const setupTimeout = 30 * time.Second

// childProcess is the process of a job.
type childProcess struct {
	process     *os.Process
	stdin       *os.File
	stdout      *os.File
	stderr      *os.File
	report      *os.File
	once        sync.Once
	group       *cgroup
	cgroupErr   error // the reason why it is not in its cgroup
	outOfMemory bool  // the memory of its cgroup was exhausted; set at its end
}

// setupError is a failed step of creating a sandbox.
type setupError struct {
	step string
	err  error
}

// Error names the step.
func (e *setupError) Error() string { return e.step + ": " + e.err.Error() }

// Unwrap returns the error of the step.
func (e *setupError) Unwrap() error { return e.err }

// start creates a sandbox and starts the interpreter in it. The caller must call close on the result.
func (p *jobPlan) start() (*childProcess, error) {
	c := &childProcess{}
	pipes := make([]childPipe, 0, len(p.stdFiles))
	defer func() {
		for _, one := range pipes {
			one.close()
		}
	}()
	for i := range p.stdFiles {
		one, err := newPipe(i == 0 || i == fdGo)
		if err != nil {
			return nil, &setupError{"make pipes", err}
		}
		pipes = append(pipes, one)
		p.stdFiles[i] = one.childEnd
	}
	list := p.calls()
	c.group = p.cgroups.add(p.id, p.memory+p.disk)
	pid, err := list.begin(jobNamespaces, fdStatus)
	if err != nil {
		c.group.remove()
		return nil, &setupError{"make namespaces", err}
	}
	for i := range pipes {
		pipes[i].closeChildEnd()
	}
	if c.process, err = os.FindProcess(pid); err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		c.group.remove()
		return nil, &setupError{"watch the process", err}
	}
	// A folder may be on a disk that does not respond.
	guard := time.AfterFunc(setupTimeout, c.kill)
	defer guard.Stop()
	if err := p.mapUserAndStart(pid, pipes); err != nil {
		c.close()
		return nil, err
	}
	if err := waitStarted(list, pipes[fdStatus].parentEnd); err != nil {
		c.close()
		return nil, err
	}
	c.stdin, c.stdout, c.stderr, c.report = pipes[0].takeParentEnd(), pipes[1].takeParentEnd(), pipes[2].takeParentEnd(), pipes[fdReport].takeParentEnd()
	return c, nil
}

// mapUserAndStart maps the user of the process and lets it start.
func (p *jobPlan) mapUserAndStart(pid int, pipes []childPipe) error {
	if err := mapUser(pid, p.dropGroups); err != nil {
		return err
	}
	if _, err := pipes[fdGo].parentEnd.Write([]byte{1}); err != nil {
		return &setupError{"begin", err}
	}
	return nil
}

// waitStarted waits until the interpreter has replaced the setup, and returns the failed step if it has not.
func waitStarted(list *syscallList, status *os.File) error {
	var b [8]byte
	n, err := io.ReadFull(status, b[:])
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return &setupError{"begin", err}
	}
	i := int(int32(binary.NativeEndian.Uint32(b[:4])))
	e := syscall.Errno(binary.NativeEndian.Uint32(b[4:]))
	if e == 0 || i < 0 || i >= len(list.labels) {
		return &setupError{"begin", errors.New("it ended before the interpreter")}
	}
	return &setupError{list.labels[i], e}
}

// kill ends all processes of the sandbox: they end with its first process.
func (c *childProcess) kill() { _ = c.process.Kill() }

// close kills the remaining processes and releases the child's resources.
func (c *childProcess) close() {
	c.kill()
	c.wait()
}

// wait waits for the end of the process, which must be imminent.
func (c *childProcess) wait() *os.ProcessState {
	state, _ := c.process.Wait()
	c.once.Do(func() {
		c.outOfMemory = c.group.outOfMemory()
		c.group.remove()
		for _, f := range []*os.File{c.stdin, c.stdout, c.stderr, c.report} {
			if f != nil {
				_ = f.Close()
			}
		}
	})
	return state
}

// childPipe is a pipe with an end for the child and one for the parent.
type childPipe struct {
	childEnd  int
	parentEnd *os.File
}

// newPipe creates a pipe that the child reads or writes. The child's end has a number above those that it will get.
func newPipe(childReads bool) (childPipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return childPipe{}, err
	}
	theirs, ours := fds[0], fds[1]
	if !childReads {
		theirs, ours = ours, theirs
	}
	moved, err := unix.FcntlInt(uintptr(theirs), unix.F_DUPFD_CLOEXEC, 64)
	_ = unix.Close(theirs)
	if err == nil {
		err = unix.SetNonblock(ours, true)
	}
	if err != nil {
		_ = unix.Close(ours)
		return childPipe{}, err
	}
	return childPipe{childEnd: moved, parentEnd: os.NewFile(uintptr(ours), "pipe")}, nil
}

func (p *childPipe) closeChildEnd() {
	if p.childEnd >= 0 {
		_ = unix.Close(p.childEnd)
		p.childEnd = -1
	}
}

// takeParentEnd returns the parent's end and gives up its ownership.
func (p *childPipe) takeParentEnd() *os.File {
	f := p.parentEnd
	p.parentEnd = nil
	return f
}

func (p *childPipe) close() {
	p.closeChildEnd()
	if p.parentEnd != nil {
		_ = p.parentEnd.Close()
	}
}

// jobOutput is the output of a job's process, up to a limit.
type jobOutput struct {
	stdout, stderr, report bytes.Buffer
	over                   string // the stream that exceeded its limit
}

// exchange writes the job's text to the process and reads what it writes until it has
// ended or been killed.
func (c *childProcess) exchange(text []byte, job *sandbox.Job, output int64) *jobOutput {
	w := &jobOutput{}
	var wait sync.WaitGroup
	var mu sync.Mutex
	read := func(name string, f *os.File, to *bytes.Buffer, live *sandbox.LiveOutput, most int64) {
		wait.Go(func() {
			defer live.Close()
			n, _ := io.Copy(io.MultiWriter(to, live), io.LimitReader(f, most))
			if more, _ := io.CopyN(io.Discard, f, 1); n < most || more == 0 {
				return
			}
			mu.Lock()
			w.over = name
			mu.Unlock()
			c.kill()
		})
	}
	read("stdout", c.stdout, &w.stdout, job.LiveStdout(), output)
	read("stderr", c.stderr, &w.stderr, job.LiveStderr(), output)
	read("the context", c.report, &w.report, new(sandbox.LiveOutput), maxReport)
	wait.Go(func() {
		// This takes the kernel milliseconds, in which the interpreter starts; the code does not begin before it is
		// done.
		if c.cgroupErr = c.group.addProcess(c.process.Pid); c.cgroupErr != nil {
			c.kill()
		}
		_, _ = c.stdin.Write(text) // the process may have ended, and then does not need the rest
		_ = c.stdin.Close()
	})
	wait.Wait()
	return w
}

// mapUser sets the user of the process outside of the sandbox: an unused one if this process may do that, otherwise
// its own.
func mapUser(pid int, may bool) error {
	uid, gid := os.Geteuid(), os.Getegid()
	if may {
		uid, gid = unusedID(), unusedID()
	} else if err := writeProc(pid, "setgroups", "deny"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := writeProc(pid, "gid_map", fmt.Sprintf("%d %d 1", sandboxUserID, gid)); err != nil {
		return err
	}
	return writeProc(pid, "uid_map", fmt.Sprintf("%d %d 1", sandboxUserID, uid))
}

func writeProc(pid int, name, text string) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, name), []byte(text), 0); err != nil {
		return &setupError{"map the user (" + name + ")", err}
	}
	return nil
}

// unusedID returns a user or group id that no user has: far above the assigned ones, and different for consecutive
// jobs.
func unusedID() int {
	return 0x70000000 + int(time.Now().UnixNano()>>12&0xfffff)
}
