package runner

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// acquireWithCommit acquires a paused run without an owner with the commit of a command, so that acquiring it needs
// no commit of its own. A commit under an outdated fence is refused, so that the cached machine is as reliable as a
// loaded one. If that is impossible, or the command makes no commit that would prove it, it returns nil and the run
// must be acquired first.
func (l *Local) acquireWithCommit(ctx context.Context, p *Program, id string, first func(*Execution) error) (*Execution, error) {
	m, fence := l.loadUnowned(ctx, p, id)
	if m == nil {
		return nil, nil
	}
	if m.run.Status() != engine.Paused {
		return nil, nil
	}
	x := l.newExecution(id, m, store.Lease{
		Run: id, Owner: l.owner, Fence: fence + 1, TTL: l.o.Lease,
	}, leasePending)
	if err := m.relaunch(l.clock.now()); err != nil {
		return nil, nil //nolint:nilerr // another process may have changed the run; the command is repeated after loading
	}
	if err := first(x); err != nil {
		return nil, err
	}
	switch err := x.commitFirst(); {
	case errors.Is(err, store.ErrFenced): // the machine has diverged
		return nil, nil
	case err != nil:
		return nil, err
	case x.state.load() == acquiring: // the command had no effect
		l.paused.add(m)
		return nil, nil
	}
	return x, nil
}

// loadUnowned returns the machine of a run without an owner and the run's fence; nil if there is an owner or the run
// cannot be loaded.
func (l *Local) loadUnowned(ctx context.Context, p *Program, id string) (*machine, int64) {
	if m := l.paused.take(id, p); m != nil && m.fence > 0 {
		m.checkChildren, m.unchangedSinceRelease = true, true
		m.ledger.expectReports(m.run.OpenChildren())
		return m, m.fence
	} else if m != nil {
		l.paused.add(m)
	}
	r, err := l.store.Run(ctx, id)
	if err != nil || r.Owner != "" || r.Head.Status != engine.Paused {
		return nil, 0
	}
	m, err := l.load(ctx, p, id)
	if err != nil {
		return nil, 0 // acquiring the run finds the same error
	}
	return m, r.Fence
}

// commitFirst handles the queued messages and commits the consequences before anything is started.
func (x *Execution) commitFirst() error {
	x.batch = x.messages.takeAll(x.batch)
	for i := range x.batch {
		if err := x.handle(&x.batch[i]); err != nil {
			return err
		}
		x.batch[i] = driverMessage{}
	}
	if err := x.runDirect(); err != nil {
		return err
	}
	return x.commit()
}

// releasesLease reports whether the commit in progress releases the run, because nothing in it is active.
func (x *Execution) releasesLease() bool {
	s := x.m.run.Status()
	if x.local.o.RecordOnly {
		return true
	}
	if x.describesData() { // data of the commit may be described under this lease
		return false
	}
	return (s.Ended() || s == engine.Paused) && len(x.m.active)+len(x.m.starts)+len(x.m.direct) == 0
}
