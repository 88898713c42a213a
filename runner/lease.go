package runner

import (
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// keepLeases renews the leases of this process; a run whose lease was lost stops.
func (l *Local) keepLeases() {
	defer l.loops.Done()
	t := time.NewTicker(l.o.Lease / 3)
	defer t.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-t.C:
		}
		leases := l.leases()
		if len(leases) == 0 {
			continue
		}
		lost, err := l.store.Renew(l.ctx, leases, l.o.Lease)
		if err != nil {
			l.o.Logger.Warn("renew leases", "error", err)
		}
		for _, id := range lost {
			if x := l.Held(id); x != nil {
				x.command(func(*engine.Run) (engine.Event, error) {
					x.err = fmt.Errorf("run %s: %w", x.ID, store.ErrFenced)
					return nil, x.err
				})
			}
		}
	}
}

// leases returns the leases of the runs held here, except released ones.
func (l *Local) leases() []store.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]store.Lease, 0, len(l.held))
	for _, x := range l.held {
		if x.leaseState == leaseHeld {
			out = append(out, x.lease)
		}
	}
	return out
}

func (l *Local) executions() []*Execution {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*Execution, 0, len(l.held))
	for _, x := range l.held {
		out = append(out, x)
	}
	return out
}
