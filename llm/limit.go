package llm

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
)

// Limit limits the calls under one key; 0 means no limit.
type Limit struct {
	// Requests and Tokens (input and output) are limits for any minute, counted from the
	// start of each call.
	Requests int `json:"requests,omitempty"`
	Tokens   int `json:"tokens,omitempty"`
	// Concurrent limits the number of calls in flight.
	Concurrent int `json:"concurrent,omitempty"`
}

// Limits shares the vendors' rate limits among all runs of a process. It is safe for
// concurrent use.
//
// Users take turns, and within a user the runs: the oldest waiting call of a run is admitted,
// then the run moves to the end of the queue, so that a run with a thousand calls does not
// block a run with one, nor a user with a thousand runs another user.
// Later calls may not overtake a call that is next but does not fit yet, if they would use
// up the capacity that it waits for.
type Limits struct {
	bounds map[string]Limit // as configured; immutable

	mu        sync.Mutex
	limiters  map[string]*rateLimiter
	runQueues []*runQueue // runs with waiting calls, in the order of their turns
	timer     *time.Timer
	// turn counts admitted calls, and turns has the last one of each user.
	turn  int64
	turns map[string]int64
}

// NewLimits creates limits from a table with keys "provider", which all its models share,
// and "provider/prefix", found as Catalogue.Find finds models. A call counts under its
// provider and under the longest prefix. Without limits, calls still wait while a vendor
// requests a pause.
func NewLimits(bounds map[string]Limit) *Limits {
	return &Limits{bounds: maps.Clone(bounds), limiters: make(map[string]*rateLimiter), turns: make(map[string]int64)}
}

// LimitRequest describes a call to be admitted.
type LimitRequest struct {
	// Run takes turns with other runs; calls of one run are admitted in order, unless they
	// wait for different limits.
	Run string
	// User is the user of the run, who takes turns with other users.
	User     string
	Provider string
	Model    string
	// Tokens is the expected input and output. More than the limit counts as the limit.
	Tokens int
	// Waiting, if set, is called when the call has to wait, with the reason, and again when
	// a pause extends the wait. It is called by Acquire's goroutine.
	Waiting func(LimitWait)
}

// LimitWait is the reason why a call waits.
type LimitWait struct {
	// Key is the key of the blocking limit: "provider" or "provider/model".
	Key string
	// AtLeast is the minimum wait, 0 if the call only waits for other calls.
	AtLeast time.Duration
	// Paused says that the vendor requested the wait, and no configured limit caused it.
	Paused bool
}

// runQueue holds the waiting calls of one run.
type runQueue struct {
	run, user     string
	limiterQueues []*limiterQueue
}

// limiterQueue holds the waiting calls of a run for the same limiters, oldest first.
type limiterQueue struct {
	limiters []*rateLimiter
	waiting  []*waitingCall
}

// waitingCall is a call that waits or was admitted.
type waitingCall struct {
	tokens   int
	limiters []*rateLimiter
	entries  []*windowEntry // by limiter; nil while it waits
	// The channels are those of a call that has to wait, nil if it was admitted at once.
	admitted     chan struct{}
	pauseStarted chan struct{} // a pause has begun
}

// Acquire waits until the call may start. Call release after it has ended, with its tokens,
// negative if unknown; further calls of release have no effect.
//
// If ctx ends first, the error is its cause and nothing is held. If the vendor requested a
// pause of more than a minute, the error is an *Error with model_rate_limited, because such
// a wait belongs outside the call.
func (l *Limits) Acquire(ctx context.Context, c LimitRequest) (release func(tokens int), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	w := &waitingCall{tokens: max(0, c.Tokens), limiters: l.limitersOf(c.Provider, c.Model)}
	l.enqueue(c.Run, c.User, w)
	l.dispatch()
	mustWait := w.entries == nil
	if mustWait {
		w.admitted, w.pauseStarted = make(chan struct{}), make(chan struct{}, 1)
	}
	l.mu.Unlock()
	if mustWait {
		if err := l.wait(ctx, c, w); err != nil {
			l.cancel(c.Run, w)
			return nil, err
		}
	}
	var once sync.Once
	return func(tokens int) { once.Do(func() { l.release(w, tokens) }) }, nil
}

// wait returns nil after the call was admitted.
func (l *Limits) wait(ctx context.Context, c LimitRequest, w *waitingCall) error {
	for {
		select {
		case <-w.admitted:
			return nil
		default:
		}
		held, paused := l.waitReason(w)
		if paused > maxRetryDelay {
			return &Error{
				Code: engine.CodeModelRateLimited, Retry: true, RetryAfter: paused,
				Message: fmt.Sprintf("calls of %s/%s wait for another %v, as requested by the vendor", c.Provider, c.Model, paused.Round(time.Second)),
			}
		}
		if c.Waiting != nil {
			c.Waiting(held)
		}
		select {
		case <-w.admitted:
			return nil
		case <-w.pauseStarted:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Pause admits no call of the model for d, for example after a vendor's answer that there
// are too many calls: it affects all models under the same configured prefix, or else this
// model. A longer pause stays in effect.
func (l *Limits) Pause(provider, model string, d time.Duration) {
	if d <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	gates := l.limitersOf(provider, model)
	g := gates[len(gates)-1]
	until := time.Now().Add(d)
	if !until.After(g.paused) {
		return
	}
	g.paused = until
	for _, line := range l.runQueues {
		for _, q := range line.limiterQueues {
			if q.limiters[len(q.limiters)-1] != g {
				continue
			}
			for _, w := range q.waiting {
				select {
				case w.pauseStarted <- struct{}{}:
				default:
				}
			}
		}
	}
	l.dispatch()
}

// limitersOf returns the limiters of a call, the most specific last. That one exists for
// every model, so that it can be paused.
func (l *Limits) limitersOf(provider, model string) []*rateLimiter {
	var gates []*rateLimiter
	name := provider + "/" + model
	if b, ok := l.bounds[provider]; ok {
		gates = append(gates, l.limiter(provider, b))
	}
	for end := len(name); end > len(provider)+1; end-- {
		if b, ok := l.bounds[name[:end]]; ok && boundary(name, end) {
			return append(gates, l.limiter(name[:end], b))
		}
	}
	return append(gates, l.limiter(name, Limit{}))
}

func (l *Limits) limiter(key string, b Limit) *rateLimiter {
	if l.limiters[key] == nil {
		l.limiters[key] = &rateLimiter{key: key, limit: b}
	}
	return l.limiters[key]
}

// waitReason returns which limit blocks a waiting call, and the pause that the vendor
// requested.
func (l *Limits) waitReason(w *waitingCall) (held LimitWait, paused time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, g := range w.limiters {
		ok, from := g.admits(now, w.tokens)
		asked := g.paused.Sub(now)
		paused = max(paused, asked)
		if wait := from.Sub(now); !ok && wait > held.AtLeast {
			held = LimitWait{Key: g.key, AtLeast: wait, Paused: asked >= wait}
		} else if held.Key == "" && !ok {
			held.Key = g.key
		}
	}
	if held.Key == "" { // it only waits for its turn
		held.Key = w.limiters[0].key
	}
	return held, paused
}

// release ends an admitted call.
func (l *Limits) release(w *waitingCall, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, g := range w.limiters {
		g.release(w.entries[i], tokens)
	}
	l.dispatch()
}

// cancel removes a call that will not be made.
func (l *Limits) cancel(run string, w *waitingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.entries == nil {
		l.dequeue(run, w)
	} else {
		for i, g := range w.limiters {
			g.remove(w.entries[i])
		}
	}
	l.dispatch()
}
