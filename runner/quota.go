package runner

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// QuotaCall is a model call that is about to start.
type QuotaCall struct {
	// Run is the run that makes the call, Parent the run that started it ("" for none), User
	// its user and Origin what started it.
	Run, Parent, User, Origin string
	// Key identifies the call among all runs. A call that is made again after its process
	// ended has the same one.
	Key string
	// Reserve is the maximum usage of the call. Quotas may lower its Output to what they
	// leave, and set HasBudget then.
	Reserve *node.Reserve
}

// QuotaHold is what quotas have reserved for a call.
type QuotaHold interface {
	// More reserves the usage of a failed try, so that the call can be repeated; it fails if
	// a quota has no room.
	More(ctx context.Context, spent engine.Usage) error
	// Settle charges what the call has used, in place of what was reserved.
	Settle(ctx context.Context, used engine.Usage)
}

// Quotas bound what users may spend, over all runs.
type Quotas interface {
	// Any reports whether there is a quota at all, so that calls must be counted.
	Any(ctx context.Context) bool
	// Reserve reserves the usage of a model call in the quotas that apply to it. A nil hold
	// says that none does. An *engine.Error with the code quota_exceeded refuses the call.
	Reserve(ctx context.Context, c QuotaCall) (QuotaHold, error)
}

// quotaHold is the reservation of an effect.
type quotaHold struct {
	QuotaHold
	max    engine.Usage // reserved, with failed tries
	called bool         // the effect's function was called
}

// reserveQuota reserves the usage of an effect in quotas; nil if none applies.
func (a *attempt) reserveQuota(e *node.Effect, key string) (*quotaHold, error) {
	if a.m.services.Quotas == nil || e.Reserve == nil {
		return nil, nil
	}
	start := a.m.run.Start
	held, err := a.m.services.Quotas.Reserve(a.ctx, QuotaCall{
		Run: a.m.run.ID, Parent: start.Parent, User: start.User, Origin: start.Origin, Key: a.m.run.ID + "/" + key, Reserve: e.Reserve,
	})
	if err != nil || held == nil {
		return nil, err
	}
	h := &quotaHold{QuotaHold: held, max: e.Reserve.Usage}
	do := e.Do
	e.Do = func(ctx context.Context, key string) (node.Outcome, error) {
		h.called = true
		return do(ctx, key)
	}
	return h, nil
}

// countRetries has further tries of an effect reserve in its quotas too.
func (h *quotaHold) countRetries(ctx context.Context, r *node.Reserve) {
	inBudget := r.ReserveRetry
	r.ReserveRetry = func(spent engine.Usage) error {
		if err := h.More(ctx, spent); err != nil {
			return fmt.Errorf("no room for another try: %w", err)
		}
		h.max = h.max.Add(spent)
		if inBudget != nil {
			return inBudget(spent)
		}
		r.RetryUsage = r.RetryUsage.Add(spent)
		return nil
	}
}

// settleQuota charges an effect that has ended: by its recorded usage, else, if it may have
// happened, by its reservation.
func (a *attempt) settleQuota(h *quotaHold, key string) {
	var used engine.Usage
	switch done := a.completedEffect(key); {
	case done != nil && done.Usage != nil:
		used = *done.Usage
	case done == nil && h.called:
		used = h.max
	}
	h.Settle(context.WithoutCancel(a.ctx), used)
}

// anyQuota reports whether calls must be counted for quotas.
func (s *Services) anyQuota(ctx context.Context) bool { return s.Quotas != nil && s.Quotas.Any(ctx) }
