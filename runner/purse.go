package runner

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// purse is what the model calls of one run may still spend. Calls take what
// they may need before they begin and give back what they did not, from many
// goroutines at once. What it says was spent is what the journal says.
type purse struct {
	mu       sync.Mutex
	accounts map[string]*engine.Account
	held     map[string]engine.Usage // by effect key
	back     chan struct{}           // closed when something is given back
	up       *upper                  // nil where no run above has a budget
}

// link has the purse of a child run draw on its parent's too.
func (p *purse) link(up *purse, run string, accounts *childAccounts) {
	if accounts == nil || len(accounts.list) == 0 {
		return
	}
	paths := up.open(accounts.list)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = &upper{up, paths, accounts.node + "/" + run + "/"}
}

// upper is the parent's purse as a child's draws on it.
type upper struct {
	purse  *purse
	paths  []string
	prefix string // of keys
}

// leastOutput is how many tokens of an answer a budget must leave for a call to
// be made at all.
const leastOutput = 64

// open notes the budgets of an attempt and returns their paths. What was added
// to one that is known is taken over; the machine's goroutine only.
func (p *purse) open(accounts []engine.Account) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accounts == nil {
		p.accounts, p.held, p.back = make(map[string]*engine.Account), make(map[string]engine.Usage), make(chan struct{})
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

// countsCost is the first of the budgets that bounds the cost, "" for none.
func (p *purse) countsCost(paths []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, path := range paths {
		if p.accounts[path].Max.CostMicros > 0 {
			return path
		}
	}
	return ""
}

// take reserves for a call what it may need, less of an answer where less is
// left, and waits while others hold what it needs. The account is the one that
// is used up, nil where there is enough.
func (p *purse) take(ctx context.Context, key string, paths []string, r *node.Reserve) (*engine.Account, error) {
	for {
		p.mu.Lock()
		short, wait := p.try(key, paths, r)
		back := p.back
		p.mu.Unlock()
		if !wait {
			return short, nil
		}
		select {
		case <-back:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// try takes what a call needs if there is enough; wait says that there may be
// once others give back.
func (p *purse) try(key string, paths []string, r *node.Reserve) (short *engine.Account, wait bool) {
	output := r.Output
	for _, path := range paths {
		a := p.accounts[path]
		free, others := p.free(a)
		can := affordable(r, a.Max, free)
		if can < min(leastOutput, r.Output) {
			if others {
				return nil, true
			}
			copied := *a
			return &copied, false
		}
		output = min(output, can)
	}
	if r.Output > 0 {
		cost := r.OutputCost * int64(output) / int64(r.Output)
		r.CostMicros, r.OutputCost = r.CostMicros-r.OutputCost+cost, cost
	}
	r.Output, r.Bound = output, true
	p.held[key] = r.Usage
	return nil, false
}

// short is the budget that does not cover a call, or, where all do by now, the
// first that binds it.
func (p *purse) short(paths []string, r *node.Reserve) *engine.Account {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := *p.accounts[paths[0]]
	for _, path := range paths {
		a := p.accounts[path]
		if free, _ := p.free(a); affordable(r, a.Max, free) < min(leastOutput, r.Output) {
			found = *a
			break
		}
	}
	return &found
}

// free is what is left of an account, and whether others hold something of it.
func (p *purse) free(a *engine.Account) (free engine.Usage, others bool) {
	free = engine.Usage{
		Calls: a.Max.Calls - a.Used.Calls, Input: a.Max.Input - a.Used.Tokens(), CostMicros: a.Max.CostMicros - a.Used.CostMicros,
	}
	for key, u := range p.held {
		if a.Path != engine.RunBudget && !within(key, a.Path) {
			continue
		}
		others = true
		free.Calls -= u.Calls
		free.Input -= u.Tokens()
		free.CostMicros -= u.CostMicros
	}
	return free, others
}

// within reports whether an effect is one of the node at path, or of one
// inside it.
func within(key, path string) bool {
	return strings.HasPrefix(key, path) && len(key) > len(path) && (key[len(path)] == '/' || key[len(path)] == '#')
}

// affordable is how many tokens of an answer an account has room for, below 0
// where it has none for the call itself.
func affordable(r *node.Reserve, most, free engine.Usage) int {
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

// settle gives back what a call held and notes what it took.
func (p *purse) settle(key string, paths []string, took engine.Usage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, key)
	for _, path := range paths {
		a := p.accounts[path]
		a.Used = a.Used.Add(took)
	}
	close(p.back)
	p.back = make(chan struct{})
}
