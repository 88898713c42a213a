package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-run/weir/store"
)

// creation is a run that the next commit of its execution makes. Until then the execution
// is not among those that are held, so that no caller can reach it.
type creation struct {
	start   *store.RunStart
	created func(*Execution) // called when the run is made, before its nodes start; nil for none
	done    chan error       // receives the outcome of that commit
}

// RoundStart says which message a new round takes, and of which session; the zero value is
// for a run that is no round.
type RoundStart struct {
	// Message is the id of the message that waits first in the session.
	Message string
	// SessionFence and StateChanges are those of the session as the caller has read it;
	// StateChanges is nil where the round does not depend on the state of the session.
	SessionFence int64
	StateChanges *int64
	// Created is called once the run is made, before any node that has effects starts; nil
	// for nothing.
	Created func(*Execution)
}

// newRun describes a run that its first commit makes.
type newRun struct {
	store.RunStart
	machine func() (*machine, error) // called once no other caller of this process can make the run
	created func(*Execution)         // as RoundStart.Created
}

// startNew makes a run together with its first commit, and executes it. Nodes that need not
// be durable first run before that commit, so that a run of such nodes alone is one commit.
// First stages the start. The error is store.ErrExists if the run exists. A run that this process holds
// is returned, unless it is to be a round; fresh is false then.
func (l *Local) startNew(ctx context.Context, p *Program, b *StartOptions, start RoundStart, first func(*Execution) error) (x *Execution, fresh bool, err error) {
	return l.makeRun(ctx, &newRun{
		machine: func() (*machine, error) { return l.emptyMachine(p, b.ID), nil }, created: start.Created,
		RunStart: store.RunStart{
			Message: start.Message, SessionFence: start.SessionFence,
			NewRun: store.NewRun{
				ID: b.ID, Flow: p.Flow.Name, Fingerprint: p.Fingerprint,
				User: b.User, Parent: b.Parent, Origin: b.Origin, At: time.Now(), StateChanges: start.StateChanges,
			},
		},
	}, first)
}

// makeRun is startNew for a run that may share the past of another.
func (l *Local) makeRun(ctx context.Context, n *newRun, first func(*Execution) error) (x *Execution, fresh bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	x, taken, err := l.claim(ctx, n.ID)
	if x != nil && n.Message != "" {
		err = fmt.Errorf("start run %s: %w", n.ID, store.ErrExists)
	}
	if err != nil || x != nil {
		return x, false, err
	}
	defer l.loops.Done()
	m, err := n.machine()
	if err == nil {
		x = l.newExecution(n.ID, m, store.Lease{Run: n.ID, Owner: l.owner, Fence: 1, TTL: l.o.Lease}, leasePending)
		x.creation = &creation{created: n.created, done: make(chan error, 1), start: &n.RunStart}
		err = first(x)
	}
	if err == nil {
		created := x.creation.done
		l.loops.Add(1)
		l.workers.run(job{x, nil})
		err = <-created // whatever becomes of ctx: the outcome is known then
	}
	defer l.clock.recheck()
	defer l.recheckTree(n.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.loading, n.ID)
	close(taken)
	if err != nil {
		return nil, false, fmt.Errorf("start run %s: %w", n.ID, err)
	}
	return x, true, nil
}

// markCreated notes that the commit which makes the run is durable: from here on the
// execution is held. The driver calls it.
func (x *Execution) markCreated() {
	c := x.creation
	if c == nil {
		return
	}
	x.creation, x.m.unmade = nil, false
	x.local.mu.Lock()
	x.local.held[x.ID] = x
	if x.local.closed { // meanwhile
		x.state.drain()
	}
	x.local.mu.Unlock()
	if c.created != nil {
		c.created(x)
	}
	c.done <- nil
}

// discard ends an execution whose run was not made.
func (x *Execution) discard() {
	x.acknowledge(x.err)
	x.refuseMessages()
	x.hub.close()
	if x.timer != nil {
		x.timer.Stop()
	}
	close(x.done)
	x.creation.done <- x.err
	x.local.loops.Done()
}
