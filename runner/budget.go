package runner

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// limitReached is the error of a call that a budget refuses.
type limitReached struct {
	failure engine.Error
	branch  bool
	outputs engine.Values
}

// Error returns the text of the failure.
func (e *limitReached) Error() string { return e.failure.Error() }

// Unwrap returns the failure.
func (e *limitReached) Unwrap() error { return &e.failure }

// reserveBudget reserves the maximum usage of an effect. If a budget is exhausted, it fails or asks for an increase,
// as the budget's setting says.
func (a *attempt) reserveBudget(e *node.Effect, key string) error {
	for round := 1; ; round++ {
		id := fmt.Sprintf("%s:budget.%s.%d", a.Path, strings.TrimPrefix(key, a.Path+"/"), round)
		if a.Attempt > 1 { // the answer for an earlier attempt no longer applies
			id += fmt.Sprintf(".%d", a.Attempt)
		}
		answer, answered := a.previousAnswer(id)
		if answered {
			if _, more := answer.(map[string]any); !more {
				return limitError(a.m.ledger.limitingAccount(a.accounts, e.Reserve), e.Reserve, "The budget is used up, and nothing was added to it.")
			}
			continue
		}
		short, err := a.tryReserve(e.Reserve, key)
		if err != nil || short == nil {
			return err
		}
		text := budgetMessage(short, e.Reserve)
		if short.OnLimit != "pause" {
			return limitError(short, e.Reserve, text)
		}
		a.noteTooSmall(id, short)
		_, err = a.wait(engine.Interrupt{
			ID: id, Kind: engine.AwaitBudget, Event: short.Path, Schema: increaseSchema(),
			Prompt: text + " Answer with what to add to it, such as " + suggestedIncrease(short, e.Reserve) + `, or with "stop".`,
		})
		return err
	}
}

// noteTooSmall keeps the limit with which a budget was too small.
func (a *attempt) noteTooSmall(id string, short *engine.Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tooSmall == nil {
		a.tooSmall = make(map[string]engine.Usage)
	}
	a.tooSmall[id] = short.Max
}

// tryReserve reserves the maximum usage of an effect, or returns the budget that is too small. Further tries of the
// effect can be charged to the reservation.
func (a *attempt) tryReserve(r *node.Reserve, key string) (*engine.Account, error) {
	short, err := a.m.ledger.reserve(a.ctx, key, a.accounts, r)
	if err != nil || short != nil {
		return short, err
	}
	r.ReserveRetry = func(spent engine.Usage) error {
		if full := a.m.ledger.reserveRetry(key, a.accounts, spent); full != nil {
			return fmt.Errorf("the budget %s has no room for another try", budgetName(full.Path))
		}
		r.RetryUsage = r.RetryUsage.Add(spent)
		return nil
	}
	return nil, nil
}

// checkPriced refuses a model call with an unknown cost if a budget or a guard limits the cost.
func (a *attempt) checkPriced(r *node.Reserve) error {
	if r == nil || r.Unpriced == "" {
		return nil
	}
	if owner := a.m.ledger.costBudget(a.accounts); owner != "" {
		return unpricedError(r.Unpriced, owner)
	}
	return nil
}

// unpricedError refuses a call that a budget in money cannot count.
func unpricedError(model, owner string) error {
	return &engine.Error{
		Code: engine.CodeModelUnpriced, Permanent: true,
		Message: fmt.Sprintf("the budget %s bounds the cost (maxCost), and nothing is known of what the model %s costs", budgetName(owner), model),
		Hint: fmt.Sprintf("say it in the configuration, in US dollars per million tokens: models: [{name: %q, price: {input: 1, output: 4}}], "+
			"with 0 for both where it is free; or bound maxTokens instead", model),
	}
}

// budgetName describes a budget by its path.
func budgetName(path string) string {
	run, path, above := strings.Cut(path, "|")
	if !above {
		run, path = "", run
	}
	owner := "of node " + path
	switch {
	case path == engine.RunBudget && above:
		return "of run " + run
	case path == engine.RunBudget:
		return "of the run"
	case isRunBudget(path):
		owner = "of the " + strings.TrimPrefix(path, engine.RunBudget)
	}
	if above {
		owner += " of run " + run
	}
	return owner
}

