package weir

import (
	"context"

	"github.com/weir-run/weir/runner"
)

// Request is a request whose sender may repeat it, because it does not know whether it was carried out.
type Request struct {
	// ID is unique in the store, for example a digest of an Idempotency-Key with the user who sent it.
	ID string
	// Repeated says that the request was received before. The journals of the run and its child runs are then searched
	// for it first, which reads them from the beginning.
	Repeated bool
}

type requestKey struct{}

// WithRequest returns a context in which Answer, Signal, OverrideNode and IncreaseBudget are carried out for a request. The
// event carries the id of the request. If the journal has one with that id, they change nothing and
// return a nil Run and no error. If the Weir has a remote runner, Answer and Signal ignore the request.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// doForRequest carries out a command on a run, which do is given, once for the request of the context.
func (w *Weir) doForRequest(ctx context.Context, run string, do func(with func(runner.Command) runner.Command) (*Run, error)) (*Run, error) {
	q, ok := ctx.Value(requestKey{}).(Request)
	if !ok || q.ID == "" {
		return do(func(c runner.Command) runner.Command { return c })
	}
	if q.Repeated {
		if done, err := w.local.HasRequest(ctx, run, q.ID); done || err != nil {
			return nil, err
		}
	}
	r, err := do(func(c runner.Command) runner.Command { return runner.WithRequest(c, q.ID) })
	if err == nil {
		return r, nil
	}
	// Another process may have received the same request at the same time.
	if done, failed := w.local.HasRequest(ctx, run, q.ID); done && failed == nil {
		return r, nil
	}
	return r, err
}
