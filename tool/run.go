package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-run/weir/internal/guard"
)

// The limits of a tool that names none.
const (
	// DefaultTimeout bounds one call.
	DefaultTimeout = 2 * time.Minute
	// DefaultMaxOutput is how many bytes of a result are kept. How much of it a
	// model is shown is the view's to decide; this protects the record.
	DefaultMaxOutput = 256 << 10
)

// returnGrace is how long a tool whose time is up may take to return, so that one
// that heeds its context can say what became of the call.
const returnGrace = 2 * time.Second

// ErrOutcomeUnknown marks a call that may or may not have had its effect: it was sent,
// and no answer came. A read-only tool's errors are never marked.
var ErrOutcomeUnknown = errors.New("the outcome is not known")

// PanicError is a tool's function that panicked.
type PanicError struct {
	Value any
	// Stack is for whoever mends the tool; Error does not show it.
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("the tool panicked: %v", e.Value) }

// Run calls the tool within its limits. The text, and that of an error, is made
// safe to keep and to show (Clean) and cut to MaxOutput (Cut).
//
// When ctx ends the error wraps ctx.Err(). When the tool's own time is up the
// error says so, and wraps ErrUnknown unless the tool is ReadOnly. A function
// that does not return by then is abandoned: its goroutine lives until it does.
// A panic is a *PanicError.
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
		return Cut(Clean(text), t.maxOutput()), nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return "", fmt.Errorf("tool %s: %w", t.Name, err)
	case limited.Err() != nil && errors.Is(err, limited.Err()):
		err = t.timeoutError(limit)
	}
	if safe := Cut(Clean(err.Error()), t.maxOutput()); safe != err.Error() {
		err = &safeError{text: safe, err: err}
	}
	return "", err
}

func (t *Tool) maxOutput() int {
	if t.MaxOutput == 0 {
		return DefaultMaxOutput
	}
	return t.MaxOutput
}

// timeoutError is the error of a call whose time is up.
func (t *Tool) timeoutError(limit time.Duration) error {
	if t.ReadOnly {
		return fmt.Errorf("tool %s did not answer within %v", t.Name, limit)
	}
	return fmt.Errorf("tool %s did not answer within %v; what it was asked to do may have been done: %w", t.Name, limit, ErrOutcomeUnknown)
}

// outcome is what a call came to.
type outcome struct {
	text string
	err  error
}

// callInGoroutine runs the function on a goroutine of its own, so that one that ignores
// its context holds up nobody.
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

// safeError is an error whose text was changed to be safe.
type safeError struct {
	text string
	err  error
}

// Error implements error.
func (e *safeError) Error() string { return e.text }

// Unwrap gives the error with the text as it was.
func (e *safeError) Unwrap() error { return e.err }
