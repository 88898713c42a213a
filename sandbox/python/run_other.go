//go:build !linux || !(amd64 || arm64)

package python

import (
	"context"
	"runtime"

	"github.com/weir-run/weir/sandbox"
)

// Run fails: code cannot be isolated on this system.
func (e *Executor) Run(context.Context, *sandbox.Job) (*sandbox.Result, error) {
	return nil, errUnsupportedSystem()
}

// Check fails too.
func (e *Executor) Check(context.Context, *sandbox.Job) ([]sandbox.Problem, error) {
	return nil, errUnsupportedSystem()
}

// Probe returns the error that code is isolated on Linux only.
func (e *Executor) Probe(context.Context) error { return errUnsupportedSystem() }

// Examine returns the same error as a fact.
func (e *Executor) Examine(context.Context) []Fact {
	return []Fact{{Subject: "isolation", State: StateBad, Detail: errUnsupportedSystem().Error(), Remedy: "run Weir on Linux, or use the executor starlark or e2b"}}
}

func errUnsupportedSystem() error {
	return unavailable("that takes Linux on amd64 or arm64, and this is "+runtime.GOOS+" on "+runtime.GOARCH,
		"run Weir on Linux, in a container or a virtual machine, or use the executor starlark or e2b")
}
