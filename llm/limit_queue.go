package llm

import (
	"slices"
	"time"
)

// enqueue puts a call behind those of its run that wait for the same.
func (l *Limits) enqueue(run string, w *claim) {
	i := slices.IndexFunc(l.lines, func(ln *line) bool { return ln.run == run })
	if i < 0 {
		i = len(l.lines)
		l.lines = append(l.lines, &line{run: run})
	}
	ln := l.lines[i]
	j := slices.IndexFunc(ln.queues, func(q *queue) bool { return slices.Equal(q.gates, w.gates) })
	if j < 0 {
		j = len(ln.queues)
		ln.queues = append(ln.queues, &queue{gates: w.gates})
	}
	ln.queues[j].waiting = append(ln.queues[j].waiting, w)
}

// dequeue takes a call that waits out of its line.
func (l *Limits) dequeue(run string, w *claim) {
	for _, ln := range l.lines {
		if ln.run != run {
			continue
		}
		for _, q := range ln.queues {
			q.waiting = slices.DeleteFunc(q.waiting, func(other *claim) bool { return other == w })
		}
		l.tidy(ln)
		return
	}
}

// tidy drops what is empty.
func (l *Limits) tidy(ln *line) {
	ln.queues = slices.DeleteFunc(ln.queues, func(q *queue) bool { return len(q.waiting) == 0 })
	if len(ln.queues) == 0 {
		l.lines = slices.DeleteFunc(l.lines, func(other *line) bool { return other == ln })
	}
}

// dispatch lets through what may begin now and has itself called again when
// the next may. It is called wherever a call came, ended or gave up, and where
// a pause began.
func (l *Limits) dispatch() {
	now := time.Now()
	var next time.Time
	for {
		again, from := l.turn(now)
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

// turn lets the first call through that may begin, if there is one; where there
// is none, from is when one may, zero where that depends on calls ending.
func (l *Limits) turn(now time.Time) (again bool, from time.Time) {
	closed := make(map[*gate]bool) // to all whose turn is later
	for _, ln := range l.lines {
		for _, q := range ln.queues {
			if slices.ContainsFunc(q.gates, func(g *gate) bool { return closed[g] }) {
				continue
			}
			free, at := q.free(now, closed)
			if free {
				l.admit(now, ln, q)
				return true, time.Time{}
			}
			from = sooner(from, at)
		}
	}
	return false, from
}

// free reports whether the oldest call may begin. Where it may not, the gates
// that keep it are closed to those behind it, and at is when the first of them
// may let it through.
func (q *queue) free(now time.Time, closed map[*gate]bool) (ok bool, at time.Time) {
	ok = true
	for _, g := range q.gates {
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
func (l *Limits) admit(now time.Time, ln *line, q *queue) {
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	for _, g := range w.gates {
		w.entries = append(w.entries, g.enter(now, w.tokens))
	}
	close(w.through)
	i := slices.Index(l.lines, ln)
	l.lines = append(slices.Delete(l.lines, i, i+1), ln)
	l.tidy(ln)
}
