package builtin

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// limits bound the model calls of an agent with queues: those of the work, and then
// again those of what comes after it.
type limits struct {
	n     *agentNode
	host  *watchedHost
	watch *node.Stopwatch // nil where time is not bounded
	// What was taken before.
	steps, tokens int
	worked        time.Duration
}

// begin counts from here on.
func (l *limits) begin() (err error) {
	l.steps, l.tokens = l.host.steps, l.host.usage.Input+l.host.usage.Output
	if l.watch != nil {
		l.worked, err = l.watch.Worked()
	}
	return err
}

// left is how many model calls may be made.
func (l *limits) left() int { return l.n.steps() - (l.host.steps - l.steps) }

// reached is the limit that lets no model call begin, "" for none.
func (l *limits) reached() (string, error) {
	used := l.host.steps - l.steps
	tokens := l.host.usage.Input + l.host.usage.Output - l.tokens
	switch {
	case l.left() <= 0:
		return "steps", nil
	case used == 0: // the first is always made
		return "", nil
	case l.n.MaxTokens > 0 && tokens >= l.n.MaxTokens:
		return stopTokens, nil
	case l.watch == nil:
		return "", nil
	}
	worked, err := l.watch.Worked()
	if err == nil && worked-l.worked >= l.n.MaxTime.Duration {
		return stopTime, nil
	}
	return "", err
}

// limitReached ends the work of an agent, in a turn that has begun or before it.
type limitReached struct {
	stop  string
	begun bool
}

// Error implements error.
func (e *limitReached) Error() string { return "the limit of " + e.stop + " is reached" }

// left is how many entries wait, one that no turn was left for among them.
func (w *worker) left() int { return w.todo.Len() + w.unbegun }

// tooLong is the failure of an agent that came to a limit; other errors it returns as
// they are.
func (w *worker) tooLong(err error) error {
	reached, is := errors.AsType[*limitReached](err)
	if !is {
		return err
	}
	left := ""
	if n := w.left(); n > 0 && !w.closed {
		left = fmt.Sprintf(", and %d entries wait in the queue", n)
	}
	return hinted(failure(engine.CodeTurnTooLong, "the work is not done after %d model calls, at the limit of %s%s", w.watch.steps-w.limits.steps, reached.stop, left),
		"raise the limit, or set atMax: stop")
}
