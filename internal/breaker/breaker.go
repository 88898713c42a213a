// Package breaker stops calls to what fails repeatedly. One circuit breaker for each name
// counts the calls of a process.
//
// It must not know what is called: models and executors pass in which errors are outages.
package breaker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// The defaults of Settings, and the time over which calls are counted.
const (
	DefaultFailures = 5
	DefaultPause    = time.Minute
	Window          = 5 * time.Minute

	bucket = 30 * time.Second
)

// Settings say when a breaker opens.
type Settings struct {
	// Failures is the number of outages within Window after which the breaker opens, if they
	// are at least half of the calls; 0 means DefaultFailures, and a negative number never.
	Failures int
	// Pause is how long an open breaker refuses calls before it lets a trial call through;
	// 0 means DefaultPause.
	Pause time.Duration
}

func (s Settings) orDefaults() Settings {
	if s.Failures == 0 {
		s.Failures = DefaultFailures
	}
	if s.Pause <= 0 {
		s.Pause = DefaultPause
	}
	return s
}

// Outcome says what a call means for the breaker.
type Outcome int

// The outcomes of a call.
const (
	// Answered means that what was called works, even if it refused the call.
	Answered Outcome = iota
	// Outage means that it is out of order.
	Outage
	// Neutral calls say nothing about it, such as one that was cancelled.
	Neutral
)

// Open is the error of a call that an open breaker refuses. The call was not made.
type Open struct {
	Name     string
	Failures int
	// Until is when the next call is let through, and Last the newest outage.
	Until time.Time
	Last  error
}

// Error names what is not called. It does not quote the last error.
func (e *Open) Error() string {
	return fmt.Sprintf("%s has failed %d times within %d seconds and is not called for now", e.Name, e.Failures, int(Window.Seconds()))
}

// Set has a breaker for each name. It is safe for concurrent use; nil has none.
type Set struct {
	mu  sync.Mutex
	all map[string]*breaker
}

type breaker struct {
	settings Settings
	circuit  *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu    sync.Mutex
	last  error     // the newest outage
	until time.Time // when an open breaker lets a call through
}

// NewSet returns closed breakers.
func NewSet() *Set { return &Set{all: make(map[string]*breaker)} }

// The outcomes as errors, which is how gobreaker reads them.
var (
	errOutage  = errors.New("outage")
	errNeutral = errors.New("neutral")
)

func (s *Set) get(name string, set Settings) *breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.all[name]; c != nil {
		return c
	}
	c := &breaker{settings: set}
	c.circuit = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: name, Interval: Window, BucketPeriod: bucket, Timeout: set.Pause,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			return int(n.TotalFailures) >= set.Failures && 2*n.TotalFailures >= n.Requests
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errNeutral) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.until = time.Now().Add(set.Pause)
			}
		},
	})
	s.all[name] = c
	return c
}

// refusal returns the error of a call that is not made.
func (c *breaker) refusal(name string) *Open {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Open{Name: name, Failures: c.settings.Failures, Until: c.until, Last: c.last}
}

// Call makes a call unless the breaker of that name is open; the error is then *Open. The
// first call with a name sets its settings. Judge says what the result of the call means.
func Call[T any](s *Set, name string, set Settings, judge func(error) Outcome, call func() (T, error)) (out T, err error) {
	if set = set.orDefaults(); s == nil || set.Failures < 0 {
		return call()
	}
	c := s.get(name, set)
	done, refused := c.circuit.Allow()
	if refused != nil {
		return out, c.refusal(name)
	}
	outcome := errNeutral // of a call that panics
	defer func() { done(outcome) }()
	out, err = call()
	switch judge(err) {
	case Outage:
		outcome = errOutage
		c.mu.Lock()
		c.last = err
		c.mu.Unlock()
	case Answered:
		outcome = nil
	case Neutral:
	}
	return out, err
}
