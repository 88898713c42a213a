// Package python runs Python code with the system's CPython 3, isolated from the
// machine: in its own namespaces with a private file system, under Landlock and
// seccomp, with limits, and in a cgroup where one can be created.
//
// It runs nothing if a required part is missing; Probe and Examine name the part and
// the remedy. It must not know what the code is for.
package python

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/weir-run/weir/sandbox"
)

// What a job gets where neither it nor the options say anything.
const (
	DefaultTime    = 60 * time.Second
	DefaultMemory  = 512 << 20 // bytes
	DefaultOutput  = 1 << 20   // bytes of stdout, and of stderr
	DefaultDisk    = 64 << 20  // bytes
	DefaultThreads = 64
)

// maxReport bounds what a job may leave in the context, in bytes of JSON.
const maxReport = 64 << 20

// Options are what New may be told; the zero value works.
type Options struct {
	// Interpreter is the path of CPython 3.8 or later; empty looks for python3 in
	// the PATH and in the usual places.
	Interpreter string
	// Packages are folders that code may import from, beside the standard library;
	// they are read-only. Packages that are installed for the interpreter are not
	// seen otherwise.
	Packages []string
	// Limits are those of jobs that say nothing.
	Limits sandbox.Limits
	// Concurrent is how many jobs run at once; others wait, and the wait is not
	// counted as their time. 0 is the number of cores.
	Concurrent int
}

// Executor runs Python. Each job has a process and a sandbox of its own; nothing
// is left of either. It may be used by many goroutines at once.
type Executor struct {
	options Options
	slots   chan struct{}

	mu         sync.Mutex
	found      *installation
	failed     error     // why there is no installation
	retryAfter time.Time // when to look again after a failure
}

// New returns an executor; nothing is looked for before it is used.
func New(o Options) *Executor {
	if o.Concurrent <= 0 {
		o.Concurrent = runtime.GOMAXPROCS(0)
	}
	return &Executor{options: o, slots: make(chan struct{}, o.Concurrent)}
}

// Name is "python".
func (e *Executor) Name() string { return "python" }

// Language is "python".
func (e *Executor) Language() string { return "python" }

// limits fills in what the job leaves open.
func (e *Executor) limits(l sandbox.Limits) sandbox.Limits {
	return l.WithDefaults(e.options.Limits).WithDefaults(sandbox.Limits{
		Time: DefaultTime, Memory: DefaultMemory, Output: DefaultOutput, Disk: DefaultDisk, Processes: DefaultThreads,
	})
}

// acquireSlot waits for a place among the jobs that run at once.
func (e *Executor) acquireSlot(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, cancelled(err)
	}
	select {
	case e.slots <- struct{}{}:
		return func() { <-e.slots }, nil
	case <-ctx.Done():
		return nil, cancelled(ctx.Err())
	}
}