// Budgeted reports whether a budget binds the attempt, or a quota may.
func (a *attempt) Budgeted() bool {
	return a.m.ledger.binds(a.accounts) || a.m.services.anyQuota(a.ctx)
}

// previousAnswer returns an earlier answer to an interrupt.
func (a *attempt) previousAnswer(id string) (engine.Value, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ans := a.answers[id]; ans != nil {
		return ans.Value, true
	}
	return nil, false
}

func increaseSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"const": "stop"},
		map[string]any{
			"type": "object", "minProperties": int64(1), "additionalProperties": false,
			"properties": map[string]any{
				"maxTokens": map[string]any{"type": "integer", "minimum": int64(1), "maximum": int64(1e12)},
				"maxCalls":  map[string]any{"type": "integer", "minimum": int64(1), "maximum": int64(1e9)},
				"maxCost":   map[string]any{"type": "number", "exclusiveMinimum": int64(0), "maximum": int64(1e6)},
			},
		},
	}}
}

func limitError(short *engine.Account, r *node.Reserve, text string) error {
	return &limitReached{
		branch: short.OnLimit == "branch",
		failure: engine.Error{
			Code: engine.CodeBudget, Message: text, Permanent: true, Budget: short.Path,
			Hint: fmt.Sprintf("increase it and continue, for example: weir retry RUN NODE --add '%s'; or set onLimit: pause to be asked", suggestedIncrease(short, r)),
		},
		outputs: engine.Values{{Name: "limit", Value: map[string]any{
			"budget": short.Path, "message": text,
			"calls": int64(short.Used.Calls), "tokens": int64(short.Used.Tokens()), "cost": float64(short.Used.CostMicros) / 1e6,
		}}},
	}
}

// suggestedIncrease returns, as JSON, an increase that allows a call: for each limit that is too small at least as
// much as the call may use.
func suggestedIncrease(short *engine.Account, r *node.Reserve) string {
	most, used := short.Max, short.Used
	leastCost := r.CostMicros - r.OutputCost
	if r.Output > 0 {
		leastCost += r.OutputCost * int64(min(minOutputTokens, r.Output)) / int64(r.Output)
	}
	var parts []string
	if most.Calls > 0 && most.Calls-used.Calls < r.Calls {
		parts = append(parts, `"maxCalls": 10`)
	}
	if most.Input > 0 && most.Input-used.Tokens() < r.Input+min(minOutputTokens, r.Output) {
		more := 10000
		for more < r.Input+r.Output {
			more *= 10
		}
		parts = append(parts, fmt.Sprintf(`"maxTokens": %d`, more))
	}
	if most.CostMicros > 0 && most.CostMicros-used.CostMicros < leastCost {
		more := int64(500_000)
		for more < r.CostMicros {
			more *= 10
		}
		parts = append(parts, fmt.Sprintf(`"maxCost": %.2f`, float64(more)/1e6))
	}
	if len(parts) == 0 { // others have reserved what is free
		parts = append(parts, `"maxTokens": 10000`)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// budgetMessage describes how much of a budget is used, and what a call needs.
func budgetMessage(a *engine.Account, r *node.Reserve) string {
	var parts []string
	if a.Max.Calls > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d calls", a.Used.Calls, a.Max.Calls))
	}
	if a.Max.Input > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tokens", a.Used.Tokens(), a.Max.Input))
	}
	if a.Max.CostMicros > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f of $%.4f", float64(a.Used.CostMicros)/1e6, float64(a.Max.CostMicros)/1e6))
	}
	return fmt.Sprintf("The budget %s does not cover the next model call: %s are used, and the call takes up to %d tokens "+
		"of input ($%.4f) and an answer of at least %d.", budgetName(a.Path), strings.Join(parts, ", "), r.Input,
		float64(r.CostMicros-r.OutputCost)/1e6, min(minOutputTokens, r.Output))
}
