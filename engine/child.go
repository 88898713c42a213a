package engine

import (
	"slices"
	"strings"
)

// OpenChild is a child run that a node waits for.
type OpenChild struct {
	// ID is the id of the interrupt, Node the path of the node.
	ID, Node string
	Start    *ChildStart
	// Report is the newest report, nil before the first.
	Report *ChildReported
	// ToCancel marks a child that must be cancelled: it timed out, its node failed, or the
	// scope around it is being cancelled and waits for its end.
	ToCancel bool
}

// Prefix is what the ids of the child's questions begin with in its parent: PREFIX>ID.
func (c *OpenChild) Prefix() string { return childPathPrefix(c.ID) }

// Active reports whether the child may be executing: it has not reported that it only waits
// for people.
func (c *OpenChild) Active() bool { return c.Report == nil || c.Report.Status != Paused }

// OpenChildren lists the child runs that nodes wait for, oldest first; nil if there are
// none.
func (r *Run) OpenChildren() []OpenChild {
	if r.children == 0 {
		return nil
	}
	out := make([]OpenChild, 0, r.children)
	for _, o := range r.interrupts {
		if o.Kind == AwaitChild {
			out = append(out, o.child())
		}
	}
	return out
}

// OpenChild returns the open child run with that interrupt.
func (r *Run) OpenChild(id string) (c OpenChild, ok bool) {
	o := r.byID[id]
	if o == nil || o.Kind != AwaitChild {
		return c, false
	}
	return o.child(), true
}

// ChildInterrupt splits an interrupt id of the form "PATH>ID" into the child run that waits
// and the id that the child uses.
func (r *Run) ChildInterrupt(id string) (c OpenChild, inner string, ok bool) {
	outer, inner, found := strings.Cut(id, ">")
	if !found {
		return c, "", false
	}
	for _, o := range r.interrupts {
		if o.Kind == AwaitChild && childPathPrefix(o.ID) == outer {
			return o.child(), inner, true
		}
	}
	return c, "", false
}

func (o *openInterrupt) child() OpenChild {
	return OpenChild{ID: o.ID, Node: o.node.path(), Start: o.Child, Report: o.report, ToCancel: o.toCancel()}
}

// toCancel reports whether a child must be cancelled.
func (o *openInterrupt) toCancel() bool { return o.timedOut || o.node.cancelsChildren() }

// cancelsChildren reports whether the node's open children must be cancelled.
func (n *nodeState) cancelsChildren() bool { return n.phase == phaseFailing || n.scope.cancelled() }

// ChildName is the name in the interrupt of a node's only child run. The questions of that
// child are prefixed with the node's path.
const ChildName = "child"

// childPathPrefix returns the part of a child's interrupt id that precedes the ">" in the ids of
// the child's own interrupts: the path, if the node runs one flow.
func childPathPrefix(id string) string {
	i := strings.LastIndex(id, ":"+ChildName+"#1")
	if i < 0 {
		return id
	}
	if rest := id[i+len(ChildName)+3:]; rest == "" || rest[0] == '.' { // ".2" belongs to the second attempt
		return id[:i]
	}
	return id
}

// BelowChild returns the path "PATH>REST" of something in a child run, of which id is the interrupt in the parent.
func BelowChild(id, rest string) string { return childPathPrefix(id) + ">" + rest }

// appendSurfaced appends the interrupts of a child in the form in which its parent shows
// them.
func (o *openInterrupt) appendSurfaced(out []Interrupt) []Interrupt {
	if o.report == nil || o.toCancel() {
		return out
	}
	for _, i := range o.report.Interrupts {
		i.ID = childPathPrefix(o.ID) + ">" + i.ID
		out = append(out, i)
	}
	return out
}

// childrenPaused reports whether all open children wait for people.
func (r *Run) childrenPaused() bool {
	if r.children == 0 {
		return true
	}
	return !slices.ContainsFunc(r.interrupts, func(o *openInterrupt) bool {
		return o.Kind == AwaitChild && (o.report == nil || o.report.Status != Paused || o.toCancel())
	})
}

// childOpened and childClosed count the open children. While a node has any, it counts as
// live in its scopes, so that no scope around it ends before them.
func (r *Run) childOpened(n *nodeState) {
	r.children++
	if n.ext.children++; n.ext.children == 1 {
		n.scope.addLive(1)
	}
}

func (r *Run) childClosed(n *nodeState) {
	r.children--
	if n.ext.children--; n.ext.children > 0 {
		return
	}
	n.scope.addLive(-1)
	if n.phase == phaseFailing { // the failure can be decided now
		r.failures = append(r.failures, n)
	}
}

func (s *scope) addLive(by int) {
	for ; s != nil; s = s.parent() {
		s.live += by
	}
}

// HasOpenChild reports whether a child run of the node at path is open.
func (r *Run) HasOpenChild(path string) bool {
	n := r.node(path)
	return n != nil && n.hasOpenChild()
}

// hasOpenChild reports whether a child of the node is open.
func (n *nodeState) hasOpenChild() bool { return n.ext != nil && n.ext.children > 0 }

