package main

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

// The exit codes that scripts build on. A process that a signal ended has 128
// and the signal's number: 130 for Ctrl-C, 143 for SIGTERM.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitPaused    = 3
	exitCancelled = 4
)

// exitError ends the command with a code; what there was to say has been said.
type exitError struct{ code int }

// Error is for the unlikely reader.
func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// usageError is a command line that cannot be executed as it is.
type usageError = app.UsageError

func usagef(format string, args ...any) error {
	return &usageError{Err: fmt.Errorf(format, args...)}
}

// exitCode is what a command ends with that failed with err.
func exitCode(ctx context.Context, err error) int {
	if s, ok := errors.AsType[*errSignal](context.Cause(ctx)); ok {
		return s.code()
	}
	if e, ok := errors.AsType[*engine.Error](err); ok && (e.Code == engine.CodeInput || e.Code == engine.CodeFork) {
		return exitUsage
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*flow.Invalid](err); ok {
		return exitUsage
	}
	for _, e := range []error{store.ErrNotFound, runner.ErrAnswer, runner.ErrNoInterrupt, runner.ErrStatus, runner.ErrNotStarted, store.ErrExists} {
		if errors.Is(err, e) {
			return exitUsage
		}
	}
	return exitFailed
}

// hint says what to do about an error, "" where the error says it itself.
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
	if e, ok := errors.AsType[*runner.DependenciesChanged](err); ok {
		return e.Hint()
	}
	if e, ok := errors.AsType[*runner.Poisoned](err); ok {
		return e.Hint()
	}
	if e, ok := errors.AsType[*runner.Owned](err); ok {
		return e.Hint()
	}
	if _, ok := errors.AsType[*sessionNotFound](err); ok {
		return "`weir sessions` lists the sessions; --db or WEIR_DB says in which database"
	}
	if _, ok := errors.AsType[*memoryNotFound](err); ok {
		return "`weir memory list` lists what is remembered; --db or WEIR_DB says in which database"
	}
	if _, ok := errors.AsType[*codeNotFound](err); ok {
		return "`weir code list` lists what was learned; --db or WEIR_DB says in which database"
	}
	switch {
	case errors.Is(err, store.ErrOwned):
		return "wait for it to end, watch it with `weir show`, or stop it with `weir cancel`"
	case errors.Is(err, store.ErrBusy):
		return "send it again when the round has ended, or have it wait or fork with --busy"
	case errors.Is(err, store.ErrSessionAdvanced):
		return "say it again in the session, or go on from before it with `weir sessions fork`"
	case errors.Is(err, store.ErrNotFound):
		return "`weir runs` lists the runs; --db or WEIR_DB says in which database"
	case errors.Is(err, store.ErrExists):
		return "give another with --id, or none"
	case errors.Is(err, runner.ErrNoInterrupt):
		return "`weir show RUN` lists what the run waits for"
	case errors.Is(err, runner.ErrDependenciesChanged):
		return "use what it was started with, continue it under what there is now with `weir resume RUN --accept-changes`, or from some point with `weir fork RUN --from NODE`"
	case errors.Is(err, store.ErrNewerVersion):
		return "use the version of Weir that wrote the database, or another one with --db"
	case errors.Is(err, store.ErrCorrupt):
		return "restore the database from a copy; the file was not changed"
	case errors.Is(err, store.ErrFull):
		return "make room and `weir resume` the run: what was acknowledged is kept"
	}
	return ""
}

// printError tells of an error that ended a command, in the form that was asked
// for, and returns the exit code.
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
