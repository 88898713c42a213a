package tool

import (
	"errors"
	"fmt"
)

// OnUnknown says what happens to a call with an unknown outcome.
type OnUnknown string

// The policies; "" is the default of the tool.
const (
	// UnknownRetry makes the call again with the same key.
	UnknownRetry OnUnknown = "retry"
	// UnknownAsk asks a person what happened.
	UnknownAsk OnUnknown = "ask"
	// UnknownFail fails the node that makes the call.
	UnknownFail OnUnknown = "fail"
)

func (o OnUnknown) check() error {
	switch o {
	case "", UnknownRetry, UnknownAsk, UnknownFail:
		return nil
	}
	return fmt.Errorf("onUnknown is %q; expected %s, %s or %s", o, UnknownRetry, UnknownAsk, UnknownFail)
}

// UnknownPolicy returns the policy of the tool: its OnUnknown, or else the default.
func (t *Tool) UnknownPolicy() OnUnknown {
	switch {
	case t.OnUnknown != "":
		return t.OnUnknown
	case t.IsRepeatable():
		return UnknownRetry
	}
	return UnknownAsk
}

// IsRepeatable reports whether a call may be made twice under one key without further
// effect.
func (t *Tool) IsRepeatable() bool { return t.ReadOnly || t.Idempotent }

// ErrNotMade marks a call that was certainly not executed, for example because the
// arguments are invalid or no connection could be made.
var ErrNotMade = errors.New("the call was not made")

// NotMade returns err marked with ErrNotMade. Its text is that of err.
func NotMade(err error) error { return &notMadeError{err} }

type notMadeError struct{ err error }

// Error implements error.
func (e *notMadeError) Error() string { return e.err.Error() }

// Unwrap returns the error and the mark.
func (e *notMadeError) Unwrap() []error { return []error{e.err, ErrNotMade} }
