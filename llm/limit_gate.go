package llm

import (
	"slices"
	"time"
)

// rateLimiter counts the calls under one key. It is guarded by the lock of Limits.
type rateLimiter struct {
	key     string
	limit   Limit
	active  int
	entries []*windowEntry // calls that started within the last minute, oldest first
	tokens  int            // of entries
	paused  time.Time
}

// windowEntry is one call in the minute after its start.
type windowEntry struct {
	at      time.Time
	tokens  int
	removed bool // it no longer counts
}

// window is the time over which Requests and Tokens are counted.
const window = time.Minute

// expire removes the calls that started over a minute ago.
func (g *rateLimiter) expire(now time.Time) {
	n := 0
	for n < len(g.entries) && !g.entries[n].at.Add(window).After(now) {
		g.entries[n].removed = true
		g.tokens -= g.entries[n].tokens
		n++
	}
	g.entries = slices.Delete(g.entries, 0, n)
}

// bound limits an estimate to the limit, because a larger call would never be admitted.
func (g *rateLimiter) bound(tokens int) int {
	if g.limit.Tokens > 0 {
		return min(tokens, g.limit.Tokens)
	}
	return tokens
}

// admits reports whether a call with that many tokens may start now. If not, it returns the
// earliest time, zero if that depends only on other calls.
func (g *rateLimiter) admits(now time.Time, tokens int) (ok bool, from time.Time) {
	g.expire(now)
	ok = g.limit.Concurrent <= 0 || g.active < g.limit.Concurrent
	if g.paused.After(now) {
		ok, from = false, g.paused
	}
	if n := len(g.entries) - g.limit.Requests; g.limit.Requests > 0 && n >= 0 {
		ok, from = false, later(from, g.entries[n].at.Add(window))
	}
	if over := g.tokens + g.bound(tokens) - g.limit.Tokens; g.limit.Tokens > 0 && over > 0 {
		ok, from = false, later(from, g.freeAt(over))
	}
	return ok, from
}

// freeAt returns when enough calls have left the window for that many tokens.
func (g *rateLimiter) freeAt(tokens int) time.Time {
	for _, e := range g.entries {
		if tokens -= e.tokens; tokens <= 0 {
			return e.at.Add(window)
		}
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// add counts a starting call.
func (g *rateLimiter) add(now time.Time, tokens int) *windowEntry {
	g.active++
	e := &windowEntry{at: now, tokens: g.bound(tokens)}
	if g.limit.Requests <= 0 && g.limit.Tokens <= 0 {
		e.removed = true
		return e
	}
	g.entries = append(g.entries, e)
	g.tokens += e.tokens
	return e
}

// release counts a call that ended, and its actual tokens if known (not negative).
func (g *rateLimiter) release(e *windowEntry, tokens int) {
	g.active--
	if e.removed || tokens < 0 {
		return
	}
	g.tokens += tokens - e.tokens
	e.tokens = tokens
}

// remove removes an admitted call that was never made.
func (g *rateLimiter) remove(e *windowEntry) {
	g.active--
	if e.removed {
		return
	}
	g.tokens -= e.tokens
	g.entries = slices.DeleteFunc(g.entries, func(other *windowEntry) bool { return other == e })
}
