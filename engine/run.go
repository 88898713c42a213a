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
	// Start is the run's first event, nil before it.
	Start *RunStarted

	events int64 // how many were applied
	now    int64 // time of the newest commit, Unix milliseconds
	usage  Usage
	// lists and sizes are of the state, and follow from it.
	lists growing
	sizes *stateSizes
	// forked is the newest fork, nil for a run with a past of its own; shared is
	// what was spent in the past it shares.
	forked      *RunForked
	sharedUsage Usage
	// spent, reserved and raised are for budgets: by node, effect key and budget.
	spent, reserved, increases map[string]Usage
	// approvals are what people allowed for the whole run, by Interrupt.Event.
	approvals map[string]Answer

	root     *scope
	scopes   map[string]*scope
	contexts map[string]*contextState
	state    State
	writers  map[string]*nodeState
	parallel int

	// The agenda: what Decide has yet to answer. Decide may reorder it but
	// never changes what it means.
	ready      nodeHeap
	skips      []*nodeState
	conflicts  []*nodeState // two taken edges on one port
	timedOut   []*nodeState // suspended, and their time is up
	failures   []*nodeState
	breaks     []*nodeState
	finished   []*scope // all nodes done; outputs to be collected
	unneeded   []*nodeState
	cancelling []*scope
	expandable []*nodeState // composites that may start an iteration
	toCancel   []*nodeState

	executing    int // attempts whose function may be running
	waitingNodes int // nodes that wait for somebody
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

// phase is where a node stands, finer than its status.
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

// String is the phase in words, for errors.
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
	pending int32 // pushed edges that are not resolved
	attempt int32
	phase   phase
	status  Status
	// needed is false for a node that runs only when somebody pulls it.
	needed bool
	// entered says that the attempt was started, so that it is resumed next.
	entered bool
	// breakPassed says that its interruptBefore is behind it.
	breakPassed bool
}

// nodeExt holds what few nodes need.
type nodeExt struct {
	grants                   []string
	waitsFor                 []string // the contexts it last stood in line for
	effects                  map[string]*EffectCompleted
	startedEffects           map[string]*EffectStarted
	answers                  map[string]*Answer
	steps                    []string // keys of the steps and notes that were recorded
	waiting                  int      // open interrupts
	children                 int      // of those, child runs
	port                     string
	expansion                *expansion
	earlierIterations        int   // iterations of earlier expansions
	earlierAttemptIterations int   // of those, iterations of earlier attempts
	uncounted                int32 // attempts that were cancelled, which count for nothing
	cutOff                   bool  // the attempt was cancelled and has not gone on
	unhandled                bool  // the failure was final and nothing took it
	failure                  *Error
	metadata                 Values
	micros                   int64
	cached                   bool
}

// Answer is what became of an interrupt.
type Answer struct {
	Value Value
	// Given is false where the wait ended without an answer: a timer.
	Given bool
	By    string
	// Child is how a child run ended, for an interrupt of that kind.
	Child *ChildReported
}

type openInterrupt struct {
	Interrupt
	node     *nodeState
	report   *ChildReported // the newest of a child run
	timedOut bool           // a child run whose time is up: it is to end
}

// NewRun returns a run with no events.
func NewRun(id string, p *Plan) *Run {
	return &Run{
		ID: id, plan: p, scopes: make(map[string]*scope), contexts: make(map[string]*contextState),
		byID: make(map[string]*openInterrupt), due: make(map[string]int64), parallel: 1,
	}
}

// Plan is what the run runs.
func (r *Run) Plan() *Plan { return r.plan }

// Events is how many events were applied.
func (r *Run) Events() int64 { return r.events }

// Now is the time of the newest commit, Unix milliseconds.
func (r *Run) Now() int64 { return r.now }

// Usage is what all effects of the run cost so far.
func (r *Run) Usage() Usage { return r.usage }

// State is the state as of the last event, outside any lane.
func (r *Run) State() State { return r.state }

// Outputs are the outputs of a completed run.
func (r *Run) Outputs() Values { return r.outputs }

// Absent are the outputs of a completed run that have no value, each with the
// reason as text.
func (r *Run) Absent() Values { return r.absent }

