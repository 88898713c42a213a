package runner

import (
	"strings"

	"github.com/weir-run/weir/engine"
)

// upper is the parent's purse as a child's draws on it.
type upper struct {
	purse  *purse
	run    string   // the parent's id
	child  string   // the child's
	paths  []string // the accounts that bind the node which runs the child
	prefix string   // of the child's keys
	called bool     // a tool call waits for the child, so that nobody below can be asked
}

// link is one purse of those that a call draws on: its run's, or one of a run
// above.
type link struct {
	purse  *purse
	paths  []string
	prefix string // of the call's key
	run    string // "" for the call's own run
	child  string // the run that draws on it, "" for the call's own
	called bool   // a tool call is between the call's run and this one
}

// chain is the purse of a call, from which up leads to those above, once they are
// locked.
func (p *purse) chain(paths []string) *link { return &link{purse: p, paths: paths} }

func (l *link) up() *link {
	u := l.purse.up
	if u == nil {
		return nil
	}
	return &link{purse: u.purse, paths: u.paths, prefix: u.prefix + l.prefix, run: u.run, child: u.child, called: l.called || u.called}
}

// name is the path of an account, with the run's id where that is one above.
func (l *link) name(path string) string {
	if l.run == "" {
		return path
	}
	return l.run + "|" + path
}

// lacks is an account of the purse as the call knows it. One above a tool call
// asks nobody.
func (l *link) lacks(a *engine.Account) *engine.Account {
	a.Path = l.name(a.Path)
	if l.called {
		a.OnLimit = "fail"
	}
	return a
}

// lock locks the purses from the call's own up, which is the order everybody
// keeps, and returns what unlocks them.
func (l *link) lock() func() {
	var locked []*purse
	for ; l != nil; l = l.up() {
		l.purse.mu.Lock()
		locked = append(locked, l.purse)
	}
	return func() {
		for _, p := range locked {
			p.mu.Unlock()
		}
	}
}

// spend notes what was spent, with the purse locked, and wakes who waits.
func (l *link) spend(took engine.Usage) {
	p := l.purse
	for _, path := range l.paths {
		a := p.accounts[path]
		a.Used = a.Used.Add(took)
	}
	if l.child != "" {
		p.count(l.child, p.kin[l.child].Add(took))
	}
	p.wake()
}

func (p *purse) count(child string, u engine.Usage) {
	if p.kin == nil {
		p.kin = make(map[string]engine.Usage)
	}
	p.kin[child] = u
}

func (p *purse) wake() {
	if p.back != nil {
		close(p.back)
	}
	p.back = make(chan struct{})
}

// binds reports whether a budget of this run or of one above binds calls of an
// attempt with these accounts.
func (p *purse) binds(paths []string) bool {
	if len(paths) > 0 {
		return true
	}
	first := p.chain(paths)
	defer first.lock()()
	for l := first; l != nil; l = l.up() {
		if len(l.paths) > 0 {
			return true
		}
	}
	return false
}

// draw has the purse of a child run draw on its parent's too, on the accounts of
// the node that runs it.
func (p *purse) draw(parent *Execution, child string, accounts *childAccounts) {
	up := &parent.m.purse
	paths := up.open(accounts.list)
	up.mu.Lock()
	delete(up.absent, child)
	up.wake()
	up.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = &upper{purse: up, run: parent.ID, child: child, paths: paths, prefix: accounts.node + "/" + child + "/"}
}

// lend has the purse of a run that a tool call waits for draw on its caller's,
// which is told what the run has spent before.
func (p *purse) lend(up *purse, c *call, spent engine.Usage) {
	p.mu.Lock()
	p.up = &upper{purse: up, run: c.caller, child: c.run, paths: c.accounts, prefix: c.path + "/" + c.run + "/", called: true}
	p.mu.Unlock()
	first := up.chain(c.accounts)
	defer first.lock()()
	known := up.kin[c.run]
	more := beyond(spent, known)
	up.count(c.run, known.Add(more))
	for l := first; l != nil; l = l.up() {
		l.spend(more)
	}
}

// expect notes the children of a run that was loaded: what the journal has
// counted of each, and which have more to tell.
func (p *purse) expect(open []engine.OpenChild) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kin, p.absent = nil, nil
	for i := range open {
		c := &open[i]
		if c.Report != nil {
			p.count(c.Start.Run, c.Report.Usage)
		}
		if !c.Goes() {
			continue
		}
		if p.absent == nil {
			p.absent = make(map[string]bool)
		}
		p.absent[c.Start.Run] = true
	}
}

// hear takes over what a report says that a child has spent beyond what the purse
// saw itself: before it was loaded, or while another process drove the child.
func (p *purse) hear(e *engine.ChildReported) {
	node, _, _ := strings.Cut(e.ID, ":")
	first := p.chain(nil)
	defer first.lock()()
	known := p.kin[e.Run]
	delete(p.absent, e.Run)
	more := beyond(e.Usage, known)
	p.count(e.Run, known.Add(more))
	for path := range p.accounts {
		if wholeRun(path) || path == node || within(node+"/", path) {
			first.paths = append(first.paths, path)
		}
	}
	for l := first; l != nil; l = l.up() {
		l.spend(more)
	}
}

// beyond is by how much each part of u is more than o's.
func beyond(u, o engine.Usage) engine.Usage {
	return engine.Usage{
		Calls: max(u.Calls-o.Calls, 0), Input: max(u.Input-o.Input, 0), Cached: max(u.Cached-o.Cached, 0),
		Output: max(u.Output-o.Output, 0), Reasoning: max(u.Reasoning-o.Reasoning, 0),
		CostMicros: max(u.CostMicros-o.CostMicros, 0), Estimated: max(u.Estimated-o.Estimated, 0),
	}
}
