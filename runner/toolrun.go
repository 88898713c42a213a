package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// toolRun is a run that a tool call of another waits for. Which those are belongs to
// the caller's goroutine.
type toolRun struct {
	key           string // of the effect that the tool call is
	caller        string // the run that calls
	path          string // the node that calls
	attempt       int
	accounts      []string // the budgets that bind the node
	callerAttempt *attempt
	run           string // what is called, in this attempt

	ready     chan struct{} // closed once the run was started or joined, or never will be
	cancelled atomic.Bool   // it must no longer start
}

// Call runs a flow for a tool call, as a run below the one that calls, and returns
// how it ended. Key is the call's: a call that is repeated, after a crash or in
// another attempt, continues the run that it started, unless that was cancelled with
// the attempt. The run is the caller's user's, draws on the budgets of the node
// that calls, and is cancelled with it; its usage is that of the call. No person can
// be asked anything in it: one that pauses is cancelled, and returned as paused.
//
// The error is ctx's where that ends first. CodeDepth is too many runs above it.
func (l *Local) Call(ctx context.Context, p *Program, key string, b StartOptions) (Result, error) {
	caller, rest, _ := strings.Cut(key, "/")
	x := l.Held(caller)
	if x == nil {
		return Result{}, fmt.Errorf("run %s: %w", caller, ErrEnded)
	}
	c := &toolRun{key: rest, caller: caller, ready: make(chan struct{})}
	if err := x.Do(ctx, x.admitToolRun(c, p, &b)); err != nil {
		return Result{}, err
	}
	r, err := l.runToolRun(ctx, x, c, p, &b)
	x.removeToolRun(ctx, c)
	return r, err
}

// admitToolRun notes a call that starts, unless its node may start nothing more.
func (x *Execution) admitToolRun(c *toolRun, p *Program, b *StartOptions) Command {
	return func(r *engine.Run) (engine.Event, error) {
		for path, a := range x.m.active {
			if strings.HasPrefix(c.key, path+"/") && len(path) > len(c.path) {
				c.path, c.callerAttempt = path, a
			}
		}
		if c.callerAttempt == nil || c.callerAttempt.stopping.Load() || x.toolRuns.cancelling() {
			return nil, errAborted
		}
		most := x.m.services.maxDepth
		if most <= 0 {
			most = MaxDepth
		}
		if depth := r.Start.Depth + 1; depth > most {
			return nil, depthError(p.Flow.Name, depth, most)
		}
		c.attempt, c.accounts = c.callerAttempt.Attempt, c.callerAttempt.accounts
		b.Parent, b.User, b.Depth, b.Origin = x.ID, r.Start.User, r.Start.Depth+1, originTool
		b.caller = c.key
		if c.attempt > 1 {
			b.caller = fmt.Sprintf("%s.%d", c.key, c.attempt)
		}
		x.toolRuns.open = append(x.toolRuns.open, c)
		return nil, nil
	}
}

// originTool is the origin of runs that tool calls begin.
const originTool = "tool"

// toolRunID returns the id of the run that an attempt's tool call begins.
func toolRunID(caller, key string, attempt int) string {
	key = caller + "/" + key
	if attempt > 1 {
		key = fmt.Sprintf("%s.%d", key, attempt)
	}
	sum := sha256.Sum256([]byte(key))
	return "call-" + hex.EncodeToString(sum[:10])
}

// runToolRun begins or joins the run of a call and sees it to its end.
func (l *Local) runToolRun(ctx context.Context, x *Execution, c *toolRun, p *Program, b *StartOptions) (Result, error) {
	y, err := l.startOrJoinToolRun(ctx, x, c, p, b)
	close(c.ready)
	asked := false
	for err == nil {
		var r Result
		r, err = l.observeToolRun(ctx, c, y)
		switch {
		case errors.Is(err, store.ErrFenced): // another process has looked at it
			y, err = l.joinToolRun(ctx, x, c, p, b)
			continue
		case err != nil:
			return r, errors.Join(err, l.cancelInterrupted(ctx, c))
		case r.Status == engine.Paused:
			asked = true
			y, err = l.Do(ctx, p, c.run, Cancel("weir", "a flow that is called as a tool cannot ask"))
			if errors.Is(err, ErrStatus) { // it was answered meanwhile
				y, err = l.joinToolRun(ctx, x, c, p, b)
			}
			continue
		case asked && r.Status == engine.Cancelled:
			r.Status = engine.Paused
		}
		c.addUsage(r.Usage)
		return r, nil
	}
	return Result{}, err
}

