package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// ErrOtherRunner: the run belongs to another runner than that of this process.
var ErrOtherRunner = errors.New("another runner executes the run")

// OtherRunner is an ErrOtherRunner with the names.
type OtherRunner struct {
	Run string
	// Runner is that of the run and Here that of this process; "" is the local one.
	Runner, Here string
}

// Error names both.
func (e *OtherRunner) Error() string {
	return fmt.Sprintf("run %s belongs to the runner %s, and this process works for the runner %s", e.Run, cmp.Or(e.Runner, localRunner), cmp.Or(e.Here, localRunner))
}

// localRunner is what configuration calls the runner whose name in journals is "".
const localRunner = "local"

// Unwrap returns ErrOtherRunner.
func (e *OtherRunner) Unwrap() error { return ErrOtherRunner }

// Hint says what to do.
func (e *OtherRunner) Hint() string {
	return fmt.Sprintf("set `runner: %s` in the configuration; show, verify, diff and fork work with every configuration", cmp.Or(e.Runner, localRunner))
}

// RunnerOf returns the name of the runner to which a run belongs: "" is the local one, also for a run that
// has not started, or whose start cannot be read.
func (l *Local) RunnerOf(ctx context.Context, id string) (string, error) {
	start, err := l.EffectiveStart(ctx, id)
	if err != nil { // also a damaged run can be deleted
		return "", ctx.Err()
	}
	return start.Runner, nil
}

// CheckRunner returns an *OtherRunner error for a run that belongs to another runner. A run that has not started belongs to
// none.
func (l *Local) CheckRunner(ctx context.Context, id string) error {
	start, err := l.EffectiveStart(ctx, id)
	if err != nil || start.Runner == l.o.Runner {
		return nil //nolint:nilerr // the process that continues the run finds the same error
	}
	return &OtherRunner{Run: id, Runner: start.Runner, Here: l.o.Runner}
}
