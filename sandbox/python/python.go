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

// The default limits of jobs.
const (
	DefaultTime    = 60 * time.Second
	DefaultMemory  = 512 << 20 // bytes
	DefaultOutput  = 1 << 20   // bytes of stdout, and of stderr
	DefaultDisk    = 64 << 20  // bytes
	DefaultThreads = 64
)

// maxReport limits the context that a job leaves, in bytes of JSON.
const maxReport = 64 << 20

// Options configure an Executor; the zero value works.
type Options struct {
	// Interpreter is the path of CPython 3.8 or later; if empty, python3 is searched in the PATH and in common
	// places.
	Interpreter string
	// Packages are folders from which code may import, besides the standard library; they are read-only. Other
	// packages that are installed for the interpreter are not visible.
	Packages []string
	// Limits are the defaults for jobs.
	Limits sandbox.Limits
	// Concurrent is the maximum number of concurrent jobs; the time that further jobs wait is not counted. 0 means
	// the number of cores.
	Concurrent int
}

// Executor runs Python. Each job has its own process and sandbox, of which nothing remains. It is safe for concurrent
// use.
type Executor struct {
	options Options
	slots   chan struct{}

	mu         sync.Mutex
	found      *installation
	failed     error     // why there is no installation
	retryAfter time.Time // when to search again after a failure
}

// New returns an executor; the interpreter is searched at its first use.
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

// limits adds the defaults.
func (e *Executor) limits(l sandbox.Limits) sandbox.Limits {
	return l.WithDefaults(e.options.Limits).WithDefaults(sandbox.Limits{
		Time: DefaultTime, Memory: DefaultMemory, Output: DefaultOutput, Disk: DefaultDisk, Processes: DefaultThreads,
	})
}

// acquireSlot waits for one of the slots of concurrent jobs.
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
