package engine

import (
	"strings"

	"github.com/weir-run/weir/flow"
)

// nearBudget is a budget whose use has come near its limit with an event.
type nearBudget struct {
	path  string
	event int64 // the number of the event
}

// Near reports whether at least 80% of a limit is used: of its calls, tokens or cost. Fields of the limit that are 0 are
// unlimited.
func Near(limit, used Usage) bool {
	near := func(limit, used int64) bool { return limit > 0 && used >= limit-limit/5 }
	return near(int64(limit.Calls), int64(used.Calls)) || near(int64(limit.Input), int64(used.Tokens())) || near(limit.CostMicros, used.CostMicros)
}

// TakeNearBudgets returns the paths of the budgets whose use came near their limits with the event of that number or a later
// one, in the order of the events, and forgets those of earlier events. What calls in flight have reserved is not used.
func (r *Run) TakeNearBudgets(first int64) (paths []string) {
	for _, b := range r.near {
		if b.event >= first {
			paths = append(paths, b.path)
		}
	}
	r.near = nil
	return paths
}

// noteNear notes a budget if its use comes near its limit.
func (r *Run) noteNear(path string, limit, was, used Usage) {
	if Near(limit, used) && !Near(limit, was) {
		r.near = append(r.near, nearBudget{path, r.events + 1})
	}
}

// noteNearRun notes the budgets of the whole run, whose usage was another one.
func (r *Run) noteNearRun(was Usage) {
	if s := r.plan.Flow.Spend; s != (flow.SpendLimits{}) {
		r.noteNear(RunBudget, r.limit(RunBudget, s), was, r.usage)
	}
	for _, a := range r.Start.Allowances {
		a.Path = RunBudget + strings.TrimPrefix(a.Path, RunBudget)
		r.noteNear(a.Path, r.allowanceLimit(&a), was.Add(a.Used), r.usage.Add(a.Used))
	}
}
