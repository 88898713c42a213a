package llm

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// enqueue appends a call to the calls of its run for the same limiters.
func (l *Limits) enqueue(run, user string, w *waitingCall) {
	i := slices.IndexFunc(l.runQueues, func(ln *runQueue) bool { return ln.run == run })
	if i < 0 {
		i = len(l.runQueues)
		l.runQueues = append(l.runQueues, &runQueue{run: run, user: user})
	}
	ln := l.runQueues[i]
	j := slices.IndexFunc(ln.limiterQueues, func(q *limiterQueue) bool { return slices.Equal(q.limiters, w.limiters) })
	if j < 0 {
		j = len(ln.limiterQueues)
		ln.limiterQueues = append(ln.limiterQueues, &limiterQueue{limiters: w.limiters})
	}
	ln.limiterQueues[j].waiting = append(ln.limiterQueues[j].waiting, w)
}

// dequeue removes a waiting call.
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

// removeEmpty removes empty queues.
func (l *Limits) removeEmpty(ln *runQueue) {
	ln.limiterQueues = slices.DeleteFunc(ln.limiterQueues, func(q *limiterQueue) bool { return len(q.waiting) == 0 })
	if len(ln.limiterQueues) == 0 {
		l.runQueues = slices.DeleteFunc(l.runQueues, func(other *runQueue) bool { return other == ln })
	}
}

// dispatch admits the calls that may start now and schedules itself for when the next may.
// It is called after every arrival, end or withdrawal of a call, and after the start of a
// pause.
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

// admitNext admits the first call that may start, if there is one. Otherwise from is the
// earliest time for one, zero if that depends on calls ending.
func (l *Limits) admitNext(now time.Time) (again bool, from time.Time) {
	l.orderByUser()
	closed := make(map[*rateLimiter]bool) // closed to all later calls
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

// orderByUser puts the runs of users first whose last turn is the longest ago. The runs of a user
// keep their order.
func (l *Limits) orderByUser() {
	if len(l.runQueues) < 2 || !slices.ContainsFunc(l.runQueues, func(ln *runQueue) bool { return ln.user != l.runQueues[0].user }) {
		return
	}
	slices.SortStableFunc(l.runQueues, func(a, b *runQueue) int { return cmp.Compare(l.turns[a.user], l.turns[b.user]) })
}

// maxTurns bounds the users whose last turn is known. Beyond it those are forgotten whose turn
// is longer ago than that of so many others: they would come first in any case.
const maxTurns = 1000

func (l *Limits) takeTurn(user string) {
	l.turn++
	l.turns[user] = l.turn
	if len(l.turns) > 2*maxTurns {
		maps.DeleteFunc(l.turns, func(_ string, turn int64) bool { return turn <= l.turn-maxTurns })
	}
}

// canStart reports whether the oldest call may start. If not, the limiters that block it
// are closed to later calls, and at is the earliest time for the first of them.
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

// sooner returns the earlier of two times, ignoring zero.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// admit admits the oldest call of a queue and moves its run to the end.
func (l *Limits) admit(now time.Time, ln *runQueue, q *limiterQueue) {
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	for _, g := range w.limiters {
		w.entries = append(w.entries, g.add(now, w.tokens))
	}
	if w.admitted != nil {
		close(w.admitted)
	}
	l.takeTurn(ln.user)
	i := slices.Index(l.runQueues, ln)
	l.runQueues = append(slices.Delete(l.runQueues, i, i+1), ln)
	l.removeEmpty(ln)
}
