package llm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
)

// Timeouts bound how long a call waits for its answer. Zero values are the
// defaults; a negative one is no bound.
type Timeouts struct {
	// First is until the answer begins: text, reasoning or a tool call. The default
	// is 10 minutes.
	First time.Duration
	// Idle is how long nothing may come once it has begun. The default is 5 minutes.
	Idle time.Duration
	// Total is for the whole answer. The default is an hour.
	Total time.Duration
}

// The bounds where none is set. A model that reasons may be silent for minutes, and
// one on a small machine takes long to read a long prompt.
const (
	defaultFirst = 10 * time.Minute
	defaultIdle  = 5 * time.Minute
	defaultTotal = time.Hour
)

func (t Timeouts) orDefaults() Timeouts {
	set := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	set(&t.First, defaultFirst)
	set(&t.Idle, defaultIdle)
	set(&t.Total, defaultTotal)
	return t
}

// aliveKey is where a call's context holds what is told that bytes came.
type aliveKey struct{}

// Alive is called by a provider when bytes of an answer come that are no piece of it
// yet, such as of the arguments of a tool call: the answer is not idle then.
func Alive(ctx context.Context) {
	if alive, ok := ctx.Value(aliveKey{}).(func()); ok {
		alive()
	}
}

// limited makes a call within the provider's timeouts.
func (s *Service) limited(ctx context.Context, p Provider, req *Request, m *meter) (*Response, error) {
	bounds := s.timeouts[req.Provider].orDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun atomic.Bool
	late := func(d time.Duration, what string) *time.Timer {
		if d < 0 {
			return nil
		}
		return time.AfterFunc(d, func() {
			cancel(&Error{
				Code: engine.CodeModelTimeout, Retry: true, Tried: true, Unknown: true,
				Message: fmt.Sprintf("%s: %s within %s; set timeouts for the provider where that is too short", req.Provider, what, d),
			})
		})
	}
	stop := func(t *time.Timer) {
		if t != nil {
			t.Stop()
		}
	}
	first := late(bounds.First, "no answer began")
	defer func() { stop(first) }()
	total := late(bounds.Total, "the answer did not end")
	defer stop(total)
	var idle *time.Timer
	defer func() { stop(idle) }()
	alive := func() {
		if begun.Load() && idle != nil {
			idle.Reset(bounds.Idle)
		}
	}
	resp, err := guarded(context.WithValue(ctx, aliveKey{}, alive), p, req, func(c Chunk) {
		if !begun.Load() {
			stop(first)
			idle = late(bounds.Idle, "the answer stopped: nothing more came")
			begun.Store(true)
		}
		alive()
		m.Emit(c)
	})
	if err != nil {
		if e, ok := errors.AsType[*Error](context.Cause(ctx)); ok && e.Code == engine.CodeModelTimeout {
			return nil, e
		}
	}
	return resp, err
}

// guarded calls the provider; a panic of its code is a failure of this call.
func guarded(ctx context.Context, p Provider, req *Request, emit func(Chunk)) (resp *Response, err error) {
	err = guard.Call(func() (err error) {
		resp, err = p.Generate(ctx, req, emit)
		return err
	})
	if panicked, ok := guard.Find[*guard.Panic](err); ok {
		err = &Error{Code: engine.CodeModelUnavailable, Message: "the provider failed: " + panicked.Error(), Err: panicked}
	}
	return resp, err
}