// cancelInterrupted cancels the run of a call whose ctx has ended, unless that is because the
// process stops, and waits a moment for its end, to know what it has spent.
func (l *Local) cancelInterrupted(ctx context.Context, c *toolRun) error {
	if ctx.Err() == nil || l.ctx.Err() != nil || errors.Is(context.Cause(ctx), errClosing) {
		return nil
	}
	y, err := l.drive(c.run, Cancel("", orphanReason))
	if err != nil && !errors.Is(err, ErrStatus) {
		return fmt.Errorf("cancel run %s: %w", c.run, err)
	}
	if y == nil {
		return nil
	}
	soon, stop := context.WithTimeout(l.ctx, toolCancelGrace)
	defer stop()
	r, err := y.Wait(soon)
	if err != nil { // what is in flight is counted at what it may take
		err = y.Do(l.ctx, func(run *engine.Run) (engine.Event, error) {
			r.Usage = run.CommittedUsage().Add(y.m.uncommittedUsage())
			return nil, nil
		})
	}
	if errors.Is(err, ErrEnded) {
		r, err = y.Wait(l.ctx)
	}
	if err == nil {
		c.addUsage(r.Usage)
	}
	return nil
}

// toolCancelGrace is how long a tool that is cut off has, less than a tool is given.
const toolCancelGrace = 1500 * time.Millisecond

// observeToolRun returns how a run ended or that it pauses. Where the process closes, the
// attempt that made the call ends with the run, so that nothing is recorded of the call.
func (l *Local) observeToolRun(ctx context.Context, c *toolRun, y *Execution) (Result, error) {
	r, err := y.Wait(ctx)
	switch {
	case errors.Is(err, ErrStopped):
		c.callerAttempt.cancel(errClosing)
		<-ctx.Done()
		return r, ctx.Err()
	case ctx.Err() == nil:
		return r, err
	}
	return r, ctx.Err()
}

// startOrJoinToolRun begins the run of a call or joins it: that of an earlier attempt,
// unless it was cancelled with the attempt.
func (l *Local) startOrJoinToolRun(ctx context.Context, x *Execution, c *toolRun, p *Program, b *StartOptions) (*Execution, error) {
	for attempt := 1; attempt < c.attempt; attempt++ {
		row, err := l.store.Run(ctx, toolRunID(c.caller, c.key, attempt))
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case row.Head.Status == engine.Cancelled:
			continue // what it has spent is charged
		}
		c.run = row.ID
		if err := x.noteToolRun(ctx, c, row.Events); err != nil {
			return nil, err
		}
		y, err := l.joinToolRun(ctx, x, c, p, b)
		if err != nil || !y.cancelling(ctx) {
			return y, err
		}
	}
	c.run = toolRunID(c.caller, c.key, c.attempt)
	row, err := l.store.Run(ctx, c.run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err := x.noteToolRun(ctx, c, row.Events); err != nil {
		return nil, err
	}
	return l.joinToolRun(ctx, x, c, p, b)
}

// cancelling reports whether the run is being cancelled.
func (x *Execution) cancelling(ctx context.Context) (is bool) {
	err := x.Do(ctx, func(r *engine.Run) (engine.Event, error) {
		is = r.CancelRequested()
		return nil, nil
	})
	return err == nil && is
}

// joinToolRun drives the run of a call here, on its caller's account; it waits while
// another process does.
func (l *Local) joinToolRun(ctx context.Context, x *Execution, c *toolRun, p *Program, b *StartOptions) (y *Execution, err error) {
	b.ID = c.run
	for {
		if c.cancelled.Load() {
			return nil, errAborted
		}
		if y, err = l.startToolRun(ctx, x, c, p, b); !errors.Is(err, store.ErrOwned) && !errors.Is(err, ErrEnded) {
			return y, err
		}
		select {
		case <-time.After(l.o.Poll):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *Local) startToolRun(ctx context.Context, x *Execution, c *toolRun, p *Program, b *StartOptions) (*Execution, error) {
	lend := func(y *Execution) {
		y.m.ledger.attachCaller(&x.m.ledger, c, y.m.run.CommittedUsage())
		y.publishTo(x, y.durableEvents())
		if y.parentLink.link.Lend() {
			y.parentLink.markReady()
		}
	}
	y, fresh, err := l.startOrLoad(ctx, p, b, func(y *Execution) error {
		if err := y.stageStart(p, b); err != nil {
			return err
		}
		lend(y)
		return nil
	})
	if err != nil || fresh {
		return y, err
	}
	return y, y.Do(ctx, func(*engine.Run) (engine.Event, error) {
		lend(y)
		return nil, nil
	})
}

// addUsage notes what the runs of a call have spent, for the effect's record.
func (c *toolRun) addUsage(u engine.Usage) {
	c.callerAttempt.mu.Lock()
	defer c.callerAttempt.mu.Unlock()
	if c.callerAttempt.toolUsage == nil {
		c.callerAttempt.toolUsage = make(map[string]engine.Usage)
	}
	c.callerAttempt.toolUsage[c.key] = u
}

// toolRunUsage returns what flows that a tool call ran have spent.
func (a *attempt) toolRunUsage(key string) engine.Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.toolUsage[key]
}

// chargeToolRun keeps what the runs of a call have spent that was cut off, as one of
// unknown outcome is charged at its reservation.
func (a *attempt) chargeToolRun(key, digest string, spent engine.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeUnreserved(key)
	if spent == (engine.Usage{}) || a.abandoned {
		return
	}
	a.pending = append(a.pending, &engine.EffectStarted{Key: key, Digest: digest, Reserve: &spent})
}
