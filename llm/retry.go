package llm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
)

// The defaults of retries, unless the error says otherwise.
const (
	maxTries        = 4
	firstRetryDelay = time.Second
	// maxRetryDelay is the longest wait. If a vendor requests a longer one, the error goes
	// to the node, whose retry can wait without a slot.
	maxRetryDelay = time.Minute
)

// call makes one model call and repeats it if it may succeed later. It is the inside of an
// effect. The request is copied here alone: copies on the stack are what a run that waits for
// a model takes most of its memory for.
func (s *Service) call(
	ctx context.Context, run string, p Provider, asked *Request, key string, emit func(Chunk), by usageFunc,
) (*Response, error) {
	own := *asked
	req := &own
	req.Key = key
	emit, closed := withKey(key, emit)
	defer closed()
	if req.GrantedOutput > 0 && (req.MaxOutput == 0 || req.MaxOutput > req.GrantedOutput) {
		req.MaxOutput = req.GrantedOutput
	}
	var lost RetryCost
	for try := 1; ; try++ {
		var spent Usage
		resp, err := s.generate(ctx, run, p, req, emit, by, &spent)
		if err == nil && resp != nil {
			return completed(resp, &lost, &spent, req.AnswerPosition)
		}
		again, err := s.waitForRetry(ctx, req, failedTry{try, &spent, err}, &lost, emit)
		if !again {
			return withoutAnswer(&lost), err
		}
	}
}

// failedTry is a try of a call that failed.
type failedTry struct {
	try   int // from 1
	spent *Usage
	err   error
}

// waitForRetry adds what a failed try has cost to lost, and waits until the call may be made again. If it may not, it returns the
// error of the call. It is not inlined, like completed.
//
//go:noinline
func (s *Service) waitForRetry(ctx context.Context, req *Request, f failedTry, lost *RetryCost, emit func(Chunk)) (again bool, err error) {
	if *f.spent != (Usage{}) {
		lost.Add(*f.spent)
	}
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	failed := asError(f.err)
	wait, again := retryDelay(req, failed, *f.spent, f.try, req.Key)
	if !again {
		return false, failed
	}
	s.reportRetry(ctx, req, f.try, wait, failed, emit)
	if err := sleep(ctx, wait); err != nil {
		return false, err
	}
	return true, nil
}

// reportRetry says that a call is made again after wait.
func (s *Service) reportRetry(ctx context.Context, req *Request, try int, wait time.Duration, failed *Error, emit func(Chunk)) {
	s.log.WarnContext(ctx, "model call failed and will be retried", "key", req.Key, "provider", req.Provider,
		"model", req.Model, "try", try, "wait", wait, "error", failed)
	emit(Chunk{Wait: wait, WaitReason: failed.Code, WaitDetail: failed.Message})
}

// completed returns the answer of a call, whose earlier tries cost lost. Neither it nor withoutAnswer is inlined, so that no
// answer is on the stack of a call that waits.
//
//go:noinline
func completed(resp *Response, lost *RetryCost, spent *Usage, position int) (*Response, error) {
	out := *resp // it may belong to the provider
	out.RetryCost, out.Usage, out.Unbilled = *lost, *spent, false
	if err := out.complete(position); err != nil {
		lost.Add(*spent)
		return &Response{RetryCost: *lost}, err
	}
	return &out, nil
}

// withoutAnswer returns the cost of a call that failed.
//
//go:noinline
func withoutAnswer(lost *RetryCost) *Response { return &Response{RetryCost: *lost} }

// retryDelay returns the wait after a failed try, if there is to be another. If not, it
// adds the reason to the error's message: the budget, or the number of tries.
func retryDelay(req *Request, failed *Error, spent Usage, try int, key string) (time.Duration, bool) {
	wait, again := backoff(failed, try, key)
	if again && req.fallsBackOn != nil && req.fallsBackOn(failed.Code) {
		return 0, false
	}
	if again && spent != (Usage{}) && req.AllowRetry != nil {
		if err := req.AllowRetry(spent); err != nil {
			again, failed.Message = false, fmt.Sprintf("%s; it is not retried: %v", failed.Message, err)
		}
	}
	if !again && try > 1 {
		failed.Message = fmt.Sprintf("%s (after %d tries)", failed.Message, try)
	}
	return wait, again
}

