package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/flow"
)

// Run is one execution of a plan: the fold of its events.
type Run struct {
	ID   string
	plan *Plan
	// Start is the run's first event, nil before it is applied.
	Start *RunStarted

	events int64 // number of applied events
	now    int64 // time of the newest commit, Unix milliseconds
	usage  Usage
	// lists and sizes are derived from the state.
	lists growing
	sizes *stateSizes
	// forked is the newest fork, nil for a run with its own past; shared is what was spent
	// in the shared past.
	forked      *RunForked
	sharedUsage Usage
	// spent, reserved and increases are for budgets: by node, by effect key and by budget.
	spent, reserved, increases map[string]Usage
	// near has budgets whose use came near their limits, until TakeNearBudgets. It is no part of the state.
	near []nearBudget
	// approvals has what people approved for the whole run, by Interrupt.Event.
	approvals map[string]Answer

	root     *scope
	scopes   map[string]*scope
	contexts map[string]*contextState
	state    State
	writers  map[string]*nodeState
	parallel int

	// The agenda: what Decide has yet to decide. Decide may reorder it, but that never
	// changes its meaning.
	ready      nodeHeap
	skips      []*nodeState
	conflicts  []*nodeState // two taken edges into one port
	timedOut   []*nodeState // suspended nodes that timed out
	failures   []*nodeState
	breaks     []*nodeState
	finished   []*scope // all nodes done; outputs to be collected
	unneeded   []*nodeState
	cancelling []*scope
	expandable []*nodeState // composites that may start an iteration
	toCancel   []*nodeState

	executing    int // attempts whose function may be running
	waitingNodes int // suspended nodes that wait for an answer or event
	children     int // child runs that nodes wait for
	interrupts   []*openInterrupt
	byID         map[string]*openInterrupt
	timers       timerHeap
	due          map[string]int64 // live timers

	cancelled *CancelRequested
	failure   *Error
	ended     Status // Completed, Failed or Cancelled; Pending before
	outputs   Values
	absent    Values
}

// phase is the detailed status of a node.
type phase uint8

const (
	phaseIdle        phase = iota
	phaseReady             // in the ready heap or waiting for a context
	phaseExecuting         // its function may be running
	phasePulling           // waits for the sources of a lazy port
	phaseExpanding         // waits for iterations
	phaseWaiting           // waits for its interrupts
	phaseBreakBefore       // an interruptBefore is open
	phaseBreakAfter        // done, an interruptAfter is open
	phaseFailing           // failed; what follows is not decided
	phaseRetrying          // waits for its retry timer
	phaseDone
)

// String returns the phase in words, for errors.
func (p phase) String() string {
	return [...]string{
		"idle", "ready", "executing", "pulling", "expanding", "waiting", "at a breakpoint", "held", "failing", "retrying", "done",
	}[p]
}

// nodeState is one node of one scope.
type nodeState struct {
	scope   *scope
	plan    *NodePlan
	outputs Values
	ext     *nodeExt
	started int64 // Unix milliseconds, of the attempt
	pending int32 // number of unresolved pushed edges
	attempt int32
	phase   phase
	status  Status
	// needed is false for a node that runs only when it is pulled.
	needed bool
	// entered says that the attempt has started, so that the next entry resumes it.
	entered bool
	// breakPassed says that its interruptBefore is resolved.
	breakPassed bool
}

// nodeExt holds state that few nodes need.
type nodeExt struct {
	grants                   []string
	waitsFor                 []string // the contexts that it waits for
	effects                  map[string]*EffectCompleted
	startedEffects           map[string]*EffectStarted
	answers                  map[string]*Answer
	steering                 []*SteeringAdded          // messages of people, oldest first
	steeringTaken            map[string]*SteeringTaken // by the key of the model call
	steps                    []string                  // keys of the recorded steps and notes
	waiting                  int                       // number of open interrupts
	children                 int                       // of those, child runs
	port                     string
	expansion                *expansion
	earlierIterations        int   // iterations of earlier expansions
	earlierAttemptIterations int   // of those, iterations of earlier attempts
	uncounted                int32 // number of cancelled attempts, which do not count
	cutOff                   bool  // the attempt was cancelled and has not continued
	unhandled                bool  // the failure was final and not handled
	failure                  *Error
	metadata                 Values
	micros                   int64
	cached                   bool
}

// Answer is the outcome of an interrupt.
type Answer struct {
	Value Value
	// Given is false if the wait ended without an answer, as for a timer, and if the child run has continued after its
	// failure, so that the node waits for it again.
	Given bool
	By    string
	// Child is the newest report of a child run, for an interrupt of that kind: its outcome if Given.
	Child *ChildReported
}

// awaited reports whether the node is to wait for its child run again.
func (a *Answer) awaited() bool { return a.Child != nil && !a.Given }

