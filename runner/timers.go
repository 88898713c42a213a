package runner

import (
	"context"
	"time"
)

// TimerStore is a Store that knows which runs wait for a time.
type TimerStore interface {
	// Due lists runs that nobody owns and whose earliest timer is due at before,
	// the longest due first.
	Due(ctx context.Context, before time.Time, limit int) ([]string, error)
	// NextDue is the earliest timer after a time among runs that nobody owns;
	// zero for none.
	NextDue(ctx context.Context, after time.Time) (time.Time, error)
}

// CacheSweeper is a Store that keeps a cache whose entries expire.
type CacheSweeper interface {
	// CacheDeleteExpired forgets what has expired at now and says how much that was.
	CacheDeleteExpired(ctx context.Context, now time.Time) (int64, error)
}

const (
	// sweepCacheEvery is how often expired cache entries are removed.
	sweepCacheEvery = time.Minute
	// maxRefusalPause is how long a run that cannot be continued is left alone at most.
	maxRefusalPause = time.Minute
)

// recover continues what processes have left, until the Local closes.
func (l *Local) recover() {
	defer l.loops.Done()
	clock := time.NewTimer(0)
	defer clock.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-clock.C:
		}
		pause, err := l.sweeper.sweep(l.ctx, time.Now())
		if err != nil {
			l.sweeper.warn("list unfinished runs", "", err)
		}
		clock.Reset(pause)
	}
}

// sweepCache removes what has expired from the cache, now and then.
func (l *Local) sweepCache() {
	defer l.loops.Done()
	s, ok := l.o.Store.(CacheSweeper)
	if !ok {
		return
	}
	t := time.NewTicker(sweepCacheEvery)
	defer t.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-t.C:
		}
		if _, err := s.CacheDeleteExpired(l.ctx, time.Now()); err != nil && l.ctx.Err() == nil {
			l.o.Logger.Warn("sweep the cache", "error", err)
		}
	}
}
