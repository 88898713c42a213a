package llm

import (
	"slices"
	"time"
)

// enqueue puts a call behind those of its run that wait for the same.
func (l *Limits) enqueue(run string, w *waitingCall) {
	i := slices.IndexFunc(l.runQueues, func(ln *runQueue) bool { return ln.run == run })
	if i < 0 {
		i = len(l.runQueues)
		l.runQueues = append(l.runQueues, &runQueue{run: run})
	}
	ln := l.runQueues[i]
	j := slices.IndexFunc(ln.limiterQueues, func(q *limiterQueue) bool { return slices.Equal(q.limiters, w.limiters) })
	if j < 0 {
		j = len(ln.limiterQueues)
		ln.limiterQueues = append(ln.limiterQueues, &limiterQueue{limiters: w.limiters})
	}
	ln.limiterQueues[j].waiting = append(ln.limiterQueues[j].waiting, w)
}

// dequeue takes a call that waits out of its line.
func (l *Limits) dequeue(run string, w *waitingCall) {
	for _, ln := range l.runQueues {
		if ln.run != run {
			continue
		}
		for _, q := range ln.limiterQueues {
			q.waiting = slices.DeleteFunc(q.waiting, func(other *waitingCall) bool { return other == w })
		}
		l.removeEmpty(ln)
		return
	}
}

// removeEmpty drops what is empty.
func (l *Limits) removeEmpty(ln *runQueue) {
	ln.limiterQueues = slices.DeleteFunc(ln.limiterQueues, func(q *limiterQueue) bool { return len(q.waiting) == 0 })
	if len(ln.limiterQueues) == 0 {
		l.runQueues = slices.DeleteFunc(l.runQueues, func(other *runQueue) bool { return other == ln })
	}
}

// dispatch lets through what may begin now and has itself called again when
// the next may. It is called wherever a call came, ended or gave up, and where
// a pause began.
func (l *Limits) dispatch() {
	now := time.Now()
	var next time.Time
	for {
		again, from := l.admitNext(now)
		next = from
		if !again {
			break
		}
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if !next.IsZero() {
		l.timer = time.AfterFunc(next.Sub(now), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.dispatch()
		})
	}
}

// admitNext lets the first call through that may begin, if there is one; where there
// is none, from is when one may, zero where that depends on calls ending.
func (l *Limits) admitNext(now time.Time) (again bool, from time.Time) {
	closed := make(map[*rateLimiter]bool) // to all whose turn is later
	for _, ln := range l.runQueues {
		for _, q := range ln.limiterQueues {
			if slices.ContainsFunc(q.limiters, func(g *rateLimiter) bool { return closed[g] }) {
				continue
			}
			free, at := q.canStart(now, closed)
			if free {
				l.admit(now, ln, q)
				return true, time.Time{}
			}
			from = sooner(from, at)
		}
	}
	return false, from
}

// canStart reports whether the oldest call may begin. Where it may not, the gates
// that keep it are closed to those behind it, and at is when the first of them
// may let it through.
func (q *limiterQueue) canStart(now time.Time, closed map[*rateLimiter]bool) (ok bool, at time.Time) {
	ok = true
	for _, g := range q.limiters {
		admits, from := g.admits(now, q.waiting[0].tokens)
		if !admits {
			ok, closed[g] = false, true
			at = sooner(at, from)
		}
	}
	return ok, at
}

// sooner is the earlier of two times that are set.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// admit lets the oldest call of a queue through and sends its run behind the
// others.
func (l *Limits) admit(now time.Time, ln *runQueue, q *limiterQueue) {
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	for _, g := range w.limiters {
		w.entries = append(w.entries, g.add(now, w.tokens))
	}
	close(w.admitted)
	i := slices.Index(l.runQueues, ln)
	l.runQueues = append(slices.Delete(l.runQueues, i, i+1), ln)
	l.removeEmpty(ln)
}
