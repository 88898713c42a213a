package runner

import (
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner/childrun"
)

// parentLedger connects a child's ledger to its parent's.
type parentLedger struct {
	ledger *budgetLedger
	run    string   // the parent's id
	child  string   // the child's
	paths  []string // the accounts of the node that runs the child
	prefix string   // prefix of the child's keys
}

// ledgerLink is one of the ledgers in which a call reserves: that of its run, or of an ancestor run.
type ledgerLink struct {
	ledger *budgetLedger
	paths  []string
	prefix string // prefix of the call's key
	run    string // "" for the call's own run
	child  string // the child run through which the call is linked, "" for the call's own
}

// chain returns the ledger of a call, linked to those of its ancestors, which must be locked.
func (p *budgetLedger) chain(paths []string) *ledgerLink { return &ledgerLink{ledger: p, paths: paths} }

func (l *ledgerLink) parent() *ledgerLink {
	u := l.ledger.parent
	if u == nil {
		return nil
	}
	return &ledgerLink{ledger: u.ledger, paths: u.paths, prefix: u.prefix + l.prefix, run: u.run, child: u.child}
}

// accountName returns the path of an account, with the run's id for an ancestor's account.
func (l *ledgerLink) accountName(path string) string {
	if l.run == "" {
		return path
	}
	return l.run + "|" + path
}

// accountForCall returns the account as it applies to the call.
func (l *ledgerLink) accountForCall(a *engine.Account) *engine.Account {
	a.Path = l.accountName(a.Path)
	return a
}

// lockAll locks the ledgers from the call's own upwards, the order that all callers use, and returns the function
// that unlocks them.
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

// addUsage records usage while the ledger is locked, and wakes waiting calls.
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

// binds reports whether a budget of this run or of an ancestor applies to calls of an attempt with these accounts.
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

// expectReports lists the children of a loaded run: the usage of each that the journal has counted, and which will
// report more.
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

// applyReport counts the part of a child's reported usage that the ledger did not see itself: before the child was
// loaded, or while another process executed it.
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

// usageBeyond returns by how much each part of u exceeds o's.
func usageBeyond(u, o engine.Usage) engine.Usage {
	return engine.Usage{
		Calls: max(u.Calls-o.Calls, 0), Input: max(u.Input-o.Input, 0), Cached: max(u.Cached-o.Cached, 0),
		Output: max(u.Output-o.Output, 0), Reasoning: max(u.Reasoning-o.Reasoning, 0),
		CostMicros: max(u.CostMicros-o.CostMicros, 0), Estimated: max(u.Estimated-o.Estimated, 0),
	}
}