type openInterrupt struct {
	Interrupt
	node     *nodeState
	report   *ChildReported // newest report of a child run
	timedOut bool           // the child run timed out and must end
	// increased is what had been added to the budgets that its questions are about when they were asked.
	increased map[string]Usage
}

// NewRun returns a run with no events.
func NewRun(id string, p *Plan) *Run {
	return &Run{
		ID: id, plan: p, scopes: make(map[string]*scope), contexts: make(map[string]*contextState),
		byID: make(map[string]*openInterrupt), due: make(map[string]int64), parallel: 1,
	}
}

// Plan returns the plan of the run.
func (r *Run) Plan() *Plan { return r.plan }

// Events returns the number of applied events.
func (r *Run) Events() int64 { return r.events }

// Now returns the time of the newest commit, in Unix milliseconds.
func (r *Run) Now() int64 { return r.now }

// Usage returns what all effects of the run cost so far.
func (r *Run) Usage() Usage { return r.usage }

// State returns the state as of the last event, outside any lane.
func (r *Run) State() State { return r.state }

// Outputs returns the outputs of a completed run.
func (r *Run) Outputs() Values { return r.outputs }

// Absent returns the outputs of a completed run that have no value, each with the reason as
// text.
func (r *Run) Absent() Values { return r.absent }

// Failure returns the error of a failed run, nil otherwise.
func (r *Run) Failure() *Error { return r.failure }

// CancelRequested reports whether a cancellation was acknowledged.
func (r *Run) CancelRequested() bool { return r.cancelled != nil }

// Idle reports that no attempt is executing.
func (r *Run) Idle() bool { return r.executing == 0 }

// Status returns the status of the run. It is Paused if only people or outside events can
// continue the run and its children; a run that waits for a timer is Running.
func (r *Run) Status() Status {
	switch {
	case r.ended != Pending:
		return r.ended
	case r.Start == nil:
		return Pending
	case r.executing == 0 && r.nodeTimers() == 0 && r.waitingNodes > 0 && !slices.ContainsFunc(r.ready, (*nodeState).startable) && r.childrenPaused():
		return Paused
	}
	return Running
}

// Activity is what a run with status Running is doing.
type Activity uint8

const (
	// Executing: a node is executing or about to start.
	Executing Activity = iota
	// AwaitsChildren: no node is executing, but a child run is.
	AwaitsChildren
	// AwaitsTimers: the run continues when a timer fires or an answer arrives.
	AwaitsTimers
)

// Activity returns what the run is doing. It is meaningful only while the status is
// Running.
func (r *Run) Activity() Activity {
	switch {
	case r.ended != Pending, r.Start == nil, r.executing > 0, slices.ContainsFunc(r.ready, (*nodeState).startable):
		return Executing
	case !r.childrenPaused():
		return AwaitsChildren
	case r.nodeTimers() > 0:
		return AwaitsTimers
	}
	return Executing
}

// Interrupts lists what the run waits for, oldest first, without timers. In place of a
// child run it lists that run's interrupts: "PATH>ID" for the interrupt ID of the child of
// the node at PATH.
func (r *Run) Interrupts() []Interrupt {
	var out []Interrupt
	for _, i := range r.interrupts {
		switch i.Kind {
		case AwaitTimer:
		case AwaitChild:
			out = i.appendSurfaced(out)
		case AwaitInput, AwaitEvent, AwaitBreak, AwaitEffect, AwaitApproval, AwaitBudget:
			out = append(out, i.Interrupt)
		}
	}
	return out
}

// Interrupt returns the open interrupt with that id, which may belong to a child run, and
// the path of its node.
func (r *Run) Interrupt(id string) (i Interrupt, node string, ok bool) {
	if o := r.byID[id]; o != nil {
		return o.Interrupt, o.node.path(), true
	}
	outer, _, inside := strings.Cut(id, ">")
	if !inside {
		return Interrupt{}, "", false
	}
	for _, o := range r.interrupts {
		if o.Kind != AwaitChild || childPathPrefix(o.ID) != outer {
			continue
		}
		for _, i := range o.appendSurfaced(nil) {
			if i.ID == id {
				return i, o.node.path(), true
			}
		}
	}
	return Interrupt{}, "", false
}

func itoa(i int) string { return strconv.Itoa(i) }

// path returns the node's path, its name in the journal.
func (n *nodeState) path() string { return n.scope.prefix + n.plan.Def.ID }

// ensureExt returns the node's rarely used part, creating it on first use.
func (n *nodeState) ensureExt() *nodeExt {
	if n.ext == nil {
		n.ext = &nodeExt{}
	}
	return n.ext
}

