package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
)

// Timeouts bound how long a call waits for its answer. A zero value means the
// default, a negative one no bound. A call that exceeds one fails with model_timeout.
type Timeouts struct {
	// First bounds the time until the answer begins: text, reasoning or a tool call.
	// The default is 10 minutes.
	First time.Duration
	// Idle bounds the time in which nothing more arrives once the answer has begun.
	// The default is 5 minutes.
	Idle time.Duration
	// Total bounds the whole answer. The default is an hour.
	Total time.Duration
}

// The defaults are generous: a model that reasons may be silent for minutes, and a
// small machine takes long to read a long prompt.
const (
	defaultFirst = 10 * time.Minute
	defaultIdle  = 5 * time.Minute
	defaultTotal = time.Hour
)

// stopGrace is how long a provider has to return once its context is done. After that
// the call ends without it.
const stopGrace = time.Second

// over returns t with the fields of another where t has none.
func (t Timeouts) over(o Timeouts) Timeouts {
	return Timeouts{First: cmp.Or(t.First, o.First), Idle: cmp.Or(t.Idle, o.Idle), Total: cmp.Or(t.Total, o.Total)}
}

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

// aliveKey is the key of the function in a call's context that notes arriving bytes.
type aliveKey struct{}

// KeepAlive reports to the service that bytes of an answer arrived which form no Chunk yet, such
// as the arguments of a tool call: the answer is then not idle. A provider calls it with
// the context of Generate.
func KeepAlive(ctx context.Context) {
	if alive, ok := ctx.Value(aliveKey{}).(func()); ok {
		alive()
	}
}

// timeoutWatch cancels a call that exceeds its timeouts.
type timeoutWatch struct {
	provider string
	bounds   Timeouts
	cancel   context.CancelCauseFunc

	mu                     sync.Mutex
	first, idle, total     *time.Timer // nil for no limit
	answerStarted, expired bool
}

func newWatch(provider string, bounds Timeouts, cancel context.CancelCauseFunc) *timeoutWatch {
	w := &timeoutWatch{provider: provider, bounds: bounds.orDefaults(), cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = w.cancelAfter(w.bounds.First, "no answer began")
	w.total = w.cancelAfter(w.bounds.Total, "the answer did not end")
	return w
}

// cancelAfter cancels the call when d has passed.
func (w *timeoutWatch) cancelAfter(d time.Duration, what string) *time.Timer {
	if d < 0 {
		return nil
	}
	return time.AfterFunc(d, func() {
		w.cancel(&Error{
			Code: engine.CodeModelTimeout, Retry: true, Retried: true, OutcomeUnknown: true,
			Message: fmt.Sprintf("%s: %s within %s; if that is too short, set callTimeout of the node or timeouts for the provider", w.provider, what, d),
		})
	})
}

// chunkArrived notes that a piece of the answer came.
func (w *timeoutWatch) chunkArrived() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.answerStarted && !w.expired {
		w.answerStarted = true
		stopTimer(w.first)
		w.idle = w.cancelAfter(w.bounds.Idle, "the answer stopped arriving")
	}
}

// bytesArrived notes that bytes came.
func (w *timeoutWatch) bytesArrived() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil && !w.expired {
		w.idle.Reset(w.bounds.Idle)
	}
}

// stopTimers stops the timers.
func (w *timeoutWatch) stopTimers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired = true
	stopTimer(w.first)
	stopTimer(w.idle)
	stopTimer(w.total)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// generateResult is what a provider's Generate returned.
type generateResult struct {
	resp *Response
	err  error
}

// providerCall is a call of a provider in progress, within its timeouts.
type providerCall struct {
	ctx   context.Context //nolint:containedctx // of this call alone, which is of no use after it
	watch *timeoutWatch
	came  chan generateResult
}

// generateWithTimeouts makes a call within the provider's timeouts. A provider that does
// not return when its context is done is abandoned: its later output is dropped.
func (s *Service) generateWithTimeouts(ctx context.Context, p Provider, req *Request, m *usageMeter) (*Response, error) {
	c := s.startCall(ctx, p, req, m)
	defer c.end()
	select {
	case got := <-c.came:
		return c.result(got)
	case <-c.ctx.Done():
		return s.afterCancel(c, req, m)
	}
}

// startCall calls a provider on another goroutine. It is not inlined, so that the stack of a call that waits is small.
//
//go:noinline
func (s *Service) startCall(ctx context.Context, p Provider, req *Request, m *usageMeter) *providerCall {
	ctx, cancel := context.WithCancelCause(ctx)
	w := newWatch(req.Provider, req.Timeouts.over(s.timeouts[req.Provider]), cancel)
	m.answerStarted = w.chunkArrived
	c := &providerCall{ctx: ctx, watch: w, came: make(chan generateResult, 1)}
	calls := context.WithValue(ctx, aliveKey{}, w.bytesArrived)
	var resp *Response
	guard.Start(func() (err error) {
		resp, err = p.Generate(calls, req, func(c Chunk) {
			w.bytesArrived()
			m.Emit(c)
		})
		return err
	}, func(err error) { c.came <- generateResult{resp, providerError(err)} })
	return c
}

// afterCancel waits a little for a provider whose call was cancelled, and abandons the call if it does not return.
//
//go:noinline
func (s *Service) afterCancel(c *providerCall, req *Request, m *usageMeter) (*Response, error) {
	got, ended := awaitResult(c.came, stopGrace)
	if !ended {
		m.close()
		s.log.WarnContext(c.ctx, "a provider did not return after its call was cancelled; the call was abandoned", "provider", req.Provider, "model", req.Model, "key", req.Key)
		got.err = context.Cause(c.ctx)
	}
	return c.result(got)
}

// result returns what the call returned, or that it exceeded a timeout.
func (c *providerCall) result(got generateResult) (*Response, error) {
	if got.err != nil {
		if e, ok := errors.AsType[*Error](context.Cause(c.ctx)); ok && e.Code == engine.CodeModelTimeout {
			return nil, e
		}
	}
	return got.resp, got.err
}

// end stops the timers.
func (c *providerCall) end() {
	c.watch.stopTimers()
	c.watch.cancel(nil)
}

// awaitResult waits for an answer for d at most.
func awaitResult(came <-chan generateResult, d time.Duration) (generateResult, bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case got := <-came:
		return got, true
	case <-t.C:
		return generateResult{}, false
	}
}

// providerError returns the error of a call of a provider: a panic of its code is a failure
// of this call.
func providerError(err error) error {
	if panicked, ok := guard.Find[*guard.Panic](err); ok {
		return &Error{Code: engine.CodeModelUnavailable, Message: "the provider failed: " + panicked.Error(), Err: panicked}
	}
	return err
}
