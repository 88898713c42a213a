package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// The exit codes, on which scripts rely. A process that a signal ended exits with 128 plus
// the number of the signal: 130 for Ctrl-C, 143 for SIGTERM.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitPaused    = 3
	exitCancelled = 4
)

// exitError ends the command with a code. The command has printed why.
type exitError struct{ code int }

// Error implements error. It is not printed.
func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// usageError is a command line that cannot be executed as it is.
type usageError = app.UsageError

func usagef(format string, args ...any) error {
	return &usageError{Err: fmt.Errorf(format, args...)}
}

// exitCode returns the exit code of a command that failed with err.
func exitCode(ctx context.Context, err error) int {
	if s, ok := errors.AsType[*errSignal](context.Cause(ctx)); ok {
		return s.code()
	}
	if e, ok := errors.AsType[*engine.Error](err); ok && (e.Code == engine.CodeInput || e.Code == engine.CodeFork || e.Code == engine.CodeRequestReused) {
		return exitUsage
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*flow.Invalid](err); ok {
		return exitUsage
	}
	for _, e := range []error{store.ErrNotFound, runner.ErrAnswer, runner.ErrNoInterrupt, runner.ErrStatus, runner.ErrNotStarted, runner.ErrSteeringLate, store.ErrExists} {
		if errors.Is(err, e) {
			return exitUsage
		}
	}
	return exitFailed
}

// hinted is an error that knows what to do about it.
type hinted interface {
	error
	Hint() string
}

// notFoundError is an error about an object that does not exist, other than a run.
type notFoundError struct {
	err error
	// list is the command that lists the objects, and what names them: "memory list", "items".
	list, what string
}

// Error returns the text of the cause.
func (e *notFoundError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *notFoundError) Unwrap() error { return e.err }

// Hint implements hinted.
func (e *notFoundError) Hint() string {
	return fmt.Sprintf("`weir %s` lists the %s; --db or WEIR_DB selects the database", e.list, e.what)
}

func sessionNotFound(err error) error { return &notFoundError{err, "sessions", "sessions"} }

// hint says what to do about an error, "" if the error says it itself. Where the error has no
// hint of its own, the remedy is that of its code in the table of error codes.
func hint(err error) string {
	if e, ok := errors.AsType[*engine.Error](err); ok {
		if e.Code == engine.CodeInput && e.Hint == "" {
			return "inputs are given with -i NAME=VALUE or --inputs FILE"
		}
		return e.Hint
	}
	if e, ok := errors.AsType[*runner.Refusal](err); ok {
		return e.Instead
	}
	if e, ok := errors.AsType[hinted](err); ok {
		return e.Hint()
	}
	if errors.Is(err, store.ErrExists) {
		return "give another with --id, or none"
	}
	switch code := app.ErrorCode(err); code {
	case engine.CodeFailed, engine.CodeUsage, engine.CodeFlowInvalid: // their messages say it
		return ""
	default:
		return asHint(engine.Remedy(code))
	}
}

// asHint returns the sentence of a table in the form of a hint.
func asHint(sentence string) string {
	s := strings.TrimSuffix(sentence, ".")
	return strings.ToLower(s[:min(1, len(s))]) + s[min(1, len(s)):]
}

// printError prints an error that ended a command, as text or JSON, and returns the exit
// code.
func (p *cli) printError(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	if p.json {
		r := app.RunReportOf(weir.Result{})
		r.Status, r.Absent = "invalid", nil
		r.Error = &engine.Error{Code: app.ErrorCode(err), Message: err.Error(), Hint: hint(err)}
		writeJSON(p.out, r)
	}
	msg := strings.TrimRight(err.Error(), "\n")
	if !hasPlace(err) {
		msg = "weir: " + msg
	}
	fmt.Fprintln(p.err, msg)
	if h := hint(err); h != "" {
		fmt.Fprintln(p.err, "  "+h)
	}
	return code
}

// hasPlace reports whether an error's lines begin with their place in a file.
func hasPlace(err error) bool {
	_, inFlow := errors.AsType[*flow.Invalid](err)
	_, inConfig := errors.AsType[*config.Invalid](err)
	return inFlow || inConfig
}
