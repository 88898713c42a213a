package llm

import (
	"maps"
	"slices"
	"strings"
)

// Table returns the built-in catalogue, by name.
func Table() []Model {
	return slices.SortedFunc(maps.Values(NewCatalogue().models()), func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
}

// Idle reports whether no call waits or is under way.
func (l *Limits) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.limiters {
		if g.active != 0 {
			return false
		}
	}
	return len(l.runQueues) == 0
}

// Apart returns a request without what is remembered of those before it.
func Apart(r Request) Request {
	r.digests, r.digestKey = nil, digestKey{}
	return r
}
