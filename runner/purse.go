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
	// kin is what this purse has counted of child runs, by their id. Children that
	// go on and have not been heard of since the run was loaded are in absent: until
	// they are, nobody knows what is left.
	kin    map[string]engine.Usage
	absent map[string]bool
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
	first := p.chain(paths)
	defer first.lock()()
	for l := first; l != nil; l = l.up() {
		for _, path := range l.paths {
			if l.purse.accounts[path].Max.CostMicros > 0 {
				return l.name(path)
			}
		}
	}
	return ""
}

// take reserves for a call what it may need, less of an answer where less is
// left, and waits while others hold what it needs. The account is the one that
// is used up, nil where there is enough.
func (p *purse) take(ctx context.Context, key string, paths []string, r *node.Reserve) (*engine.Account, error) {
	for {
		short, back := p.try(key, paths, r)
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

// try takes what a call needs if there is enough, in this purse and in those
// above; back is closed when there may be once others give back.
func (p *purse) try(key string, paths []string, r *node.Reserve) (short *engine.Account, back chan struct{}) {
	first := p.chain(paths)
	defer first.lock()()
	output := r.Output
	for l := first; l != nil; l = l.up() {
		can, lacking, wait := l.purse.survey(l.paths, r)
		if wait {
			return nil, l.purse.back
		}
		if lacking != nil {
			return l.lacks(lacking), nil
		}
		output = min(output, can)
	}
	if r.Output > 0 {
		cost := r.OutputCost * int64(output) / int64(r.Output)
		r.CostMicros, r.OutputCost = r.CostMicros-r.OutputCost+cost, cost
	}
	r.Output, r.Bound = output, true
	for l := first; l != nil; l = l.up() {
		if len(l.paths) > 0 {
			l.purse.held[l.prefix+key] = r.Usage
		}
	}
	return nil, nil
}

// survey is how much of an answer the accounts have room for, or the first that
// does not cover the call, or that it is not known yet.
func (p *purse) survey(paths []string, r *node.Reserve) (can int, lacking *engine.Account, wait bool) {
	can = r.Output
	if len(paths) > 0 && len(p.absent) > 0 {
		return 0, nil, true
	}
	for _, path := range paths {
		a := p.accounts[path]
		free, others := p.free(a)
		room := affordable(r, a.Max, free)
		if room < min(leastOutput, r.Output) {
			copied := *a
			return 0, &copied, others
		}
		can = min(can, room)
	}
	return can, nil, false
}

// short is the budget that does not cover a call, or, where all do by now, the
// first that binds it.
func (p *purse) short(paths []string, r *node.Reserve) *engine.Account {
	first := p.chain(paths)
	defer first.lock()()
	var found *engine.Account
	for l := first; l != nil; l = l.up() {
		if found == nil && len(l.paths) > 0 {
			copied := *l.purse.accounts[l.paths[0]]
			found = l.lacks(&copied)
		}
		if _, lacking, _ := l.purse.survey(l.paths, r); lacking != nil {
			return l.lacks(lacking)
		}
	}
	return found
}

// free is what is left of an account, and whether others hold something of it.
func (p *purse) free(a *engine.Account) (free engine.Usage, others bool) {
	free = engine.Usage{
		Calls: a.Max.Calls - a.Used.Calls, Input: a.Max.Input - a.Used.Tokens(), CostMicros: a.Max.CostMicros - a.Used.CostMicros,
	}
	for key, u := range p.held {
		if !wholeRun(a.Path) && !within(key, a.Path) {
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

// wholeRun reports whether a budget is one of the run itself, and not of a node.
func wholeRun(path string) bool { return strings.HasPrefix(path, engine.RunBudget) }

// more reserves beside what a call holds what a try of it has cost that failed, so
// that it can be made again; the account is the one that has no room for that.
func (p *purse) more(key string, paths []string, spent engine.Usage) *engine.Account {
	first := p.chain(paths)
	defer first.lock()()
	for l := first; l != nil; l = l.up() {
		if _, lacking, _ := l.purse.survey(l.paths, &node.Reserve{Usage: withoutOutput(spent), OutputCost: 0}); lacking != nil {
			return l.lacks(lacking)
		}
	}
	for l := first; l != nil; l = l.up() {
		if len(l.paths) > 0 {
			l.purse.held[l.prefix+key] = l.purse.held[l.prefix+key].Add(spent)
		}
	}
	return nil
}

// withoutOutput is a usage whose output is input, which is not made less.
func withoutOutput(u engine.Usage) engine.Usage {
	u.Input, u.Output = u.Input+u.Output, 0
	return u
}

// settle gives back what a call held and notes what it took.
func (p *purse) settle(key string, paths []string, took engine.Usage) {
	first := p.chain(paths)
	defer first.lock()()
	for l := first; l != nil; l = l.up() {
		delete(l.purse.held, l.prefix+key)
		l.spend(took)
	}
}
