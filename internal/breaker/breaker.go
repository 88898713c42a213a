package codegen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/sandbox"
)

// The circuit breaker of an executor or a model opens when at least breakerFailures calls
// within breakerWindow were outages, and those were at least half of the calls. After
// breakerOpenTime it lets one trial call through.
const (
	breakerFailures = 5
	breakerWindow   = 300 * time.Second
	breakerBucket   = 30 * time.Second
	breakerOpenTime = 60 * time.Second
)

// CircuitBreakers stop nodes from calling executors and models that fail repeatedly: one
// breaker for each name. All runs of a process share them.
type CircuitBreakers struct {
	mu  sync.Mutex
	all map[string]*breaker
}

type breaker struct {
	circuit *gobreaker.CircuitBreaker[any]

	mu    sync.Mutex
	last  error     // the newest outage
	until time.Time // when an open breaker lets a call through
}

// NewCircuitBreakers returns closed breakers.
func NewCircuitBreakers() *CircuitBreakers { return &CircuitBreakers{all: make(map[string]*breaker)} }

func (b *CircuitBreakers) get(name string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.all[name]; c != nil {
		return c
	}
	c := &breaker{}
	c.circuit = gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
		Name: name, Interval: breakerWindow, BucketPeriod: breakerBucket, Timeout: breakerOpenTime,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			return n.TotalFailures >= breakerFailures && 2*n.TotalFailures >= n.Requests
		},
		IsSuccessful: func(err error) bool { return !isOutage(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				c.setOpen()
			}
		},
	})
	b.all[name] = c
	return c
}

func (c *breaker) setOpen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(breakerOpenTime)
}

func (c *breaker) setLastError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = err
}

// openError is the error of a call that an open breaker refuses.
func (c *breaker) openError(name string) *engine.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &engine.Error{
		Code:    engine.CodeBreakerOpen,
		Message: fmt.Sprintf("%s has failed %d times within %d seconds and is not called for now", name, breakerFailures, int(breakerWindow.Seconds())),
		Hint:    "retry the node after " + c.until.UTC().Format(time.RFC3339),
	}
	if c.last != nil {
		e.Message += "; the last error: " + c.last.Error()
	}
	return e
}

// callGuarded makes a call unless the breaker of that name is open, which is the error
// breaker_open.
func callGuarded[T any](b *CircuitBreakers, name string, call func() (T, error)) (T, error) {
	if b == nil {
		return call()
	}
	c := b.get(name)
	var out T
	_, err := c.circuit.Execute(func() (any, error) {
		var err error
		out, err = call()
		if isOutage(err) {
			c.setLastError(err)
		}
		return nil, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return out, c.openError(name)
	}
	return out, err
}

// isOutage reports whether an error means that an executor or a model is out of order, as
// opposed to an invalid request.
func isOutage(err error) bool {
	var s *sandbox.Error
	var m *llm.Error
	switch {
	case errors.As(err, &s):
		return s.Code == engine.CodeSandboxFailed || s.Code == engine.CodeSandboxUnavailable
	case errors.As(err, &m):
		switch m.Code {
		case engine.CodeModelOverloaded, engine.CodeModelUnavailable, engine.CodeModelTimeout, engine.CodeModelAuth, engine.CodeModelRateLimited:
			return true
		}
	}
	return false
}
