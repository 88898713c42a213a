package builtin

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// callLimits limits the model calls of an agent with queues. The work and the queue post
// are limited separately.
type callLimits struct {
	n         *agentNode
	host      *countingHost
	stopwatch *node.Stopwatch // nil where time is not bounded
	// What was taken before.
	steps, tokens int
	elapsed       time.Duration
}

// start begins to count.
func (l *callLimits) start() (err error) {
	l.steps, l.tokens = l.host.steps, l.host.usage.Input+l.host.usage.Output
	if l.stopwatch != nil {
		l.elapsed, err = l.stopwatch.Elapsed()
	}
	return err
}

// stepsLeft returns the number of model calls that are still allowed.
func (l *callLimits) stepsLeft() int { return l.n.maxSteps() - (l.host.steps - l.steps) }

// reached returns the limit that allows no further model call, "" if there is none.
func (l *callLimits) reached() (string, error) {
	used := l.host.steps - l.steps
	tokens := l.host.usage.Input + l.host.usage.Output - l.tokens
	switch {
	case l.stepsLeft() <= 0:
		return "steps", nil
	case used == 0: // the first is always made
		return "", nil
	case l.n.MaxTokens > 0 && tokens >= l.n.MaxTokens:
		return stopTokens, nil
	case l.stopwatch == nil:
		return "", nil
	}
	worked, err := l.stopwatch.Elapsed()
	if err == nil && worked-l.elapsed >= l.n.MaxTime.Duration {
		return stopTime, nil
	}
	return "", err
}

// limitError is the error of an agent that reached a limit, before or during a turn.
type limitError struct {
	stop        string
	turnStarted bool
}

// Error implements error.
func (e *limitError) Error() string { return "the limit of " + e.stop + " is reached" }

// entriesLeft returns the number of waiting entries, including one whose turn the limit
// prevented.
func (w *agentWorker) entriesLeft() int { return w.todo.Len() + w.notStarted }

// limitError returns the failure of an agent that came to a limit; other errors it returns as
// they are.
func (w *agentWorker) limitError(err error) error {
	reached, is := errors.AsType[*limitError](err)
	if !is {
		return err
	}
	left := ""
	if n := w.entriesLeft(); n > 0 && !w.closed {
		left = fmt.Sprintf(", and %d entries wait in the queue", n)
	}
	return withHint(permanentError(engine.CodeTurnTooLong, "the work is not done after %d model calls, at the limit of %s%s", w.counter.steps-w.limits.steps, reached.stop, left),
		"raise the limit, or set atMax: stop")
}
