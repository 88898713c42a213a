package codegen

import (
	"errors"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/breaker"
	"github.com/weir-run/weir/sandbox"
)

// callExecutor calls an executor unless its circuit breaker is open, which is the error breaker_open.
func callExecutor[T any](b *breaker.Set, name string, call func() (T, error)) (T, error) {
	out, err := breaker.Call(b, "executor "+name, breaker.Settings{}, executorOutcome, call)
	open, refused := errors.AsType[*breaker.Open](err)
	if !refused {
		return out, err
	}
	e := &engine.Error{
		Code: engine.CodeBreakerOpen, Message: open.Error(), RetryAfter: max(time.Until(open.Until).Milliseconds(), 1),
		Hint: "retry the node after " + open.Until.UTC().Format(time.RFC3339),
	}
	if open.Last != nil {
		e.Message += "; the last error: " + open.Last.Error()
	}
	return out, e
}

// executorOutcome distinguishes an executor that is out of order from code that failed.
func executorOutcome(err error) breaker.Outcome {
	if s, ok := errors.AsType[*sandbox.Error](err); ok && (s.Code == engine.CodeSandboxFailed || s.Code == engine.CodeSandboxUnavailable) {
		return breaker.Outage
	}
	return breaker.Answered
}
