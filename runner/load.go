package runner

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/store"
)

// loadMode describes what is known about a run to be loaded.
type loadMode uint8

const (
	// loadAny: nothing is known.
	loadAny loadMode = iota
	// loadNew: the run was just created.
	loadNew
	// loadForCommand: the run is loaded for a command. A paused run may be acquired with the
	// commit of that command.
	loadForCommand
)

// getOrLoad returns the execution of a run in this process. If there is none, it creates one, and fresh is true. It
// calls first before the driver starts; with loadForCommand it may call first twice, for two executions of which the
// second counts.
func (l *Local) getOrLoad(ctx context.Context, p *Program, id string, mode loadMode, first func(*Execution) error) (x *Execution, fresh bool, err error) {
	x, taken, err := l.claim(ctx, id)
	if err != nil || x != nil {
		return x, false, err
	}
	defer l.loops.Done()
	if mode == loadForCommand {
		x, err = l.acquireWithCommit(ctx, p, id, first)
	}
	if x == nil && err == nil && mode != loadNew {
		x, err = l.loadEnded(ctx, p, id, first)
	}
	if x == nil && err == nil {
		x, err = l.acquireAndLoad(ctx, p, id, first)
	}
	defer l.clock.recheck()
	defer l.recheckTree(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.loading, id)
	close(taken)
	if err == nil && l.closed {
		err = ErrClosed
		if x.leaseState == leaseHeld {
			_ = l.store.Release(context.WithoutCancel(ctx), x.lease)
		}
	}
	if err != nil {
		return nil, false, err
	}
	l.held[id] = x
	l.loops.Add(1)
	l.workers.run(job{x, nil})
	return x, true, nil
}

// claim returns the run's execution, or the right to create it: a lease belongs to the process, so that only one
// goroutine at a time may acquire and release it. Close waits until the holder of the right calls loops.Done.
func (l *Local) claim(ctx context.Context, id string) (*Execution, chan struct{}, error) {
	for {
		l.mu.Lock()
		x, taken := l.held[id], l.loading[id]
		switch {
		case l.closed:
			l.mu.Unlock()
			return nil, nil, ErrClosed
		case x != nil && x.state.load() < releasing:
			l.mu.Unlock()
			return x, nil, nil
		case x != nil:
			taken = x.done
		case taken == nil:
			taken = make(chan struct{})
			l.loading[id] = taken
			l.loops.Add(1)
			l.mu.Unlock()
			return nil, taken, nil
		}
		l.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// loadEnded loads a run that has ended and has no owner, without its lease, so that a killed process leaves no owner
// behind. A commit of such a run acquires the lease. It returns nil if the run must be acquired first.
func (l *Local) loadEnded(ctx context.Context, p *Program, id string, first func(*Execution) error) (*Execution, error) {
	row, err := l.store.Run(ctx, id)
	if err != nil || row.Owner != "" || !row.Head.Status.Ended() {
		return nil, nil //nolint:nilerr // acquiring the run finds the same error
	}
	m, err := l.load(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if m.pendingFork != nil || !m.run.Status().Ended() { // another process has reopened it
		return nil, nil
	}
	x := l.newExecution(id, m, store.Lease{Run: id, Owner: l.owner, Fence: row.Fence - 1}, leaseReleased)
	if err := l.prepare(x, first); err != nil {
		return nil, err
	}
	return x, nil
}

// acquireAndLoad acquires the lease and loads the run.
func (l *Local) acquireAndLoad(ctx context.Context, p *Program, id string, first func(*Execution) error) (*Execution, error) {
	lease, err := l.acquire(ctx, id)
	if err != nil {
		return nil, l.ownedError(ctx, id, err)
	}
	m, err := l.load(ctx, p, id)
	x := l.newExecution(id, m, lease, leaseHeld)
	if err == nil {
		err = l.prepare(x, first)
	}
	if err != nil {
		_ = l.store.Release(context.WithoutCancel(ctx), lease)
		return nil, err
	}
	return x, nil
}

// prepare prepares a loaded run for its driver.
func (l *Local) prepare(x *Execution, first func(*Execution) error) error {
	m := x.m
	m.fence = 0
	if m.run.Start != nil && m.pendingFork == nil {
		m.checkChildren = true
		m.ledger.expectReports(m.run.OpenChildren())
		if err := m.relaunch(l.clock.now()); err != nil {
			return err
		}
		if x.lease.TakenOver {
			m.expectLostCalls()
		}
	}
	if first != nil {
		if err := first(x); err != nil {
			return err
		}
	}
	if m.run.Start == nil {
		return fmt.Errorf("run %s was created and never started; start it again", x.ID)
	}
	return nil
}

// load rebuilds a run from its journal, starting at the cached machine or at a checkpoint.
func (l *Local) load(ctx context.Context, p *Program, id string) (*machine, error) {
	m := l.paused.take(id, p)
	if m != nil {
		m.unchangedSinceRelease = true
	} else {
		m = l.loadCheckpoint(ctx, p, id)
	}
	for c, err := range l.store.Commits(ctx, id, m.seq) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", id, err)
		}
		if err := m.replay(c); err != nil {
			return nil, err
		}
		m.unchangedSinceRelease = false
	}
	if m.pendingFork != nil {
		return m, nil
	}
	if m.forkBaseCommit != nil && m.seq <= m.forkBaseCommit.Seq {
		return nil, notStartedError(id)
	}
	if s := m.run.Start; s != nil && s.Runner != l.o.Runner {
		return nil, &OtherRunner{Run: id, Runner: s.Runner, Here: l.o.Runner}
	} else if s != nil && s.Fingerprint != p.Fingerprint {
		return nil, m.checkFlow(s)
	} else if s != nil {
		if err := m.checkDependencies(s); err != nil {
			return nil, err
		}
		if err := l.checkPorts(ctx, m, s); err != nil {
			return nil, err
		}
	}
	return m, nil
}