func (r *Run) applyReport(e *ChildReported) error {
	if r.ended == Failed {
		return r.reopenByReport(e)
	}
	o := r.byID[e.ID]
	if o == nil || o.Kind != AwaitChild {
		return invalid("%s: no child run is open as %s", e.Kind(), e.ID)
	}
	r.spendChild(o.node, o.report, e)
	if !e.Status.Ended() {
		o.report = e
		r.noteIncreases(o)
		return nil
	}
	return r.resolveInterrupt(e.ID, Answer{Given: true, Child: o.withTimeout(e)})
}

// withTimeout returns the last report of a child, with the reason for its cancellation if
// it timed out.
func (o *openInterrupt) withTimeout(e *ChildReported) *ChildReported {
	if !o.timedOut || e.Status != Cancelled || e.Error != nil {
		return e
	}
	late := *e
	late.Error = &Error{
		Code: CodeTimeout, Message: "it took longer than its node may, and was cancelled",
		Hint: "increase `timeout:` of the node, or add `retry:`, which starts another child run",
	}
	return &late
}

// spendChild charges the node with what the child spent since its last report.
func (r *Run) spendChild(n *nodeState, before, now *ChildReported) {
	took := now.Usage
	if before != nil {
		took = took.minus(before.Usage)
	}
	if took != (Usage{}) {
		r.addUsage(n.path(), took)
	}
	for _, a := range now.Increases {
		more, path := a.Max, a.Path
		if before != nil {
			more = more.minus(increasedBy(before, path))
		}
		if own, mine := strings.CutPrefix(path, r.ID+"|"); mine {
			path = own
		}
		setInMap(&r.increases, path, r.increases[path].Add(more))
	}
}

func increasedBy(e *ChildReported, path string) Usage {
	for _, a := range e.Increases {
		if a.Path == path {
			return a.Max
		}
	}
	return Usage{}
}

func (u Usage) minus(o Usage) Usage {
	return Usage{
		u.Calls - o.Calls, u.Input - o.Input, u.Cached - o.Cached,
		u.Output - o.Output, u.Reasoning - o.Reasoning, u.CostMicros - o.CostMicros, u.Estimated - o.Estimated,
	}
}

// AwaitsChild reports whether a report of the child with that interrupt has an effect: it
// is open, or its failure made the run fail.
func (r *Run) AwaitsChild(id string) bool {
	if o := r.byID[id]; o != nil && o.Kind == AwaitChild {
		return true
	}
	return r.ended == Failed && r.failedBy(id) != nil
}

// failedBy returns the node that failed because that child failed.
func (r *Run) failedBy(id string) *nodeState {
	path, _, _ := strings.Cut(id, ":")
	n := r.node(path)
	if n == nil || n.phase != phaseDone || !n.unfinished() || n.ext == nil {
		return nil
	}
	if a := n.ext.answers[id]; a == nil || a.Child == nil || a.Child.Status == Completed {
		return nil
	}
	return n
}

// reopenByReport makes a failed run continue because the child that made it fail has
// completed since, after a person intervened, or waits for people. The node is entered
// again; it finds the outcome, or waits for the same child again.
func (r *Run) reopenByReport(e *ChildReported) error {
	n := r.failedBy(e.ID)
	if n == nil || !e.Reopens() {
		return invalid("%s follows the end of the run", e.Kind())
	}
	r.spendChild(n, n.ext.answers[e.ID].Child, e)
	r.reopenAfterFailure(n)
	n.ext.answers[e.ID] = &Answer{Given: e.Status.Ended(), Child: e}
	n.ext.unhandled, n.ext.failure = false, nil
	n.entered, n.breakPassed = true, true
	if e.Status == Paused && n.plan.Def.Timeout.Total > 0 {
		n.started = r.now // the time before the person intervened does not count
	}
	r.makeReady(n)
	return nil
}

// Reopens reports whether the report makes a run continue that failed because of the child.
func (e *ChildReported) Reopens() bool { return e.Status == Completed || e.Status == Paused }

// CommittedUsage returns what the run has spent, plus the reservations of calls in flight.
func (r *Run) CommittedUsage() Usage {
	u := r.usage
	// order: a sum of whole numbers.
	for _, held := range r.reserved {
		u = u.Add(held)
	}
	return u
}

// IncreasesAbove returns the increases that people made, in this run and in runs below it,
// to budgets of runs above it: Max by "RUN|PATH", sorted; nil if there are none.
func (r *Run) IncreasesAbove() []Account {
	var out []Account
	// order: sorted below.
	for path, u := range r.increases {
		if strings.Contains(path, "|") {
			out = append(out, Account{Path: path, Max: u})
		}
	}
	slices.SortFunc(out, func(a, b Account) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// ShareContext is the isolation of a child that continues its node's context. No other node
// writes the context in the meantime.
const ShareContext = "share"

func sharesContext(waits []Interrupt) bool {
	return slices.ContainsFunc(waits, func(i Interrupt) bool { return i.Child != nil && i.Child.Isolation == ShareContext })
}
