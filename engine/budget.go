package engine

import (
	"math"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
)

// RunBudget is the path that stands for the run's own budget.
const RunBudget = "."

// Account is the limit of one budget and what was spent of it.
type Account struct {
	// Path is the node's, or RunBudget.
	Path string
	// Max is the budget including increases; fields that are 0 are unlimited.
	Max Usage
	// OnLimit is as in flow.Spend; "" means "fail".
	OnLimit string
	// Used is what was spent: the usage of completed calls, plus the reservations of calls
	// that are in flight or whose outcome is unknown.
	Used Usage
}

// Tokens returns input plus output tokens.
func (u Usage) Tokens() int { return u.Input + u.Output }

// Accounts returns the budgets that bind the node at path, from the node's own to the
// run's; nil if there are none.
func (r *Run) Accounts(path string) []Account {
	var out []Account
	for p := path; p != ""; p = parentPath(p) {
		if n := r.node(p); n != nil {
			if s := n.plan.Def.Spend; s != (flow.SpendLimits{}) {
				out = append(out, r.account(p, s, r.spent[p]))
			}
		}
	}
	if s := r.plan.Flow.Spend; s != (flow.SpendLimits{}) {
		out = append(out, r.account(RunBudget, s, r.usage))
	}
	for _, a := range r.Start.Allowances {
		out = append(out, r.currentAllowance(a))
	}
	return out
}

// currentAllowance returns a budget from outside the run as of now. Its path begins with
// RunBudget, which no node's path does.
func (r *Run) currentAllowance(a Account) Account {
	a.Path = RunBudget + strings.TrimPrefix(a.Path, RunBudget)
	now := r.account(a.Path, flow.SpendLimits{OnLimit: a.OnLimit}, r.usage)
	now.Max = r.allowanceLimit(&a)
	now.Used = now.Used.Add(a.Used)
	return now
}

// allowanceLimit returns the limit of a budget from outside the run with its increases.
func (r *Run) allowanceLimit(a *Account) (most Usage) {
	more := r.increases[a.Path]
	if a.Max.Calls > 0 {
		most.Calls = a.Max.Calls + more.Calls
	}
	if a.Max.Input > 0 {
		most.Input = a.Max.Input + more.Input
	}
	if a.Max.CostMicros > 0 {
		most.CostMicros = a.Max.CostMicros + more.CostMicros
	}
	return most
}

func (r *Run) account(path string, s flow.SpendLimits, used Usage) Account {
	a := Account{Path: path, Max: r.limit(path, s), OnLimit: s.OnLimit, Used: used}
	// order: a sum of whole numbers.
	for key, u := range r.reserved {
		if strings.HasPrefix(path, RunBudget) || belongsTo(key, path) {
			a.Used = a.Used.Add(u)
		}
	}
	if a.OnLimit == "" {
		a.OnLimit = "fail"
	}
	return a
}

// limit returns the limit of the budget at path with its increases.
func (r *Run) limit(path string, s flow.SpendLimits) (most Usage) {
	more := r.increases[path]
	if s.MaxCalls > 0 {
		most.Calls = s.MaxCalls + more.Calls
	}
	if s.MaxTokens > 0 {
		most.Input = s.MaxTokens + more.Input
	}
	if s.MaxCost > 0 {
		most.CostMicros = max(Micros(s.MaxCost), 1) + more.CostMicros
	}
	return most
}

// Micros converts US dollars to millionths, rounded to the nearest.
func Micros(dollars float64) int64 { return int64(math.Round(dollars * 1e6)) }

// belongsTo reports whether an effect is of the node at path or of a node inside it.
func belongsTo(key, path string) bool {
	return strings.HasPrefix(key, path) && len(key) > len(path) && (key[len(path)] == '/' || key[len(path)] == '#')
}

// parentPath returns the path of the composite around the node at path, "" at the root.
func parentPath(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return ""
	}
	scope := path[:i]
	return scope[:strings.LastIndexByte(scope, '#')]
}

// addUsage adds to the spending of the run and of the nodes on the path.
func (r *Run) addUsage(path string, u Usage) {
	was := r.usage
	r.usage = r.usage.Add(u)
	r.noteNearRun(was)
	if !r.plan.budgets {
		return
	}
	for p := path; p != ""; p = parentPath(p) {
		if n := r.node(p); n != nil && n.plan.Def.Spend != (flow.SpendLimits{}) {
			if r.spent == nil {
				r.spent = make(map[string]Usage)
			}
			was := r.spent[p]
			r.spent[p] = was.Add(u)
			r.noteNear(p, r.limit(p, n.plan.Def.Spend), was, r.spent[p])
		}
	}
}

// reserve records what a starting call may use. The reservation of an earlier start of the
// same call is charged, because its outcome is unknown.
func (r *Run) reserve(e *EffectStarted) {
	r.chargeReservation(e.Key)
	if e.Reserve == nil {
		return
	}
	if r.reserved == nil {
		r.reserved = make(map[string]Usage)
	}
	r.reserved[e.Key] = *e.Reserve
}

// chargeReservation charges a reservation that is still open.
func (r *Run) chargeReservation(key string) {
	if u, open := r.reserved[key]; open {
		delete(r.reserved, key)
		r.addUsage(effectNode(key), u)
	}
}

// chargeNode charges the open reservations of a node that ended.
func (r *Run) chargeNode(path string) {
	var keys []string
	// order: they are sorted below.
	for key := range r.reserved {
		if effectNode(key) == path {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		r.chargeReservation(key)
	}
}

// applyBudgetAnswer adds a person's answer to a budget.
func (r *Run) applyBudgetAnswer(i *Interrupt, a Answer) {
	given, ok := a.Value.(map[string]any)
	if i.Kind != AwaitBudget || !ok {
		return
	}
	r.increaseBudget(i.Event, ParseBudgetIncrease(given))
}

// ParseBudgetIncrease reads a budget increase in its written form: maxCalls, maxTokens, and
// maxCost in US dollars.
func ParseBudgetIncrease(given map[string]any) Usage {
	return Usage{
		Calls: int(numberOf(given["maxCalls"])), Input: int(numberOf(given["maxTokens"])),
		CostMicros: Micros(numberOf(given["maxCost"])),
	}
}

// increaseBudget adds to a budget.
func (r *Run) increaseBudget(budget string, more Usage) {
	setInMap(&r.increases, budget, r.increases[budget].Add(more))
}

func numberOf(v Value) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}
