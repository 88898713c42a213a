package runner

import (
	"maps"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/lru"
)

// Limits of the cache of paused runs: the number of runs, and the messages of one in memory. A run with more messages
// is read from its checkpoint the next time, and then has few.
const (
	maxPausedRuns     = 64
	maxPausedMessages = 8192
)

// pausedRuns is a cache of the machines of runs that this process left paused, as of their last commit. Loading such a
// run again reads only the commits that other processes have made since. An evicted run is read from the store.
type pausedRuns struct {
	mu       sync.Mutex
	machines lru.Map[string, *machine] // by run
}

// add caches the machine of a paused run between two commits.
func (p *pausedRuns) add(m *machine) {
	if !m.canPause() {
		return
	}
	m.ledger.reset()
	p.addIdle(m)
}

// addIdle caches a machine for the next time that its run is loaded.
func (p *pausedRuns) addIdle(m *machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.machines.Max = maxPausedRuns
	p.machines.Put(m.run.ID, m)
}

// take removes and returns the machine of a run, nil if there is none with this program.
func (p *pausedRuns) take(id string, program *Program) *machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, _ := p.machines.Remove(id)
	if m == nil {
		return nil
	}
	if m.program.Fingerprint != program.Fingerprint || !maps.Equal(m.program.Pinned, program.Pinned) {
		return nil
	}
	return m
}

// canPause reports whether the machine has no state besides that of its journal.
func (m *machine) canPause() bool {
	if m.run.Status() != engine.Paused || m.run.Cancelling() ||
		len(m.staged)+len(m.starts)+len(m.direct)+len(m.active)+len(m.laneOrigins) > 0 {
		return false
	}
	loaded := 0
	for _, c := range m.contexts {
		loaded += c.History.Loaded()
	}
	return loaded <= maxPausedMessages
}

// reset clears the accounts, which are opened again from the journal; no call is in flight.
func (p *budgetLedger) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accounts, p.reserved, p.released, p.parent, p.childUsage, p.unreported = nil, nil, nil, nil, nil, nil
}
