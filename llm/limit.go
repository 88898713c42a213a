package llm

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
)

// Limit bounds the calls under one key; 0 is no bound.
type Limit struct {
	// Requests and Tokens, of input and output, are at most so many in any
	// minute, from the beginning of each call.
	Requests int `json:"requests,omitempty"`
	Tokens   int `json:"tokens,omitempty"`
	// Concurrent is how many calls are under way at the same time.
	Concurrent int `json:"concurrent,omitempty"`
}

// Limits share what vendors allow among all runs of a process. It may be used
// by any number of goroutines.
//
// Runs take turns: each is let through with its oldest call that waits, then
// goes behind the others, so that a run with a thousand calls does not keep
// another with one from its own. A call that is its run's turn and does not fit
// yet keeps later ones from overtaking it where they would use up what it waits
// for.
type Limits struct {
	bounds map[string]Limit // as configured; not written after construction

	mu        sync.Mutex
	limiters  map[string]*rateLimiter
	runQueues []*runQueue // of runs with calls that wait, in the order of their turns
	timer     *time.Timer
}

// NewLimits makes limits of a table by "provider", which all its models share,
// and "provider/prefix", found as Catalogue.Find finds models. A call counts
// under its provider's and under that of the longest prefix. Without bounds it
// still keeps everybody waiting while a vendor asks for it.
func NewLimits(bounds map[string]Limit) *Limits {
	return &Limits{bounds: maps.Clone(bounds), limiters: make(map[string]*rateLimiter)}
}

// LimitRequest is a call that wants to be made.
type LimitRequest struct {
	// Run takes turns with others; calls of one run are let through in the order
	// they asked, unless they wait for different limits.
	Run      string
	Provider string
	Model    string
	// Tokens is what the call is expected to take, input and output. More than
	// the limit counts as the limit.
	Tokens int
	// Waiting, where set, is told that the call has to wait and why, and again
	// where a pause makes it wait longer. It is called by Acquire's goroutine.
	Waiting func(LimitWait)
}

// LimitWait is why a call waits.
type LimitWait struct {
	// Key is of the limit that keeps it: "provider" or "provider/model".
	Key string
	// AtLeast is how long that will be, 0 where it waits for other calls alone.
	AtLeast time.Duration
	// Paused says that the vendor asked for it, and no limit that was set.
	Paused bool
}

// runQueue holds the calls of one run that wait.
type runQueue struct {
	run           string
	limiterQueues []*limiterQueue
}

// limiterQueue holds those of them that wait for the same gates, oldest first.
type limiterQueue struct {
	limiters []*rateLimiter
	waiting  []*waitingCall
}

// waitingCall is a call that waits or was let through.
type waitingCall struct {
	tokens       int
	limiters     []*rateLimiter
	entries      []*windowEntry // by gate; nil while it waits
	admitted     chan struct{}
	pauseStarted chan struct{} // a pause has begun
}

// Acquire waits until the call may be made. Release must be called once it
// has ended, with the tokens it took, negative where that is not known;
// further calls of it do nothing.
//
// The error is the cause of ctx where that ends first, and then nothing is held;
// or an *Error with model_rate_limited where the vendor has asked everybody to
// wait for longer than a minute, which is better waited for outside a call.
func (l *Limits) Acquire(ctx context.Context, c LimitRequest) (release func(tokens int), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	w := &waitingCall{
		tokens: max(0, c.Tokens), limiters: l.limitersOf(c.Provider, c.Model),
		admitted: make(chan struct{}), pauseStarted: make(chan struct{}, 1),
	}
	l.enqueue(c.Run, w)
	l.dispatch()
	l.mu.Unlock()
	if err := l.wait(ctx, c, w); err != nil {
		l.cancel(c.Run, w)
		return nil, err
	}
	var once sync.Once
	return func(tokens int) { once.Do(func() { l.release(w, tokens) }) }, nil
}

// wait returns nil once the call was let through.
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
				Message: fmt.Sprintf("calls of %s/%s wait for another %v, as the vendor asked", c.Provider, c.Model, paused.Round(time.Second)),
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

// Pause lets no call of the model begin for d, as when a vendor answers that it
// gets too many: of all models under the same configured prefix, else of this
// one. A pause that lasts longer already stays.
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

// limitersOf returns what a call is counted under, the most special last; that one
// is there for every model, so that it can be paused.
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

// waitReason says what a call that waits is kept by, and for how long the vendor
// has asked it to wait.
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
	if held.Key == "" { // only its turn has not come
		held.Key = w.limiters[0].key
	}
	return held, paused
}

// release ends a call that was let through.
func (l *Limits) release(w *waitingCall, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, g := range w.limiters {
		g.release(w.entries[i], tokens)
	}
	l.dispatch()
}

// cancel takes back a call that is not going to be made.
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
