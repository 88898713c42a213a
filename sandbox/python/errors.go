package python

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// cancelled returns the error of a job whose context ended.
func cancelled(err error) error {
	return &sandbox.Error{Code: engine.CodeSandboxFailed, Message: "the job was given up: " + err.Error(), Retry: true}
}

// failed returns the error of a job that could not be run, for a reason other than its code.
func failed(op string, err error) error {
	return &sandbox.Error{Code: engine.CodeSandboxFailed, Message: fmt.Sprintf("%s: %v", op, err), Retry: true}
}

// unavailable returns the error of an executor that cannot isolate code on this machine.
func unavailable(what, hint string) error {
	return &sandbox.Error{
		Code: engine.CodeSandboxUnavailable, Message: "Python code cannot be isolated here, so it is not run: " + what, Hint: hint,
	}
}
