package trigger_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir/server/trigger"
	"github.com/weir-run/weir/store/memory"
)

// running is what a test of overlapping runs sees of them.
type running struct {
	now                       time.Time
	started, ended, cancelled []string
	runner                    *trigger.Runner
}

func newRunning(t *testing.T, overlap string) *running {
	t.Helper()
	x := &running{now: begin()}
	x.runner = trigger.New(trigger.Options{
		Store: memory.NewWithClock(func() time.Time { return x.now }), Key: []byte("key"), Clock: func() time.Time { return x.now },
		Start: func(_ context.Context, _ *trigger.Trigger, f trigger.Firing) (string, error) {
			if !slices.Contains(x.started, f.Run) {
				x.started = append(x.started, f.Run)
			}
			return "", nil
		},
		Ended: func(_ context.Context, run string) (bool, error) { return slices.Contains(x.ended, run), nil },
		Cancel: func(_ context.Context, _ *trigger.Trigger, run string) error {
			x.cancelled, x.ended = append(x.cancelled, run), append(x.ended, run)
			return nil
		},
	})
	add(t, x.runner, trigger.Trigger{ID: "a", Missed: "all", Overlap: overlap})
	return x
}

func (x *running) step(t *testing.T, later time.Duration) {
	t.Helper()
	x.now = x.now.Add(later)
	if err := x.runner.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// With the overlap queue each time has its run, one after another, also if no server ran for a
// while; a pause empties the queue.
func TestQueuedTimesStartOneAfterAnother(t *testing.T) {
	t.Parallel()
	x := newRunning(t, "queue")
	x.step(t, 3*time.Minute)
	for n := 1; n <= 3; n++ {
		if len(x.started) != n {
			t.Fatalf("%d runs after %d have ended", len(x.started), n-1)
		}
		x.step(t, 6*time.Second) // the run has not ended
		if len(x.started) != n {
			t.Fatalf("a run was started before the one before had ended")
		}
		x.ended = append(x.ended, x.started[n-1])
		x.step(t, 6*time.Second)
	}
	x.step(t, 200*time.Minute)
	y, err := x.runner.Get(t.Context(), "a")
	if err != nil || len(y.Queued) != 99 && len(y.Queued) != 100 {
		t.Fatalf("%d times are queued, %v", len(y.Queued), err)
	}
	y.Paused = true
	if err := x.runner.Put(t.Context(), y); err != nil || y.Queued != nil {
		t.Errorf("%d times are queued in a pause, %v", len(y.Queued), err)
	}
}

// With the overlap cancel the newest run is the only one that continues.
func TestARunIsCancelledByTheNext(t *testing.T) {
	t.Parallel()
	x := newRunning(t, "cancel")
	x.step(t, 4*time.Minute)
	if want := x.started[:len(x.started)-1]; len(x.started) != 4 || !slices.Equal(x.cancelled, want) {
		t.Errorf("of %v were cancelled %v", x.started, x.cancelled)
	}
	x.ended = slices.Clone(x.started)
	before := len(x.cancelled)
	x.step(t, time.Minute)
	if len(x.cancelled) != before || len(x.started) != 5 {
		t.Errorf("a run that had ended was cancelled: %v", x.cancelled)
	}
}

func TestRequestsAreNotQueued(t *testing.T) {
	t.Parallel()
	x := newRunning(t, "queue")
	err := x.runner.Put(t.Context(), &trigger.Trigger{ID: "b", Kind: trigger.Webhook, Flow: "f", Overlap: "queue", Inputs: []byte("{}")})
	if err == nil {
		t.Error("a webhook with the overlap queue was accepted")
	}
}
