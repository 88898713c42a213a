package runner

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// budgetLedger is what the model calls of one run may still spend. Calls take what
// they may need before they begin and give back what they did not, from many
// goroutines at once. What it says was spent is what the journal says.
type budgetLedger struct {
	mu       sync.Mutex
	accounts map[string]*engine.Account
	reserved map[string]engine.Usage // by effect key
	released chan struct{}           // closed when something is given back
	parent   *parentLedger           // nil where no run above has a budget
	// childUsage is what this purse has counted of child runs, by their id. Children that
	// go on and have not been heard of since the run was loaded are in absent: until
	// they are, nobody knows what is left.
	childUsage map[string]engine.Usage
	unreported map[string]bool
}

// minOutputTokens is how many tokens of an answer a budget must leave for a call to
// be made at all.
const minOutputTokens = 64

// register notes the budgets of an attempt and returns their paths. What was added
// to one that is known is taken over; the machine's goroutine only.
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

// costBudget is the first of the budgets that bounds the cost, "" for none.
func (p *budgetLedger) costBudget(paths []string) string {
	first := p.chain(paths)
	defer first.lockAll()()
	for l := first; l != nil; l = l.parent() {
		for _, path := range l.paths {
			if l.ledger.accounts[path].Max.CostMicros > 0 {
				return l.accountName(path)
			}
		}
	}
	return ""
}

// reserve reserves for a call what it may need, less of an answer where less is
// left, and waits while others hold what it needs. The account is the one that
// is used up, nil where there is enough.
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

// tryReserve takes what a call needs if there is enough, in this purse and in those
// above; back is closed when there may be once others give back.
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

// available is how much of an answer the accounts have room for, or the first that
// does not cover the call, or that it is not known yet.
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

// limitingAccount is the budget that does not cover a call, or, where all do by now, the
// first that binds it.
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

// remaining is what is left of an account, and whether others hold something of it.
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

// belongsTo reports whether an effect is one of the node at path, or of one
// inside it.
func belongsTo(key, path string) bool {
	return strings.HasPrefix(key, path) && len(key) > len(path) && (key[len(path)] == '/' || key[len(path)] == '#')
}

// affordableTokens is how many tokens of an answer an account has room for, below 0
// where it has none for the call itself.
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

// isRunBudget reports whether a budget is one of the run itself, and not of a node.
func isRunBudget(path string) bool { return strings.HasPrefix(path, engine.RunBudget) }

// reserveRetry reserves beside what a call holds what a try of it has cost that failed, so
// that it can be made again; the account is the one that has no room for that.
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

// outputAsInput is a usage whose output is input, which is not made less.
func outputAsInput(u engine.Usage) engine.Usage {
	u.Input, u.Output = u.Input+u.Output, 0
	return u
}

// charge gives back what a call held and notes what it took.
func (p *budgetLedger) charge(key string, paths []string, took engine.Usage) {
	first := p.chain(paths)
	defer first.lockAll()()
	for l := first; l != nil; l = l.parent() {
		delete(l.ledger.reserved, l.prefix+key)
		l.addUsage(took)
	}
}
