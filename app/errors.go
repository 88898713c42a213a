package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// UsageError is a mistake of the caller: an option, an input or a configuration that
// cannot be used as it is.
type UsageError struct{ Err error }

// Error returns the cause's.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// Printable removes control characters other than newline and tab, and characters that
// change the direction of text. Texts of models, tools and servers may contain them; in a
// terminal or a page they could hide or fake what is shown.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r < ' ', r == 0x7f, r >= 0x80 && r < 0xa0: // C0, DEL, C1
			return -1
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional controls
			return -1
		}
		return r
	}, s)
}

// ErrorCode returns the stable code of an error, CodeFailed for one without a code.
func ErrorCode(err error) string {
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e.Code
	}
	if _, ok := errors.AsType[*flow.Invalid](err); ok {
		return engine.CodeFlowInvalid
	}
	for _, c := range []struct {
		err  error
		code string
	}{
		{store.ErrNotFound, engine.CodeNotFound},
		{store.ErrOwned, engine.CodeRunOwned},
		{store.ErrFenced, engine.CodeRunOwned},
		{runner.ErrAnswer, engine.CodeAnswer},
		{runner.ErrNoInterrupt, engine.CodeInterruptUnknown},
		{runner.ErrPoisoned, engine.CodeRunPoisoned},
		{runner.ErrStopped, engine.CodeRunStopped},
		{runner.ErrSteeringLate, engine.CodeSteerLate},
		{runner.ErrStatus, engine.CodeStatusConflict},
		{runner.ErrNotStarted, engine.CodeStatusConflict},
		{runner.ErrDependenciesChanged, engine.CodeDependenciesChanged},
		{store.ErrBusy, engine.CodeSessionBusy},
		{store.ErrSessionAdvanced, engine.CodeSessionMoved},
		{store.ErrNewerVersion, engine.CodeStoreNewer},
		{store.ErrNotWeir, engine.CodeStoreForeign},
		{store.ErrCorrupt, engine.CodeStoreCorrupt},
		{codec.ErrMissingKey, engine.CodeStoreKey},
		{store.ErrFull, engine.CodeStoreFull},
		{store.ErrBackup, engine.CodeStoreBackup},
		{store.ErrUnsupported, engine.CodeStoreUnsupported},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return engine.CodeUsage
	}
	return engine.CodeFailed
}
