package trigger

import (
	"context"
	"time"
)

// What happens if the run before has not ended, besides "allow".
const (
	overlapSkip   = "skip"
	overlapQueue  = "queue"
	overlapCancel = "cancel"
)

// queuePoll is how often a schedule looks whether the run has ended for which others wait.
const queuePoll = 5 * time.Second

// fireAll fires all times.
func (r *Runner) fireAll(ctx context.Context, t *Trigger, times []time.Time) error {
	for _, at := range times {
		if err := r.fire(ctx, t, r.firingAt(t, at)); err != nil {
			return err
		}
	}
	return nil
}

// fireQueued adds times to the queue of a schedule and fires the first if the run before has
// ended. It returns when the schedule is due again, which has its next time at next.
func (r *Runner) fireQueued(ctx context.Context, t *Trigger, times []time.Time, next time.Time) (due time.Time, err error) {
	t.Queued = append(t.Queued, times...)
	if n := len(t.Queued); n > maxMissed {
		t.Queued = t.Queued[n-maxMissed:]
	}
	for len(t.Queued) > 0 {
		f := r.firingAt(t, t.Queued[0])
		if t.LastRun != "" && t.LastRun != f.Run {
			ended, err := r.o.Ended(ctx, t.LastRun)
			if err != nil {
				return due, err
			}
			if !ended {
				break
			}
		}
		if err := r.fire(ctx, t, f); err != nil {
			return due, err
		}
		t.Queued = t.Queued[1:]
	}
	due = next
	if look := r.o.Clock().Add(queuePoll); len(t.Queued) > 0 && (due.IsZero() || look.Before(due)) {
		due = look
	}
	return due, nil
}

// firingAt returns the firing of a schedule at a time.
func (r *Runner) firingAt(t *Trigger, at time.Time) Firing {
	return Firing{Run: r.runID(t, at.UTC().Format(time.RFC3339))}
}
