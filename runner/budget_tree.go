package runner

import (
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner/childrun"
)

// parentLedger is the parent's purse as a child's draws on it.
type parentLedger struct {
	ledger *budgetLedger
	run    string   // the parent's id
	child  string   // the child's
	paths  []string // the accounts that bind the node which runs the child
	prefix string   // of the child's keys
	byTool bool     // a tool call waits for the child, so that nobody below can be asked
}

// ledgerLink is one purse of those that a call draws on: its run's, or one of a run
// above.
type ledgerLink struct {
	ledger *budgetLedger
	paths  []string
	prefix string // of the call's key
	run    string // "" for the call's own run
	child  string // the run that draws on it, "" for the call's own
	byTool bool   // a tool call is between the call's run and this one
}

// chain is the purse of a call, from which up leads to those above, once they are
// locked.
func (p *budgetLedger) chain(paths []string) *ledgerLink { return &ledgerLink{ledger: p, paths: paths} }

func (l *ledgerLink) parent() *ledgerLink {
	u := l.ledger.parent
	if u == nil {
		return nil
	}
	return &ledgerLink{ledger: u.ledger, paths: u.paths, prefix: u.prefix + l.prefix, run: u.run, child: u.child, byTool: l.byTool || u.byTool}
}

// accountName is the path of an account, with the run's id where that is one above.
func (l *ledgerLink) accountName(path string) string {
	if l.run == "" {
		return path
	}
	return l.run + "|" + path
}

// accountForCall is an account of the purse as the call knows it. One above a tool call
// asks nobody.
func (l *ledgerLink) accountForCall(a *engine.Account) *engine.Account {
	a.Path = l.accountName(a.Path)
	if l.byTool {
		a.OnLimit = "fail"
	}
	return a
}

// lockAll locks the purses from the call's own up, which is the order everybody
// keeps, and returns what unlocks them.
func (l *ledgerLink) lockAll() func() {
	var locked []*budgetLedger
	for ; l != nil; l = l.parent() {
		l.ledger.mu.Lock()
		locked = append(locked, l.ledger)
	}
	return func() {
		for _, p := range locked {
			p.mu.Unlock()
		}
	}
}

// addUsage notes what was spent, with the purse locked, and wakes who waits.
func (l *ledgerLink) addUsage(took engine.Usage) {
	p := l.ledger
	for _, path := range l.paths {
		a := p.accounts[path]
		a.Used = a.Used.Add(took)
	}
	if l.child != "" {
		p.countChild(l.child, p.childUsage[l.child].Add(took))
	}
	p.wakeWaiters()
}

func (p *budgetLedger) countChild(child string, u engine.Usage) {
	if p.childUsage == nil {
		p.childUsage = make(map[string]engine.Usage)
	}
	p.childUsage[child] = u
}

func (p *budgetLedger) wakeWaiters() {
	if p.released != nil {
		close(p.released)
	}
	p.released = make(chan struct{})
}

// binds reports whether a budget of this run or of one above binds calls of an
// attempt with these accounts.
func (p *budgetLedger) binds(paths []string) bool {
	if len(paths) > 0 {
		return true
	}
	first := p.chain(paths)
	defer first.lockAll()()
	for l := first; l != nil; l = l.parent() {
		if len(l.paths) > 0 {
			return true
		}
	}
	return false
}

// attachParent links the ledger of a child run to its parent's, so that calls of the child
// also reserve in the budgets of the node that runs it.
func (p *budgetLedger) attachParent(parent *Execution, child string, budgets *childrun.Budgets) {
	up := &parent.m.ledger
	paths := up.register(budgets.Accounts)
	up.mu.Lock()
	delete(up.unreported, child)
	up.wakeWaiters()
	up.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parent = &parentLedger{ledger: up, run: parent.ID, child: child, paths: paths, prefix: budgets.Node + "/" + child + "/"}
}

// attachCaller has the purse of a run that a tool call waits for draw on its caller's,
// which is told what the run has spent before.
func (p *budgetLedger) attachCaller(up *budgetLedger, c *toolRun, spent engine.Usage) {
	p.mu.Lock()
	p.parent = &parentLedger{ledger: up, run: c.caller, child: c.run, paths: c.accounts, prefix: c.path + "/" + c.run + "/", byTool: true}
	p.mu.Unlock()
	first := up.chain(c.accounts)
	defer first.lockAll()()
	known := up.childUsage[c.run]
	more := usageBeyond(spent, known)
	up.countChild(c.run, known.Add(more))
	for l := first; l != nil; l = l.parent() {
		l.addUsage(more)
	}
}

// expectReports notes the children of a run that was loaded: what the journal has
// counted of each, and which have more to tell.
func (p *budgetLedger) expectReports(open []engine.OpenChild) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.childUsage, p.unreported = nil, nil
	for i := range open {
		c := &open[i]
		if c.Report != nil {
			p.countChild(c.Start.Run, c.Report.Usage)
		}
		if !c.Active() {
			continue
		}
		if p.unreported == nil {
			p.unreported = make(map[string]bool)
		}
		p.unreported[c.Start.Run] = true
	}
}

// applyReport takes over what a report says that a child has spent beyond what the purse
// saw itself: before it was loaded, or while another process drove the child.
func (p *budgetLedger) applyReport(e *engine.ChildReported) {
	node, _, _ := strings.Cut(e.ID, ":")
	first := p.chain(nil)
	defer first.lockAll()()
	known := p.childUsage[e.Run]
	delete(p.unreported, e.Run)
	more := usageBeyond(e.Usage, known)
	p.countChild(e.Run, known.Add(more))
	for path := range p.accounts {
		if isRunBudget(path) || path == node || belongsTo(node+"/", path) {
			first.paths = append(first.paths, path)
		}
	}
	for l := first; l != nil; l = l.parent() {
		l.addUsage(more)
	}
}

// usageBeyond is by how much each part of u is more than o's.
func usageBeyond(u, o engine.Usage) engine.Usage {
	return engine.Usage{
		Calls: max(u.Calls-o.Calls, 0), Input: max(u.Input-o.Input, 0), Cached: max(u.Cached-o.Cached, 0),
		Output: max(u.Output-o.Output, 0), Reasoning: max(u.Reasoning-o.Reasoning, 0),
		CostMicros: max(u.CostMicros-o.CostMicros, 0), Estimated: max(u.Estimated-o.Estimated, 0),
	}
}
