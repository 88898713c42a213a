package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store"
)

// BudgetIncrease is what was added to the budget of a session.
type BudgetIncrease struct {
	Tokens int     `json:"tokens"` // input and output
	Calls  int     `json:"calls"`
	Cost   float64 `json:"cost"` // US dollars
}

// Budget is what the rounds of a session may spend together.
type Budget struct {
	// Limits are those of the flow with the increase; zero limits nothing.
	Limits flow.SpendLimits `json:"limits"`
	// Increase is what was added to the limits of the flow for this session.
	Increase BudgetIncrease `json:"increase"`
	// Used is what the rounds have used.
	Used engine.Usage `json:"used"`
}

// Budget returns the budget of the session under the flow of its next round.
func (s *Session) Budget(ctx context.Context) (Budget, error) {
	row, err := s.m.store.Session(ctx, s.ID)
	if err != nil {
		return Budget{}, err
	}
	more, err := s.m.budgetIncrease(ctx, row.ID)
	return Budget{increased(s.flow.Session.Spend, more), more, row.Usage}, err
}

// IncreaseBudget adds to the budget that the flow gives the session. It holds for all rounds
// that start afterwards, whichever version of the flow they run; a round that waits for an
// increase is answered separately. The error has the code usage if the flow does not limit what
// is added, or something is negative. By is who did.
func (s *Session) IncreaseBudget(ctx context.Context, more BudgetIncrease, by string) (Budget, error) {
	return s.IncreaseBudgetOnce(ctx, "", more, by)
}

// IncreaseBudgetOnce is IncreaseBudget for a request that may be repeated: one with an id that was among the last 100 of the session
// adds nothing. The id is kept in the same write as the increase; "" is no id.
func (s *Session) IncreaseBudgetOnce(ctx context.Context, id string, more BudgetIncrease, by string) (Budget, error) {
	row, err := s.m.store.Session(ctx, s.ID)
	if err != nil {
		return Budget{}, err
	}
	limits := s.flow.Session.Spend
	switch {
	case more.Tokens < 0 || more.Calls < 0 || more.Cost < 0 || more == (BudgetIncrease{}):
		return Budget{}, nameError("expected tokens, calls or money above zero to add to the budget")
	case more.Tokens > 0 && limits.MaxTokens == 0, more.Calls > 0 && limits.MaxCalls == 0, more.Cost > 0 && limits.MaxCost == 0:
		return Budget{}, nameError(fmt.Sprintf("the budget of sessions of flow %s does not limit what is added to it", row.Flow))
	}
	err = s.m.changeDocument(ctx, &row, budgetPrefix+row.ID, func(body json.RawMessage) (any, error) {
		b := increaseBody{}
		if body != nil {
			if err := json.Unmarshal(body, &b); err != nil {
				return nil, err
			}
		}
		if id != "" && slices.Contains(b.Requests, id) {
			return b, nil
		}
		if id != "" {
			b.Requests = append(b.Requests[max(0, len(b.Requests)-maxIncreaseRequests+1):], id)
		}
		b.By = by
		b.Tokens, b.Calls, b.Cost = b.Tokens+more.Tokens, b.Calls+more.Calls, b.Cost+more.Cost
		if b.Tokens > maxIncrease || b.Calls > maxIncrease || b.Cost > maxIncrease {
			return nil, nameError(fmt.Sprintf("at most %d of each can be added", int64(maxIncrease)))
		}
		return b, nil
	})
	if err != nil {
		return Budget{}, err
	}
	return s.Budget(ctx)
}

// maxIncrease bounds a sum of increases, so that no sum overflows.
const maxIncrease = 1_000_000_000_000

// maxIncreaseRequests is how many ids of requests are kept.
const maxIncreaseRequests = 100

// increaseBody is the body of an increase.
type increaseBody struct {
	BudgetIncrease
	By string `json:"by"`
	// Requests are the ids of the newest requests, oldest first.
	Requests []string `json:"requests,omitempty"`
}

// budgetIncrease returns what was added to the budget of a session.
func (m *Manager) budgetIncrease(ctx context.Context, id string) (BudgetIncrease, error) {
	d, err := m.store.Document(ctx, documentKind, budgetPrefix+id)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnsupported) {
		return BudgetIncrease{}, nil
	}
	if err != nil {
		return BudgetIncrease{}, err
	}
	var b increaseBody
	err = json.Unmarshal(d.Body, &b)
	return b.BudgetIncrease, err
}

// increased returns limits with an increase. What they do not limit stays without a limit.
func increased(limits flow.SpendLimits, more BudgetIncrease) flow.SpendLimits {
	if limits.MaxTokens > 0 {
		limits.MaxTokens += more.Tokens
	}
	if limits.MaxCalls > 0 {
		limits.MaxCalls += more.Calls
	}
	if limits.MaxCost > 0 {
		limits.MaxCost += more.Cost
	}
	return limits
}
