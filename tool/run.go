package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-run/weir/internal/guard"
)

// The default limits of a tool.
const (
	// DefaultTimeout limits one call.
	DefaultTimeout = 2 * time.Minute
	// DefaultMaxOutput is the maximum length of a stored result in bytes. It protects the
	// record; the view decides how much a model is shown.
	DefaultMaxOutput = 256 << 10
)

// returnGrace is how long a tool may take to return after its timeout, so that one that
// observes its context can report the outcome.
const returnGrace = 2 * time.Second

// ErrOutcomeUnknown marks a call that may or may not have been executed: it was sent, and
// no answer arrived. Errors of read-only tools are never marked.
var ErrOutcomeUnknown = errors.New("the outcome is not known")

// PanicError means that a tool's function panicked.
type PanicError struct {
	Value any
	// Stack is for debugging; Error does not show it.
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("the tool panicked: %v", e.Value) }

// Run calls the tool within its limits. The text, and that of an error, is made safe to
// store and to display (Clean) and truncated to MaxOutput (Cut).
//
// If ctx ends before the call has returned a text, the error wraps ctx.Err(). If the tool times out, the error says so, and
// wraps ErrOutcomeUnknown unless the tool is ReadOnly. A function that does not return by
// then is abandoned: its goroutine lives until it returns. A panic is a *PanicError.
func (t *Tool) Run(ctx context.Context, call Call) (string, error) {
	limit := t.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	limited := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	text, err := t.callInGoroutine(limited, call)
	switch {
	case err == nil:
		return Cut(Clean(text), t.OutputLimit()), nil
	case ctx.Err() != nil: // also where the function gives another error, such as the cause
		return "", fmt.Errorf("tool %s: %w", t.Name, ctx.Err())
	case limited.Err() != nil && errors.Is(err, limited.Err()):
		err = t.timeoutError(limit)
	}
	if safe := Cut(Clean(err.Error()), t.OutputLimit()); safe != err.Error() {
		err = &safeError{text: safe, err: err}
	}
	return "", err
}

// OutputLimit returns the maximum length of a stored result in bytes; negative is no limit.
func (t *Tool) OutputLimit() int {
	if t.MaxOutput == 0 {
		return DefaultMaxOutput
	}
	return t.MaxOutput
}

// timeoutError returns the error of a call that timed out.
func (t *Tool) timeoutError(limit time.Duration) error {
	if t.ReadOnly {
		return fmt.Errorf("tool %s did not answer within %v", t.Name, limit)
	}
	return fmt.Errorf("tool %s did not answer within %v; what it was asked to do may have been done: %w", t.Name, limit, ErrOutcomeUnknown)
}

// outcome is the result of a call.
type outcome struct {
	text string
	err  error
}

// callInGoroutine runs the function in its own goroutine, so that one that ignores its
// context does not block the caller.
func (t *Tool) callInGoroutine(ctx context.Context, call Call) (string, error) {
	done := make(chan outcome, 1)
	go func() {
		o := outcome{err: guard.ErrExited}
		defer func() {
			if p := recover(); p != nil {
				o = outcome{err: &PanicError{Value: guard.Recovered(p).Text, Stack: debug.Stack()}}
			}
			done <- o
		}()
		o.text, o.err = t.Call(ctx, call)
		if guard.Unreadable(o.err) {
			o.err = errors.New(guard.Text(o.err))
		}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(returnGrace)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.text, o.err
	case <-timer.C:
		return "", ctx.Err()
	}
}

// safeError is an error with a text that was made safe.
type safeError struct {
	text string
	err  error
}

// Error implements error.
func (e *safeError) Error() string { return e.text }

// Unwrap returns the error with the original text.
func (e *safeError) Unwrap() error { return e.err }
