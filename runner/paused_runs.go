package runner

import (
	"container/list"
	"maps"
	"sync"

	"github.com/weir-run/weir/engine"
)

// What a process keeps of the runs it has left: so many, and none with more
// messages in memory. A run with more of them is read from its checkpoint next
// time, and has few then.
const (
	maxPausedRuns     = 64
	maxPausedMessages = 8192
)

// pausedRuns are the machines of runs that this process has left paused, as of their
// last commit. Who takes such a run again reads only what others have committed
// since. What is forgotten is read from the store; nothing depends on it.
type pausedRuns struct {
	mu     sync.Mutex
	byRun  map[string]*list.Element
	recent list.List // of *machine, the newest first
}

// add keeps a machine between two commits of a paused run.
func (p *pausedRuns) add(m *machine) {
	if !m.canPause() {
		return
	}
	m.ledger.reset()
	p.addIdle(m)
}

// addIdle keeps a machine for whoever takes its run next.
func (p *pausedRuns) addIdle(m *machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byRun == nil {
		p.byRun = make(map[string]*list.Element)
	}
	if e := p.byRun[m.run.ID]; e != nil {
		p.recent.Remove(e)
	}
	p.byRun[m.run.ID] = p.recent.PushFront(m)
	if p.recent.Len() > maxPausedRuns {
		delete(p.byRun, p.recent.Remove(p.recent.Back()).(*machine).run.ID)
	}
}

// take hands out the machine of a run, nil where there is none of this program.
func (p *pausedRuns) take(id string, program *Program) *machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byRun[id]
	if e == nil {
		return nil
	}
	delete(p.byRun, id)
	m := p.recent.Remove(e).(*machine)
	if m.program.Fingerprint != program.Fingerprint || !maps.Equal(m.program.Pinned, program.Pinned) {
		return nil
	}
	return m
}

// canPause reports whether the machine is what its journal says and no more.
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

// reset has the accounts opened anew, as the journal says they are; no call is
// out.
func (p *budgetLedger) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accounts, p.reserved, p.released, p.parent, p.childUsage, p.unreported = nil, nil, nil, nil, nil, nil
}