// withKey adds the key of their call to pieces until it is closed, and drops later pieces.
func withKey(key string, emit func(Chunk)) (keyed func(Chunk), closed func()) {
	var over atomic.Bool
	return func(c Chunk) {
		if !over.Load() {
			c.Effect = key
			emit(c)
		}
	}, func() { over.Store(true) }
}

// generate makes a call once its model is not stopped and the limits admit it. It always
// sets spent, the cost.
func (s *Service) generate(
	ctx context.Context, run string, p Provider, req *Request, emit func(Chunk), by usageFunc, spent *Usage,
) (*Response, error) {
	release, err := s.admit(ctx, run, req, emit)
	if err != nil {
		return nil, err
	}
	m := &usageMeter{emit: emit}
	resp, err := s.generateWithTimeouts(ctx, p, req, m)
	if err != nil || resp == nil {
		*spent = s.afterFailure(ctx, req, m, by, err)
		release(-1) // which admits others, unless there is a pause
		return nil, err
	}
	*spent = spentBy(req, resp, by)
	release(spent.Input + spent.Output)
	return resp, nil
}

// admit waits until the model is not stopped and the limits admit the call. Neither it nor the two functions below are inlined, like
// completed.
//
//go:noinline
func (s *Service) admit(ctx context.Context, run string, req *Request, emit func(Chunk)) (release func(tokens int), err error) {
	if err := s.waitWhileStopped(ctx, req, emit); err != nil {
		return nil, err
	}
	release, err = s.limits.Acquire(ctx, LimitRequest{
		Run: run, User: req.User, Provider: req.Provider, Model: req.Model, Tokens: req.Estimate.Input + req.Estimate.Output,
		Waiting: func(h LimitWait) { emit(h.waitChunk()) },
	})
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		release(-1)
		return nil, err
	}
	return release, nil
}

// afterFailure returns the cost of a failed try, and admits no call for as long as the vendor requests.
//
//go:noinline
func (s *Service) afterFailure(ctx context.Context, req *Request, m *usageMeter, by usageFunc, err error) Usage {
	failed, _ := guard.Find[*Error](err)
	spent := m.failedUsage(req, failed, ctx.Err() != nil, by)
	if failed != nil && failed.Code == engine.CodeModelRateLimited && failed.RetryAfter > 0 {
		s.limits.Pause(req.Provider, req.Model, failed.RetryAfter)
	}
	return spent
}

// spentBy returns the cost of an answer.
//
//go:noinline
func spentBy(req *Request, resp *Response, by usageFunc) Usage {
	came := &resp.Message
	if resp.Unbilled {
		came = nil
	}
	return by(req, resp.Usage, came)
}

// waitChunk reports the wait to observers.
func (h LimitWait) waitChunk() Chunk {
	c := Chunk{Wait: max(h.AtLeast, time.Millisecond), WaitReason: WaitLimit, WaitDetail: h.Key}
	if h.Paused {
		c.WaitReason, c.WaitDetail = engine.CodeModelRateLimited, "calls of "+h.Key+" wait, as requested by the vendor"
	}
	return c
}

// asError returns a copy of the *Error in err; any other error of a provider becomes one
// that is not retried.
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

// backoff returns the wait after a try, if there is to be another: twice the last one plus
// up to a quarter that depends on the key, so that calls that failed together are not
// repeated together. It is at least what the vendor requests.
func backoff(e *Error, try int, key string) (time.Duration, bool) {
	if !e.Retry || e.Retried || try >= maxTries || e.RetryAfter > maxRetryDelay {
		return 0, false
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	wait := firstRetryDelay << (try - 1)
	wait += wait / 4 * time.Duration(h.Sum32()%1000) / 1000
	return max(wait, e.RetryAfter), true
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
