package runner

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// IncreaseBudget increases the budget that a node has exhausted, and retries the node. The increase has the format of
// the answer to a question about a budget: maxTokens, maxCalls, maxCost.
func IncreaseBudget(path string, more map[string]any, by string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		v, err := engine.Normalize(more)
		if err == nil {
			err = node.CheckAnswer(increaseSchema(), v)
		}
		if err != nil {
			return nil, fmt.Errorf("run %s: what is added to a budget: %w: %w", r.ID, ErrAnswer, err)
		}
		if !r.CanOverride(path) {
			return nil, overrideError(r, path, overrideVerb("retry"))
		}
		failed := r.FailureOf(path)
		if failed == nil || failed.Code != engine.CodeBudget || failed.Budget == "" {
			return nil, &Refusal{
				What: fmt.Sprintf("run %s: nothing can be added to a budget for node %s", r.ID, path),
				Why:  "the node did not fail for want of one", Instead: "`" + engine.CommandLine("retry", r.ID, path) + "` tries it again as it is",
			}
		}
		given, _ := v.(map[string]any)
		e := &engine.NodeOverridden{Path: path, Op: "retry", By: by, Increase: &engine.BudgetIncrease{Budget: failed.Budget, More: engine.ParseBudgetIncrease(given)}}
		return e, checkIncrease(r, e.Increase, path)
	}
}

// checkIncrease returns an error for an increase without effect.
func checkIncrease(r *engine.Run, raise *engine.BudgetIncrease, path string) error {
	accounts := r.Accounts(path)
	i := slices.IndexFunc(accounts, func(a engine.Account) bool { return a.Path == raise.Budget })
	if i < 0 {
		return &Refusal{
			What: fmt.Sprintf("run %s: nothing can be added to the budget %s", r.ID, budgetName(raise.Budget)), Why: "it no longer exists",
		}
	}
	most, more := accounts[i].Max, raise.More
	if most.Calls > 0 && more.Calls > 0 || most.Input > 0 && more.Input > 0 || most.CostMicros > 0 && more.CostMicros > 0 {
		return nil
	}
	return fmt.Errorf("run %s: the budget %s does not bound what is added to it: %w", r.ID, budgetName(raise.Budget), ErrAnswer)
}