// node finds the node at a path, nil if it does not exist.
func (r *Run) node(path string) *nodeState {
	s, id := r.root, path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		s, id = r.scopes[path[:i]], path[i+1:]
	}
	if s == nil {
		return nil
	}
	i, ok := s.plan.index[id]
	if !ok {
		return nil
	}
	return &s.nodes[i]
}

// scope is a graph that is being executed: the root, or one iteration of a composite.
type scope struct {
	prefix   string // "" or "refine#2/"
	owner    *nodeState
	number   int // iteration, from 1; 0 for the root
	plan     *GraphPlan
	branch   *branchPlan // the part of the plan that the scope executes, nil for all of it
	inputs   Values
	nodes    []nodeState
	edges    []edgeState
	open     int // number of nodes that have not ended
	unneeded int // of those, nodes that are not needed (yet)
	live     int // attempts executing in the scope and below it
	lane     *lane
	cancel   *scopeCancel
	listed   bool // whether it is in Run.finished
}

type edgeState uint8

const (
	edgeUnresolved edgeState = iota
	edgeTaken
	edgeDropped
)

// lane holds the private contexts and state of an iteration with isolation `fork`.
type lane struct {
	state   State
	writers map[string]*nodeState
	changes []StateChange
	// bases are the contexts as of the lane's creation.
	bases []laneBase
	// contexts are the lane's own forks of them, in the order of their first use.
	contexts []string
}

// laneBase is a context that a lane can see: its name outside the lane, and the context
// that the lane's fork starts from, which is that context or the fork of an earlier
// iteration of the lane.
type laneBase struct {
	id, from string
	at       int
}

// scopeCancel says that no node may start in a scope, and why.
type scopeCancel struct {
	err *Error // nil if the run was cancelled
}

// name returns the scope's path: "" or "refine#2".
func (s *scope) name() string { return strings.TrimSuffix(s.prefix, "/") }

// cancelled reports whether the scope or one around it is being cancelled.
func (s *scope) cancelled() bool {
	for ; s != nil; s = s.parent() {
		if s.cancel != nil {
			return true
		}
	}
	return false
}

func (s *scope) parent() *scope {
	if s.owner == nil {
		return nil
	}
	return s.owner.scope
}

// laneOf returns the innermost lane around the scope, nil outside any.
func (s *scope) laneOf() (*lane, *scope) {
	for ; s != nil; s = s.parent() {
		if s.lane != nil {
			return s.lane, s
		}
	}
	return nil, nil
}

// openScope creates the scope of a graph and readies its entry nodes.
func (r *Run) openScope(p *GraphPlan, owner *nodeState, number int, inputs Values) *scope {
	s := &scope{
		owner: owner, number: number, plan: p, inputs: inputs,
		nodes: make([]nodeState, len(p.Nodes)), edges: make([]edgeState, len(p.edges)), open: len(p.Nodes),
	}
	if owner != nil {
		s.prefix = owner.path() + "#" + itoa(number) + "/"
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		n.scope, n.plan, n.pending, n.needed = s, &p.Nodes[i], p.Nodes[i].pushed, true
		if p.Nodes[i].lazyOnly {
			n.needed = false
			s.unneeded++
		}
	}
	if owner != nil && owner.plan.branches != nil {
		s.limitToBranch(&owner.plan.branches[(number-1)%len(owner.plan.branches)])
	}
	r.scopes[s.name()] = s
	return s
}

// limitTo marks as needed only what the targets depend on.
func (s *scope) limitTo(targets []string) {
	if len(targets) == 0 {
		return
	}
	need := s.plan.needed(targets)
	s.unneeded = 0
	for i := range s.nodes {
		s.nodes[i].needed = need[i]
		if !need[i] {
			s.unneeded++
		}
	}
}

// startEntries resolves the entry nodes of a new scope.
func (r *Run) startEntries(s *scope) {
	for _, i := range s.plan.entries {
		r.schedule(&s.nodes[i])
	}
	r.checkFinished(s)
}

// lessInFlowOrder orders nodes by flow order, across scopes.
func lessInFlowOrder(a, b *nodeState) bool {
	for depth(a.scope) > depth(b.scope) {
		if a.scope.owner == b {
			return false
		}
		a = a.scope.owner
	}
	for depth(b.scope) > depth(a.scope) {
		if b.scope.owner == a {
			return true
		}
		b = b.scope.owner
	}
	for a.scope != b.scope {
		if a.scope.owner == b.scope.owner {
			return a.scope.number < b.scope.number
		}
		a, b = a.scope.owner, b.scope.owner
	}
	return a.plan.Index < b.plan.Index
}

func depth(s *scope) int {
	d := 0
	for s.owner != nil {
		d++
		s = s.owner.scope
	}
	return d
}

// usesContext reports whether the node uses a context.
func (n *nodeState) usesContext() bool { return n.plan.Use != flow.ContextNone }
