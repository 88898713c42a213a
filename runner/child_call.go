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

// call is a run that a tool call of another waits for. Which those are belongs to
// the caller's goroutine.
type call struct {
	key      string // of the effect that the tool call is
	caller   string // the run that calls
	path     string // the node that calls
	attempt  int
	accounts []string // the budgets that bind the node
	by       *attempt
	run      string // what is called, in this attempt

	kept chan struct{} // closed once the run was started or joined, or never will be
	stop atomic.Bool   // it is not to be started any more
}

// Call runs a flow for a tool call, as a run below the one that calls, and returns
// how it ended. Key is the call's: a call that is repeated, after a crash or in
// another attempt, goes on with the run it began, unless that was cancelled with
// the attempt. The run is the caller's user's, draws on the budgets of the node
// that calls, and is cancelled with it; its usage is that of the call. Nobody can
// be asked anything in it: one that pauses is cancelled, and returned as paused.
//
// The error is ctx's where that ends first. CodeDepth is too many runs above it.
func (l *Local) Call(ctx context.Context, p *Program, key string, b Begin) (Result, error) {
	caller, rest, _ := strings.Cut(key, "/")
	x := l.Held(caller)
	if x == nil {
		return Result{}, fmt.Errorf("run %s: %w", caller, ErrEnded)
	}
	c := &call{key: rest, caller: caller, kept: make(chan struct{})}
	if err := x.Do(ctx, x.admit(c, p, &b)); err != nil {
		return Result{}, err
	}
	r, err := l.carryOut(ctx, x, c, p, &b)
	x.dismiss(ctx, c)
	return r, err
}

// admit notes a call that begins, unless its node is to begin nothing any more.
func (x *Execution) admit(c *call, p *Program, b *Begin) Command {
	return func(r *engine.Run) (engine.Event, error) {
		for path, a := range x.m.active {
			if strings.HasPrefix(c.key, path+"/") && len(path) > len(c.path) {
				c.path, c.by = path, a
			}
		}
		if c.by == nil || c.by.stopping.Load() || x.calls.ceasing() {
			return nil, errAborted
		}
		most := x.m.services.maxDepth
		if most <= 0 {
			most = MaxDepth
		}
		if depth := r.Start.Depth + 1; depth > most {
			return nil, tooDeep(p.Flow.Name, depth, most)
		}
		c.attempt, c.accounts = c.by.Attempt, c.by.accounts
		b.Parent, b.User, b.Depth, b.Origin = x.ID, r.Start.User, r.Start.Depth+1, originTool
		b.caller = c.key
		if c.attempt > 1 {
			b.caller = fmt.Sprintf("%s.%d", c.key, c.attempt)
		}
		x.calls.open = append(x.calls.open, c)
		return nil, nil
	}
}

// originTool is the origin of runs that tool calls begin.
const originTool = "tool"

// callRun is the id of the run that an attempt's tool call begins.
func callRun(caller, key string, attempt int) string {
	key = caller + "/" + key
	if attempt > 1 {
		key = fmt.Sprintf("%s.%d", key, attempt)
	}
	sum := sha256.Sum256([]byte(key))
	return "call-" + hex.EncodeToString(sum[:10])
}

// carryOut begins or joins the run of a call and sees it to its end.
func (l *Local) carryOut(ctx context.Context, x *Execution, c *call, p *Program, b *Begin) (Result, error) {
	y, err := l.answerCall(ctx, x, c, p, b)
	close(c.kept)
	asked := false
	for err == nil {
		var r Result
		r, err = l.attend(ctx, c, y)
		switch {
		case errors.Is(err, store.ErrFenced): // another process has looked at it
			y, err = l.joinCall(ctx, x, c, p, b)
			continue
		case err != nil:
			return r, errors.Join(err, l.cutOff(ctx, c))
		case r.Status == engine.Paused:
			asked = true
			y, err = l.Do(ctx, p, c.run, Cancel("weir", "a flow that is called as a tool cannot ask"))
			if errors.Is(err, ErrStatus) { // somebody has answered it
				y, err = l.joinCall(ctx, x, c, p, b)
			}
			continue
		case asked && r.Status == engine.Cancelled:
			r.Status = engine.Paused
		}
		c.spent(r.Usage)
		return r, nil
	}
	return Result{}, err
}

