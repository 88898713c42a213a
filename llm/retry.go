package llm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
)

// How a failed call is tried again, unless its error says otherwise.
const (
	maxTries  = 4
	firstWait = time.Second
	// longWait is what is waited at most: where a vendor asks for more the
	// error goes to the node, whose retry can wait without holding a slot.
	longWait = time.Minute
)

// call makes one model call, trying again what may succeed later. It is the
// inside of an effect.
func (s *Service) call(
	ctx context.Context, run string, p Provider, req Request, key string, emit func(Chunk),
) (*Response, error) {
	req.Key = key
	if req.Granted > 0 && (req.MaxOutput == 0 || req.MaxOutput > req.Granted) {
		req.MaxOutput = req.Granted
	}
	for try := 1; ; try++ {
		resp, err := s.generate(ctx, run, p, &req, emit)
		if err == nil && resp != nil {
			out := *resp // it may be the provider's own
			return &out, out.complete(req.Place)
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		failed := asError(err)
		wait, again := backoff(failed, try, key)
		if !again {
			if try > 1 {
				failed.Message = fmt.Sprintf("%s (after %d tries)", failed.Message, try)
			}
			return nil, failed
		}
		s.log.WarnContext(ctx, "model call failed and is tried again", "key", key, "provider", req.Provider,
			"model", req.Model, "try", try, "wait", wait, "error", failed)
		emit(Chunk{Wait: wait, Why: failed.Code, About: failed.Message})
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// generate makes a call when the limits let it through.
func (s *Service) generate(ctx context.Context, run string, p Provider, req *Request, emit func(Chunk)) (*Response, error) {
	release, err := s.limits.Acquire(ctx, Claim{
		Run: run, Provider: req.Provider, Model: req.Model, Tokens: req.Estimate.Input + req.Estimate.Output,
		Waiting: func(h Held) { emit(h.chunk()) },
	})
	if err != nil {
		return nil, err
	}
	var resp *Response
	err = guard.Call(func() (err error) {
		resp, err = p.Generate(ctx, req, emit)
		return err
	})
	if panicked, ok := guard.Find[*guard.Panic](err); ok {
		err = &Error{Code: engine.CodeModelUnavailable, Message: "the provider failed: " + panicked.Error(), Err: panicked}
	}
	if err != nil || resp == nil {
		if e, ok := guard.Find[*Error](err); ok && e.Code == engine.CodeModelRateLimited && e.After > 0 {
			s.limits.Pause(req.Provider, req.Model, e.After)
		}
		release(-1) // which lets others through, unless there is a pause
		return resp, err
	}
	release(resp.Usage.Input + resp.Usage.Output)
	return resp, nil
}

// chunk tells whoever watches of the wait.
func (h Held) chunk() Chunk {
	c := Chunk{Wait: max(h.AtLeast, time.Millisecond), Why: WaitLimit, About: h.Key}
	if h.Paused {
		c.Why, c.About = engine.CodeModelRateLimited, "calls of "+h.Key+" wait, as the vendor asked"
	}
	return c
}

// asError returns a copy of the *Error in err; anything else a provider
// returns is one that is not tried again.
func asError(err error) *Error {
	if e, ok := guard.Find[*Error](err); ok {
		c := *e
		return &c
	}
	if err == nil {
		err = errors.New("the provider returned no answer")
	}
	text := guard.Text(err)
	if guard.Unreadable(err) {
		err = errors.New(text)
	}
	return &Error{Code: engine.CodeModelUnavailable, Message: text, Err: err}
}

// backoff says how long to wait after a try, if there is to be another: twice
// as long each time and up to a quarter more, which depends on the key, so that
// many calls that failed together do not come back together. What the vendor
// asks for is the least.
func backoff(e *Error, try int, key string) (time.Duration, bool) {
	if !e.Retry || e.Tried || try >= maxTries || e.After > longWait {
		return 0, false
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	wait := firstWait << (try - 1)
	wait += wait / 4 * time.Duration(h.Sum32()%1000) / 1000
	return max(wait, e.After), true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
