package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/store"
)

// watchedPollInterval is the pause before the driver reads a round of another process again where the store reports
// its commits: reports are hints, and one may be lost.
const watchedPollInterval = 250 * time.Millisecond

// runWatch wakes a goroutine after the commits of one run at a time, where the store reports them.
type runWatch struct {
	m       *Manager
	run     atomic.Pointer[string] // the watcher reads it on another goroutine
	changed <-chan struct{}        // nil before the first run
	stop    func()
}

// set watches a run in place of the one before; "" for none. A run is set before it is read, so that no later commit is
// missed.
func (w *runWatch) set(run string) {
	w.run.Store(&run)
	if run == "" || w.changed != nil || w.m.watcher == nil {
		return
	}
	w.changed, w.stop = w.m.watcher.Watch(store.TopicCommit, func(id string) bool { return *w.run.Load() == id })
}

// watches reports whether commits of a run wake the goroutine.
func (w *runWatch) watches() bool { return w.changed != nil && *w.run.Load() != "" }

func (w *runWatch) close() {
	if w.stop != nil {
		w.stop()
	}
}

// wait waits for a commit of the run, for wake, or for pause; for longer than that if the store reports commits.
func (w *runWatch) wait(ctx context.Context, wake <-chan struct{}, pause time.Duration) {
	if w.watches() {
		pause = max(pause, w.m.poll)
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-w.changed:
	case <-wake:
	case <-t.C:
	case <-ctx.Done():
	}
}
