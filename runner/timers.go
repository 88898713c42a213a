package runner

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/store"
)

// Timers is a Store that knows which runs wait for a time.
type Timers interface {
	// Due lists runs that nobody owns and whose earliest timer is due at before,
	// the longest due first.
	Due(ctx context.Context, before time.Time, limit int) ([]string, error)
	// NextDue is the earliest timer after a time among runs that nobody owns;
	// zero for none.
	NextDue(ctx context.Context, after time.Time) (time.Time, error)
}

// Sweeper is a Store that keeps a cache whose entries expire.
type Sweeper interface {
	// CacheSweep forgets what has expired at now and says how much that was.
	CacheSweep(ctx context.Context, now time.Time) (int64, error)
}

const (
	// longestNap is how long a timer may go unnoticed that another process left
	// behind while this one slept.
	longestNap = 5 * time.Second
	// sweepEvery is how often expired cache entries are removed.
	sweepEvery = time.Minute
	// refusedFor is how long a run that could not be resumed is left alone.
	refusedFor = time.Minute
	// dueBatch is how many due runs are picked up at a time.
	dueBatch = 100
)

// tender does by the clock what no run held here asks for.
type tender struct {
	l       *Local
	timers  Timers
	sweeper Sweeper
	refused map[string]time.Time // runs that could not be resumed, until when
	swept   time.Time
}

// tend fires the timers of runs that no process holds, and removes what has
// expired, until the Local closes.
func (l *Local) tend() {
	defer l.loops.Done()
	t := tender{l: l, swept: time.Now()}
	if l.o.Program != nil {
		t.timers, _ = l.o.Store.(Timers)
	}
	t.sweeper, _ = l.o.Store.(Sweeper)
	if t.timers == nil && t.sweeper == nil {
		return
	}
	clock := time.NewTimer(0)
	defer clock.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-clock.C:
		}
		nap := sweepEvery
		if t.timers != nil {
			nap = t.fire(time.Now())
		}
		t.sweep(time.Now())
		clock.Reset(nap)
	}
}

// fire resumes the runs that are due and returns how long there is nothing to
// do. A run takes no memory before.
func (t *tender) fire(now time.Time) time.Duration {
	ids, err := t.timers.Due(t.l.ctx, now, dueBatch+len(t.refused))
	if err != nil {
		t.warn("list due runs", "", err)
		return longestNap
	}
	refused := make(map[string]time.Time)
	picked := 0
	for _, id := range ids {
		until, before := t.refused[id]
		if before && now.Before(until) {
			refused[id] = until
			continue
		}
		if err := t.pickUp(id); err != nil {
			t.warn("resume due run", id, err)
			refused[id] = now.Add(refusedFor)
			continue
		}
		picked++
	}
	t.refused = refused
	if picked >= dueBatch {
		return 0
	}
	next, err := t.timers.NextDue(t.l.ctx, now)
	switch {
	case err != nil:
		t.warn("find the next timer", "", err)
	case !next.IsZero():
		return min(max(time.Until(next), 0), longestNap)
	}
	return longestNap
}

// pickUp drives a run here, unless somebody was faster.
func (t *tender) pickUp(id string) error {
	p, err := t.l.o.Program(t.l.ctx, id)
	if err == nil {
		_, err = t.l.Resume(t.l.ctx, p, id)
	}
	if errors.Is(err, store.ErrOwned) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// sweep removes what has expired, now and then.
func (t *tender) sweep(now time.Time) {
	if t.sweeper == nil || now.Sub(t.swept) < sweepEvery {
		return
	}
	t.swept = now
	if _, err := t.sweeper.CacheSweep(t.l.ctx, now); err != nil {
		t.warn("sweep the cache", "", err)
	}
}

func (t *tender) warn(doing, run string, err error) {
	if t.l.ctx.Err() == nil {
		t.l.o.Logger.Warn("tend", "doing", doing, "run", run, "error", err)
	}
}
