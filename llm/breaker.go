package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/breaker"
)

// Breaker says when a model is not called for a while because its calls fail. All runs of a
// process share one circuit breaker for each model.
type Breaker struct {
	// Failures is the number of failed calls within five minutes after which the model is
	// not called, if they are at least half of its calls; 0 means 5, and a negative number
	// never.
	Failures int
	// Pause is how long the model is not called, until one call is tried; 0 means a minute.
	Pause time.Duration
}

// OutageCodes returns the codes of failed calls that count as outages of the model.
func OutageCodes() []string {
	return []string{engine.CodeModelOverloaded, engine.CodeModelUnavailable, engine.CodeModelTimeout, engine.CodeModelAuth}
}

// guardedCall is call, unless the model has failed repeatedly: the error then is
// breaker_open, and nothing is sent. Recordings are never refused.
func (s *Service) guardedCall(
	ctx context.Context, run string, p Provider, req *Request, key string, emit func(Chunk), by usageFunc,
) (*Response, error) {
	do := func() (*Response, error) { return s.call(ctx, run, p, req, key, emit, by) }
	if s.replay != nil {
		return do()
	}
	name := "model " + req.Provider + "/" + req.Model
	resp, err := breaker.Call(s.breakers, name, breaker.Settings(s.breakerSettings[req.Provider]), outcomeOf(ctx, req), do)
	if err != nil {
		err = breakerError(err)
	}
	return resp, err
}

// breakerError returns the error of a call that an open breaker has refused; others are returned unchanged.
func breakerError(err error) error {
	open, refused := errors.AsType[*breaker.Open](err)
	if !refused {
		return err
	}
	wait := max(time.Until(open.Until)+10*time.Millisecond, time.Second) // a breaker is open until after that time
	return &Error{
		Code: engine.CodeBreakerOpen, Retry: true, Retried: true, RetryAfter: wait, Err: err,
		Message: fmt.Sprintf("%v (the last error: %s); it is tried again after %s", err, codeOf(open.Last), open.Until.UTC().Format(time.RFC3339)),
	}
}

// outcomeOf says what the result of a call means for the breaker of its model. A call that
// was cancelled, that the vendor only delays, or that exceeded the node's own timeout says
// nothing about the model.
func outcomeOf(ctx context.Context, req *Request) func(error) breaker.Outcome {
	return func(err error) breaker.Outcome {
		code := codeOf(err)
		switch {
		case err == nil:
			return breaker.Answered
		case context.Cause(ctx) != nil, code == engine.CodeModelRateLimited, code == engine.CodeModelTimeout && req.Timeouts != Timeouts{}:
			return breaker.Neutral
		}
		if slices.Contains(OutageCodes(), code) {
			return breaker.Outage
		}
		return breaker.Answered
	}
}