// cutOff cancels the run of a call whose ctx has ended, unless that is because the
// process stops, and waits a moment for its end, to know what it has spent.
func (l *Local) cutOff(ctx context.Context, c *call) error {
	if ctx.Err() == nil || l.ctx.Err() != nil || errors.Is(context.Cause(ctx), errQuit) {
		return nil
	}
	y, err := l.drive(c.run, Cancel("", orphanReason))
	if err != nil && !errors.Is(err, ErrStatus) {
		return fmt.Errorf("cancel run %s: %w", c.run, err)
	}
	if y == nil {
		return nil
	}
	soon, stop := context.WithTimeout(l.ctx, lastWords)
	defer stop()
	r, err := y.Wait(soon)
	if err != nil { // what is in flight is counted at what it may take
		err = y.Do(l.ctx, func(run *engine.Run) (engine.Event, error) {
			r.Usage = run.Committed().Add(y.m.uncommitted())
			return nil, nil
		})
	}
	if errors.Is(err, ErrEnded) {
		r, err = y.Wait(l.ctx)
	}
	if err == nil {
		c.spent(r.Usage)
	}
	return nil
}

// lastWords is how long a tool that is cut off has, less than a tool is given.
const lastWords = 1500 * time.Millisecond

// attend returns how a run ended or that it pauses. Where the process closes, the
// attempt that made the call ends with the run, so that nothing is recorded of the call.
func (l *Local) attend(ctx context.Context, c *call, y *Execution) (Result, error) {
	r, err := y.Wait(ctx)
	switch {
	case errors.Is(err, ErrStopped):
		c.by.cancel(errQuit)
		<-ctx.Done()
		return r, ctx.Err()
	case ctx.Err() == nil:
		return r, err
	}
	return r, ctx.Err()
}

// answerCall begins the run of a call or joins it: that of an earlier attempt,
// unless it was cancelled with the attempt.
func (l *Local) answerCall(ctx context.Context, x *Execution, c *call, p *Program, b *Begin) (*Execution, error) {
	for attempt := 1; attempt < c.attempt; attempt++ {
		row, err := l.o.Store.Run(ctx, callRun(c.caller, c.key, attempt))
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case row.Head.Status == engine.Cancelled:
			continue // what it has spent is charged
		}
		c.run = row.ID
		y, err := l.joinCall(ctx, x, c, p, b)
		if err != nil || !y.cancelling(ctx) {
			return y, err
		}
	}
	c.run = callRun(c.caller, c.key, c.attempt)
	return l.joinCall(ctx, x, c, p, b)
}

// cancelling reports whether the run is being cancelled.
func (x *Execution) cancelling(ctx context.Context) (is bool) {
	err := x.Do(ctx, func(r *engine.Run) (engine.Event, error) {
		is = r.CancelRequested()
		return nil, nil
	})
	return err == nil && is
}

// joinCall drives the run of a call here, on its caller's account; it waits while
// another process does.
func (l *Local) joinCall(ctx context.Context, x *Execution, c *call, p *Program, b *Begin) (y *Execution, err error) {
	b.ID = c.run
	for {
		if c.stop.Load() {
			return nil, errAborted
		}
		if y, err = l.startCall(ctx, x, c, p, b); !errors.Is(err, store.ErrOwned) && !errors.Is(err, ErrEnded) {
			return y, err
		}
		select {
		case <-time.After(l.o.Poll):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *Local) startCall(ctx context.Context, x *Execution, c *call, p *Program, b *Begin) (*Execution, error) {
	if err := l.create(ctx, p, b); err != nil {
		return nil, err
	}
	lend := func(y *Execution) {
		y.m.purse.lend(&x.m.purse, c, y.m.run.Committed())
		if b := &y.bond; !b.tied {
			b.asked = true
			b.settled()
		}
	}
	y, fresh, err := l.hold(ctx, p, b.ID, false, func(y *Execution) error {
		if err := y.begin(p, b); err != nil {
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

// spent notes what the runs of a call have spent, for the effect's record.
func (c *call) spent(u engine.Usage) {
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	if c.by.called == nil {
		c.by.called = make(map[string]engine.Usage)
	}
	c.by.called[c.key] = u
}

// spentBy is what flows that a tool call ran have spent.
func (a *attempt) spentBy(key string) engine.Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.called[key]
}

// charge keeps what the runs of a call have spent that was cut off, as one of
// unknown outcome is charged at its reservation.
func (a *attempt) charge(key, digest string, spent engine.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.flying, key)
	if spent == (engine.Usage{}) || a.abandoned {
		return
	}
	a.pending = append(a.pending, &engine.EffectStarted{Key: key, Digest: digest, Reserve: &spent})
}