// Failure is why the run failed, nil if it did not.
func (r *Run) Failure() *Error { return r.failure }

// CancelRequested reports whether a cancellation was acknowledged.
func (r *Run) CancelRequested() bool { return r.cancelled != nil }

// Idle reports that no attempt is executing.
func (r *Run) Idle() bool { return r.executing == 0 }

// Status is where the run stands. It is Paused when only people or outside
// events can move it and its children; a run that waits for a timer is Running.
func (r *Run) Status() Status {
	switch {
	case r.ended != Pending:
		return r.ended
	case r.Start == nil:
		return Pending
	case r.executing == 0 && len(r.due) == 0 && r.waitingNodes > 0 && !slices.ContainsFunc(r.ready, (*nodeState).startable) && r.childrenPaused():
		return Paused
	}
	return Running
}

// Activity says what a running run does.
type Activity uint8

const (
	// Executing: nodes are at work, or about to be.
	Executing Activity = iota
	// AwaitsChildren: no node is at work, and child runs are.
	AwaitsChildren
	// AwaitsTimers: nothing happens before a timer is due, or somebody answers.
	AwaitsTimers
)

// Activity says what the run does; it is of use while the run's status is Running.
func (r *Run) Activity() Activity {
	switch {
	case r.ended != Pending, r.Start == nil, r.executing > 0, slices.ContainsFunc(r.ready, (*nodeState).startable):
		return Executing
	case !r.childrenPaused():
		return AwaitsChildren
	case len(r.due) > 0:
		return AwaitsTimers
	}
	return Executing
}

// Interrupts lists what the run waits for, oldest first. Timers are not among
// them, and a child run is not but what it waits for: "PATH>ID" for what the
// child of the node at PATH names ID.
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

// Interrupt returns the open interrupt of that id, which may be one of a child
// run, and the path of its node.
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

// path is the node's name in the journal.
func (n *nodeState) path() string { return n.scope.prefix + n.plan.Def.ID }

// ensureExt returns the node's rarely needed part, making it where there is none.
func (n *nodeState) ensureExt() *nodeExt {
	if n.ext == nil {
		n.ext = &nodeExt{}
	}
	return n.ext
}

// node finds the node at a path, nil where there is none (or no longer).
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

// scope is a graph being run: the root, or one iteration of a composite.
type scope struct {
	prefix   string // "" or "refine#2/"
	owner    *nodeState
	number   int // iteration, from 1; 0 for the root
	plan     *GraphPlan
	inputs   Values
	nodes    []nodeState
	edges    []edgeState
	open     int // nodes that are not done
	unneeded int // of those, nodes that nobody wants (yet)
	live     int // attempts executing in the scope and below
	lane     *lane
	cancel   *scopeCancel
	listed   bool // is in finished
}

type edgeState uint8

const (
	edgeUnresolved edgeState = iota
	edgeTaken
	edgeDropped
)

// lane holds what an iteration with isolation `fork` keeps to itself.
type lane struct {
	state   State
	writers map[string]*nodeState
	changes []StateChange
	// bases are the contexts as they stood when the lane was made.
	bases []laneBase
	// contexts are the lane's own forks of them, as they are first used.
	contexts []string
}

// laneBase is a context a lane can see: its name around the lane, and what the
// lane's own is forked from, which is that context or what an earlier turn of
// the lane made of it.
type laneBase struct {
	id, from string
	at       int
}

// scopeCancel says that nothing new may start in a scope, and why.
type scopeCancel struct {
	err *Error // nil for a cancellation
}

// name is the scope's path: "" or "refine#2".
func (s *scope) name() string { return strings.TrimSuffix(s.prefix, "/") }

// cancelled reports whether the scope or one around it is being torn down.
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

// openScope makes the scope of a graph; its entries become ready.
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
	r.scopes[s.name()] = s
	return s
}

// limitTo keeps only what the targets need wanted.
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

// startEntries resolves the entries of a fresh scope.
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

// usesContext reports whether the node has a context at all.
func (n *nodeState) usesContext() bool { return n.plan.Use != flow.ContextNone }
