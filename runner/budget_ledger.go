package runner

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// budgetLedger accounts for the model calls of one run. Calls reserve their maximum usage before they start and
// release the unused part, from many goroutines. Its spent amounts equal those of the journal.
type budgetLedger struct {
	mu       sync.Mutex
	accounts map[string]*engine.Account
	reserved map[string]engine.Usage // by effect key
	released chan struct{}           // closed when a reservation is released
	parent   *parentLedger           // nil if no ancestor run has a budget
	// costGuard is a budgetGuard of the run's flow that bounds the cost, so that a model without price may not be
	// called; "" if there is none.
	costGuard string
	// childUsage is the usage of child runs that this ledger has counted, by their id. absent has the children that
	// are active and have not reported since the run was loaded: until they report, the remaining budget is unknown.
	childUsage map[string]engine.Usage
	unreported map[string]bool
}

// minOutputTokens is the number of output tokens that a budget must leave for a call to be made.
const minOutputTokens = 64

// register registers the budgets of an attempt and returns their paths. Increases of registered ones are applied;
// called by the machine's goroutine only.
func (p *budgetLedger) register(accounts []engine.Account) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accounts == nil {
		p.accounts, p.reserved, p.released = make(map[string]*engine.Account), make(map[string]engine.Usage), make(chan struct{})
	}
	paths := make([]string, len(accounts))
	for i := range accounts {
		a := accounts[i]
		paths[i] = a.Path
		if known := p.accounts[a.Path]; known != nil {
			known.Max = a.Max
			continue
		}
		p.accounts[a.Path] = &a
	}
	return paths
}

// costGuardOf returns the id of a budgetGuard of the graph that bounds the cost, "" if there is none.
func costGuardOf(g *flow.Graph) string {
	for _, n := range g.Nodes {
		if n.Type == "budgetGuard" && n.With["maxCost"] != nil {
			return n.ID
		}
		if n.Body == nil {
			continue
		}
		if id := costGuardOf(n.Body); id != "" {
			return id
		}
	}
	return ""
}

// costBudget returns the first of the budgets and guards that limit the cost, "" for none.
func (p *budgetLedger) costBudget(paths []string) string {
	first := p.chain(paths)
	defer first.lockAll()()
	for l := first; l != nil; l = l.parent() {
		for _, path := range l.paths {
			if l.ledger.accounts[path].Max.CostMicros > 0 {
				return l.accountName(path)
			}
		}
		if guard := l.ledger.costGuard; guard != "" {
			return l.accountName(guard)
		}
	}
	return ""
}

