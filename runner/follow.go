package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/store"
)

// Follow yields the items of a run and its child runs, whichever process executes them, after the item with the
// cursor ("" for all), until the run or ctx ends. If another process executes the run, it reads the journals and the live
// text after each change that the store reports, and at the interval Options.Poll. Live text comes from another process if
// the store has the capability LiveText, up to 4 times a second for each run.
func (l *Local) Follow(ctx context.Context, run, cursor string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r, err := l.newReader(ctx, run, cursor, yield)
		if err != nil {
			yield(Item{}, err)
			return
		}
		if _, err := l.store.Run(ctx, run); err != nil {
			yield(Item{}, fmt.Errorf("run %s: %w", run, err))
			return
		}
		var w journalWatch
		defer w.stopWatching()
		for r.readOnce(run) && !r.at.runs[0].ended && r.pause(&w, nil) {
		}
	}
}

// newReader returns a reader that begins after the item with the cursor, at the beginning of the run for "".
func (l *Local) newReader(ctx context.Context, run, cursor string, yield func(Item, error) bool) (*reader, error) {
	r := &reader{ctx: ctx, l: l, yield: yield, poll: l.o.Poll, at: position{runs: []runPosition{{run: run}}}}
	if cursor == "" {
		return r, nil
	}
	p, err := parseCursor(run, cursor)
	if err != nil {
		return nil, err
	}
	r.at, r.liveBefore = *p, p.sawLive
	return r, nil
}

// journalWatch watches the journals of a tree of runs.
type journalWatch struct {
	runs    atomic.Pointer[map[string]bool] // those of the tree; the watcher reads them on another goroutine
	changed <-chan struct{}
	stop    func()          // nil before the first pause
	written <-chan struct{} // parts of live text
}

// setRuns sets the runs to watch.
func (w *journalWatch) setRuns(list []runPosition) {
	runs := make(map[string]bool, len(list))
	for i := range list {
		runs[list[i].run] = true
	}
	w.runs.Store(&runs)
}

func (w *journalWatch) stopWatching() {
	if w.stop != nil {
		w.stop()
	}
}

// readOnce yields the items of a run so far and, if this process executes it, those of that execution until its end.
func (r *reader) readOnce(run string) bool {
	if x := r.l.Held(run); x != nil {
		return r.resume(x) && r.follow()
	}
	return r.readElsewhere()
}

// pause waits until the journals are read again, or done is closed.
func (r *reader) pause(w *journalWatch, done <-chan struct{}) bool {
	w.setRuns(r.at.runs)
	if w.stop == nil {
		isOfTree := func(run string) bool { return (*w.runs.Load())[run] }
		changed, stop := r.l.watch(store.TopicCommit, isOfTree)
		written, stopWritten := r.l.watch(store.TopicLiveText, isOfTree)
		w.changed, w.written = changed, written
		w.stop = func() {
			stop()
			stopWritten()
		}
	}
	t := time.NewTimer(r.poll)
	defer t.Stop()
	select {
	case <-w.changed:
		return true
	case <-w.written:
		return true
	case <-done:
		return true
	case <-t.C:
		return true
	case <-r.ctx.Done():
		r.yield(Item{}, r.ctx.Err())
		return false
	}
}

// ReadJournals yields the events in the journals of a run and its child runs, after the item with the cursor or, if
// that is "", after the run's event number `after`.
func (l *Local) ReadJournals(ctx context.Context, run, cursor string, after int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if r := l.newJournalReader(ctx, run, cursor, after, yield); r != nil && r.yieldGap() {
			r.replay(&subscription{})
		}
	}
}

// unwatchedPollInterval is how often FollowJournals reads if the store does not report commits.
const unwatchedPollInterval = 50 * time.Millisecond

// FollowJournals yields what ReadJournals yields, and the events and live text that follow, until done is closed or ctx ends: after done
// it reads once more. It reads after each commit that the store reports, and at the interval Options.Poll; every 50 ms
// if the store reports none.
func (l *Local) FollowJournals(ctx context.Context, run, cursor string, after int64, done <-chan struct{}) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r := l.newJournalReader(ctx, run, cursor, after, yield)
		if r == nil {
			return
		}
		r.poll = l.o.Poll
		if l.o.Store.Capabilities().Watch == nil {
			r.poll = min(r.poll, unwatchedPollInterval)
		}
		var w journalWatch
		defer w.stopWatching()
		for last := false; r.readElsewhere() && !last; {
			select {
			case <-done:
				last = true
			default:
				if !r.pause(&w, done) {
					return
				}
			}
		}
	}
}

// newJournalReader returns a reader of ReadJournals; nil after it has yielded an error or the consumer has stopped.
func (l *Local) newJournalReader(ctx context.Context, run, cursor string, after int64, yield func(Item, error) bool) *reader {
	r, err := l.newReader(ctx, run, cursor, yield)
	if err != nil {
		yield(Item{}, err)
		return nil
	}
	if cursor == "" && after > 0 {
		r.skipping = true
		if !r.yieldJournal(run, after, false) || !r.replay(&subscription{lastEvents: map[string]int64{run: after}}) {
			return nil
		}
		r.skipping = false
	}
	return r
}

// Cursor returns the position after everything that a run and its child runs have done so far.
func (l *Local) Cursor(ctx context.Context, run string) (string, error) {
	var failed error
	r := &reader{
		ctx: ctx, l: l, skipping: true, at: position{runs: []runPosition{{run: run}}},
		yield: func(_ Item, err error) bool {
			failed = err
			return err == nil
		},
	}
	r.replay(&subscription{})
	if errors.Is(failed, store.ErrNotFound) {
		failed = fmt.Errorf("run %s: %w", run, failed)
	}
	return r.at.String(), failed
}
