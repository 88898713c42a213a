package runner

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// acquireWithCommit takes a paused run that nobody holds with the commit that a command
// makes of it, so that taking it needs none of its own: a commit under a fence
// that is not the run's any more is refused, and what this process remembers of
// the run is as good as what it would read. Where that cannot be, or the command
// makes no commit that would prove it, it returns nil and the run is to be taken
// first.
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
	})
	x.leaseState = leasePending
	if err := m.relaunch(l.clock.now()); err != nil {
		return nil, nil //nolint:nilerr // it may be what another process made of the run; the same again is told
	}
	if err := first(x); err != nil {
		return nil, err
	}
	switch err := x.commitFirst(); {
	case errors.Is(err, store.ErrFenced): // the machine has gone a way of its own
		return nil, nil
	case err != nil:
		return nil, err
	case x.leaseState == leasePending: // nothing came of the command
		l.paused.add(m)
		return nil, nil
	}
	return x, nil
}

// loadUnowned returns the machine of a run that nobody holds and the run's fence; nil
// where somebody does or it is not to be had.
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
		return nil, 0 // taking the run finds it too
	}
	return m, r.Fence
}

// commitFirst handles the mail that is there and commits what follows from it, before
// anything is launched.
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

// releasesLease reports whether the run is given back with the commit that is being
// made: nothing goes on in it.
func (x *Execution) releasesLease() bool {
	s := x.m.run.Status()
	if x.describesData() { // what the commit brings may be described under this lease
		return false
	}
	return (s.Ended() || s == engine.Paused) && len(x.m.active)+len(x.m.starts)+len(x.m.direct) == 0
}