// reserve reserves the maximum usage of a call, with a shorter answer if less is left, and waits while others have
// reserved what it needs. The result is the exhausted account, nil if the reservation succeeded.
func (p *budgetLedger) reserve(ctx context.Context, key string, paths []string, r *node.Reserve) (*engine.Account, error) {
	for {
		short, back := p.tryReserve(key, paths, r)
		if back == nil {
			return short, nil
		}
		select {
		case <-back:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryReserve reserves the usage of a call if it is available, in this ledger and those above; the channel back is
// closed when a release may make it available.
func (p *budgetLedger) tryReserve(key string, paths []string, r *node.Reserve) (short *engine.Account, back chan struct{}) {
	first := p.chain(paths)
	defer first.lockAll()()
	output := r.Output
	for l := first; l != nil; l = l.parent() {
		can, lacking, wait := l.ledger.available(l.paths, r)
		if wait {
			return nil, l.ledger.released
		}
		if lacking != nil {
			return l.accountForCall(lacking), nil
		}
		output = min(output, can)
	}
	if r.Output > 0 {
		cost := r.OutputCost * int64(output) / int64(r.Output)
		r.CostMicros, r.OutputCost = r.CostMicros-r.OutputCost+cost, cost
	}
	r.Output, r.HasBudget = output, true
	for l := first; l != nil; l = l.parent() {
		if len(l.paths) > 0 {
			l.ledger.reserved[l.prefix+key] = r.Usage
		}
	}
	return nil, nil
}

// available returns how many output tokens the accounts cover, or the first account that does not cover the call, or
// that the remaining budget is unknown.
func (p *budgetLedger) available(paths []string, r *node.Reserve) (can int, lacking *engine.Account, wait bool) {
	can = r.Output
	if len(paths) > 0 && len(p.unreported) > 0 {
		return 0, nil, true
	}
	for _, path := range paths {
		a := p.accounts[path]
		free, others := p.remaining(a)
		room := affordableTokens(r, a.Max, free)
		if room < min(minOutputTokens, r.Output) {
			copied := *a
			return 0, &copied, others
		}
		can = min(can, room)
	}
	return can, nil, false
}

// limitingAccount returns the budget that does not cover a call or, if all do by now, the first one that applies.
func (p *budgetLedger) limitingAccount(paths []string, r *node.Reserve) *engine.Account {
	first := p.chain(paths)
	defer first.lockAll()()
	var found *engine.Account
	for l := first; l != nil; l = l.parent() {
		if found == nil && len(l.paths) > 0 {
			copied := *l.ledger.accounts[l.paths[0]]
			found = l.accountForCall(&copied)
		}
		if _, lacking, _ := l.ledger.available(l.paths, r); lacking != nil {
			return l.accountForCall(lacking)
		}
	}
	return found
}

// remaining returns what is left of an account, and whether others have reserved a part of it.
func (p *budgetLedger) remaining(a *engine.Account) (free engine.Usage, others bool) {
	free = engine.Usage{
		Calls: a.Max.Calls - a.Used.Calls, Input: a.Max.Input - a.Used.Tokens(), CostMicros: a.Max.CostMicros - a.Used.CostMicros,
	}
	for key, u := range p.reserved {
		if !isRunBudget(a.Path) && !belongsTo(key, a.Path) {
			continue
		}
		others = true
		free.Calls -= u.Calls
		free.Input -= u.Tokens()
		free.CostMicros -= u.CostMicros
	}
	return free, others
}

// belongsTo reports whether an effect is one of the node at path, or of a node inside it.
func belongsTo(key, path string) bool {
	return strings.HasPrefix(key, path) && len(key) > len(path) && (key[len(path)] == '/' || key[len(path)] == '#')
}

// affordableTokens returns the number of output tokens that an account covers, negative if it does not cover the
// input.
func affordableTokens(r *node.Reserve, most, free engine.Usage) int {
	can := r.Output
	if most.Calls > 0 && free.Calls < r.Calls {
		return -1
	}
	if most.Input > 0 {
		can = min(can, free.Input-r.Input)
	}
	if most.CostMicros > 0 {
		left := free.CostMicros - (r.CostMicros - r.OutputCost)
		switch {
		case left < 0:
			return -1
		case r.OutputCost > left:
			can = min(can, int(int64(r.Output)*left/r.OutputCost))
		}
	}
	return can
}

// isRunBudget reports whether a budget is one of the run, as opposed to a node's.
func isRunBudget(path string) bool { return strings.HasPrefix(path, engine.RunBudget) }

// reserveRetry reserves, besides the reservation of a call, the cost of a failed try, so that the call can be
// repeated; the result is the account that does not cover it.
func (p *budgetLedger) reserveRetry(key string, paths []string, spent engine.Usage) *engine.Account {
	first := p.chain(paths)
	defer first.lockAll()()
	for l := first; l != nil; l = l.parent() {
		if _, lacking, _ := l.ledger.available(l.paths, &node.Reserve{Usage: outputAsInput(spent), OutputCost: 0}); lacking != nil {
			return l.accountForCall(lacking)
		}
	}
	for l := first; l != nil; l = l.parent() {
		if len(l.paths) > 0 {
			l.ledger.reserved[l.prefix+key] = l.ledger.reserved[l.prefix+key].Add(spent)
		}
	}
	return nil
}

// outputAsInput returns a usage with its output as input, which is not reduced.
func outputAsInput(u engine.Usage) engine.Usage {
	u.Input, u.Output = u.Input+u.Output, 0
	return u
}

// charge charges a call and releases its reservation.
func (p *budgetLedger) charge(key string, paths []string, took engine.Usage) {
	first := p.chain(paths)
	defer first.lockAll()()
	for l := first; l != nil; l = l.parent() {
		delete(l.ledger.reserved, l.prefix+key)
		l.addUsage(took)
	}
}
