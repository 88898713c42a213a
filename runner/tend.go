package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// keepLeases renews what this process owns; a run whose lease was lost stops.
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
		held := l.snapshot()
		if len(held) == 0 {
			continue
		}
		leases := make([]store.Lease, len(held))
		for i, x := range held {
			leases[i] = x.lease
		}
		lost, err := l.o.Store.Renew(l.ctx, leases, l.o.Lease, time.Now())
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

func (l *Local) snapshot() []*Execution {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*Execution, 0, len(l.held))
	for _, x := range l.held {
		out = append(out, x)
	}
	return out
}

// readInbox brings messages of other processes to the runs held here.
func (l *Local) readInbox() {
	defer l.loops.Done()
	t := time.NewTicker(l.o.Poll)
	defer t.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-t.C:
		}
		for _, x := range l.snapshot() {
			posts, err := l.o.Store.Inbox(l.ctx, x.ID)
			if err != nil && l.ctx.Err() == nil {
				l.o.Logger.Warn("read inbox", "run", x.ID, "error", err)
			}
			for _, p := range posts {
				l.deliver(x, p)
			}
		}
	}
}

// deliver brings a message to an execution, then takes it from the inbox. One
// that cannot be applied is dropped with a warning: its sender was told that it
// was sent, not that it fits.
func (l *Local) deliver(x *Execution, p store.Post) {
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	var err error
	switch p.Kind {
	case "cancel":
		err = x.Do(ctx, Cancel(p.By, ""))
	case "answer":
		_, err = l.Do(ctx, x.m.program, x.ID, Answer(p.Name, p.Value, p.By))
	case "event":
		_, err = l.Do(ctx, x.m.program, x.ID, Signal(p.Name, p.Value, p.By))
	case "child":
		err = x.Do(ctx, x.lookAfter(p.Name))
	}
	if errors.Is(err, ErrEnded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return // stays in the inbox for whoever holds the run next
	}
	if err != nil {
		l.o.Logger.Warn("message refused", "run", p.Run, "kind", p.Kind, "error", err)
	}
	if err := l.o.Store.Done(l.ctx, []int64{p.ID}); err != nil && l.ctx.Err() == nil {
		l.o.Logger.Warn("take message", "run", p.Run, "error", err)
	}
}
