package runner

import (
	"time"
)

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
	t := time.NewTicker(sweepCacheEvery)
	defer t.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-t.C:
		}
		if _, err := l.store.CacheDeleteExpired(l.ctx, time.Now()); err != nil && l.ctx.Err() == nil {
			l.o.Logger.Warn("sweep the cache", "error", err)
		}
	}
}
