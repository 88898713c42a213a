package engine

import (
	"slices"

	"github.com/weir-run/weir/flow"
)

// Entry is everything that a node's function needs, as of the event that started or resumed
// it. Its parts are immutable.
type Entry struct {
	Path    string
	Plan    *NodePlan
	Attempt int
	Started int64 // Unix milliseconds, of the attempt's first start
	Resumed bool
	State   State
	// Inputs are the values of plain edges, in port order.
	Inputs Values
	// Bound names the ports whose templates can be evaluated.
	Bound []string
	// Contexts are the ids that the node uses, its own first; Grants are those it may
	// write.
	Contexts, Grants []string
	// Port is the port that the node pulled last, "" for none.
	Port string
	// Iterations are the outputs of a composite's newest expansion, and Before is the
	// number of iterations in earlier expansions of this attempt.
	Iterations        []Values
	EarlierIterations int
	// Race is the outcome of a race, nil if the node's newest expansion is none.
	Race *RaceOutcome
	// ItemErrors are the failures by item, nil unless the newest expansion tolerates failures.
	ItemErrors []*Error
}

// Entry returns the entry of the executing node at the path.
func (r *Run) Entry(path string) (Entry, bool) {
	n := r.node(path)
	if n == nil || n.phase != phaseExecuting {
		return Entry{}, false
	}
	e := Entry{Path: path, Plan: n.plan, Attempt: int(n.attempt), Started: n.started, State: r.stateOf(n), Inputs: n.inputs()}
	for i := range n.plan.bound {
		if b := &n.plan.bound[i]; n.templateReadable(b) {
			e.Bound = append(e.Bound, b.name)
		}
	}
	if n.usesContext() {
		e.Contexts = r.contextsOf(n)
	}
	if x := n.ext; x != nil {
		e.Grants, e.Port, e.EarlierIterations = x.grants, x.port, x.earlierIterations-x.earlierAttemptIterations
		if x.expansion != nil {
			e.Iterations, e.Race, e.ItemErrors = x.expansion.outputs, n.raceOutcome(), n.itemErrors()
		}
		e.Resumed = x.answers != nil || x.effects != nil || x.startedEffects != nil || x.steps != nil || x.steering != nil
	}
	return e, true
}

// ContextsOf returns the contexts that the node at path uses, its own first, and whether it
// may write them; nil if it uses none.
func (r *Run) ContextsOf(path string) (ids []string, writes bool) {
	n := r.node(path)
	if n == nil || !n.usesContext() {
		return nil, false
	}
	return r.contextsOf(n), n.plan.Use == flow.ContextWrite
}

// inputs collects the values of plain edges.
func (n *nodeState) inputs() Values {
	var out Values
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		e := &n.scope.plan.edges[i]
		if n.scope.edges[i] != edgeTaken || e.lazy || e.partial || e.kind == flow.EdgeControl {
			continue
		}
		v, ok := n.scope.nodes[e.from].outputs.Get(e.fromPort)
		if !ok {
			continue
		}
		if !slices.Contains(n.plan.many, e.toPort) {
			if out == nil {
				out = make(Values, 0, n.plan.inHi-n.plan.inLo)
			}
			out = append(out, Named{e.toPort, v})
			continue
		}
		out = collect(out, e.toPort, v)
	}
	return out
}

// collect adds v to the list under name.
func collect(out Values, name string, v Value) Values {
	for i := range out {
		if out[i].Name == name {
			out[i].Value = append(out[i].Value.([]any), v)
			return out
		}
	}
	return append(out, Named{name, []any{v}})
}

// Pulled returns the value of a lazy port. done is false while its sources have not ended;
// ok is false if they gave no value. For a port with a template, the caller must evaluate
// the template, and ok says whether it can be evaluated.
func (r *Run) Pulled(path, port string) (v Value, ok, done bool) {
	n := r.node(path)
	if n == nil || !n.pullResolved(port) {
		return nil, false, false
	}
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		e := &n.scope.plan.edges[i]
		if e.toPort != port || n.scope.edges[i] != edgeTaken || e.partial {
			continue
		}
		x, there := n.scope.nodes[e.from].outputs.Get(e.fromPort)
		switch {
		case !there:
		case !slices.Contains(n.plan.many, port):
			return x, true, true
		default:
			list, _ := v.([]any)
			v, ok = append(list, x), true
		}
	}
	for i := range n.plan.bound {
		if b := &n.plan.bound[i]; b.name == port {
			return nil, n.templateReadable(b), true
		}
	}
	return v, ok, true
}

// Origin names the output that the port's value came from unchanged, through nodes that
// only pass values on; "" if the value was computed on the way.
func (r *Run) Origin(path, port string) string {
	n := r.node(path)
	for n != nil {
		e := n.single(port)
		if e == nil {
			return ""
		}
		from := &n.scope.nodes[e.from]
		if !from.plan.Spec.PassThrough {
			return from.path() + "." + e.fromPort
		}
		n, port = from, e.fromPort
	}
	return ""
}

// single returns the one taken plain edge into a port, nil if there is none.
func (n *nodeState) single(port string) *edgePlan {
	for i := n.plan.inLo; i < n.plan.inHi; i++ {
		if e := &n.scope.plan.edges[i]; e.toPort == port && !e.partial && n.scope.edges[i] == edgeTaken {
			return e
		}
	}
	return nil
}

// Scope gives access to one scope's values for the evaluation of templates.
type Scope struct{ s *scope }

// ScopeOf returns the scope in which a node's templates are evaluated.
func (r *Run) ScopeOf(path string) (Scope, bool) {
	n := r.node(path)
	if n == nil {
		return Scope{}, false
	}
	return Scope{n.scope}, true
}

// ScopeAt returns the scope at a path, "" for the root.
func (r *Run) ScopeAt(path string) (Scope, bool) {
	s, ok := r.scopes[path]
	return Scope{s}, ok
}

// Graph returns the plan of the scope.
func (s Scope) Graph() *GraphPlan { return s.s.plan }

// Inputs returns the scope's own inputs: an iteration's item.
func (s Scope) Inputs() Values { return s.s.inputs }

// Outputs returns the outputs of a node of the scope. ok is false if the node does not
// exist, and ended is false while it has not completed.
func (s Scope) Outputs(id string) (v Values, ended, ok bool) {
	i, ok := s.s.plan.index[id]
	if !ok {
		return nil, false, false
	}
	n := &s.s.nodes[i]
	return n.outputs, n.status == Completed || n.status == Failed && n.outputs != nil, true
}

// Status returns the status of a node of the scope, Pending if it does not exist.
func (s Scope) Status(id string) Status {
	if i, ok := s.s.plan.index[id]; ok {
		return s.s.nodes[i].status
	}
	return Pending
}

// Failure returns the error of a failed node of the scope, nil if it is not known.
func (s Scope) Failure(id string) *Error {
	if i, ok := s.s.plan.index[id]; ok && s.s.nodes[i].ext != nil {
		return s.s.nodes[i].ext.failure
	}
	return nil
}

// UntakenEdge returns the source, as flow files write it, of an edge into a skipped node
// that was not taken, control edges first; "" if there is none.
func (s Scope) UntakenEdge(id string) string {
	i, ok := s.s.plan.index[id]
	if !ok {
		return ""
	}
	n, found := &s.s.nodes[i], ""
	for j := n.plan.inLo; j < n.plan.inHi; j++ {
		e := &s.s.plan.edges[j]
		if s.s.edges[j] == edgeTaken || e.lazy {
			continue
		}
		from := s.s.plan.Nodes[e.from].Def.ID
		if e.fromPort != "" {
			from += "." + e.fromPort
		}
		if e.kind == flow.EdgeControl {
			return from
		}
		if found == "" {
			found = from
		}
	}
	return found
}

// ScopeState returns the state that nodes of the scope see now.
func (r *Run) ScopeState(s Scope) State {
	if l, _ := s.s.laneOf(); l != nil {
		return l.state
	}
	return r.state
}

// Owner returns the path of the composite that the scope is an iteration of, "" for the
// root.
func (s Scope) Owner() string {
	if s.s.owner == nil {
		return ""
	}
	return s.s.owner.path()
}

// Effects returns the recorded effects of a node by key. Like StartedEffects and Answers it
// returns the run's own map: read it at once, or clone it.
func (r *Run) Effects(path string) map[string]*EffectCompleted {
	if n := r.node(path); n != nil && n.ext != nil {
		return n.ext.effects
	}
	return nil
}

// StartedEffects returns the announced effects of a node, by key.
func (r *Run) StartedEffects(path string) map[string]*EffectStarted {
	if n := r.node(path); n != nil && n.ext != nil {
		return n.ext.startedEffects
	}
	return nil
}

// Steps returns the keys of the recorded steps and notes of a node, in order.
func (r *Run) Steps(path string) []string {
	if n := r.node(path); n != nil && n.ext != nil {
		return n.ext.steps
	}
	return nil
}

// Answers returns the outcomes of a node's interrupts, by id.
func (r *Run) Answers(path string) map[string]*Answer {
	if n := r.node(path); n != nil && n.ext != nil {
		return n.ext.answers
	}
	return nil
}

// Node is a node in listings.
type Node struct {
	Path     string
	Type     string
	Status   Status
	Attempt  int
	Outputs  Values
	Metadata Values
	Micros   int64
	Cached   bool
	Error    *Error
}

// Nodes lists the nodes of all open scopes, in flow order, inner nodes after
// their composite.
func (r *Run) Nodes() []Node {
	if r.root == nil {
		return nil
	}
	return r.appendNodes(nil, r.root)
}

func (r *Run) appendNodes(out []Node, s *scope) []Node {
	for i := range s.nodes {
		n := &s.nodes[i]
		if s.branch != nil && !s.branch.has(i) {
			continue
		}
		v := Node{Path: n.path(), Type: n.plan.Def.Type, Status: n.status, Attempt: int(n.attempt), Outputs: n.outputs}
		if n.ext != nil {
			v.Metadata, v.Micros, v.Cached, v.Error = n.ext.metadata, n.ext.micros, n.ext.cached, n.ext.failure
		}
		out = append(out, v)
		for _, inner := range r.iterations(n) {
			out = r.appendNodes(out, inner)
		}
	}
	return out
}

// Executing lists the paths of attempts with a function that may be running. After a crash
// these must be re-entered.
func (r *Run) Executing() []string {
	var out []string
	if r.root != nil {
		out = r.appendExecuting(out, r.root)
	}
	return out
}

func (r *Run) appendExecuting(out []string, s *scope) []string {
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.phase == phaseExecuting {
			out = append(out, n.path())
		}
		for _, inner := range r.iterations(n) {
			out = r.appendExecuting(out, inner)
		}
	}
	return out
}

// FailureOf returns the error of the node at the path, nil if it did not fail.
func (r *Run) FailureOf(path string) *Error {
	if n := r.node(path); n != nil && n.ext != nil && n.status == Failed {
		return n.ext.failure
	}
	return nil
}

// StatusOf returns the status of the node at the path, Pending if it does not exist.
func (r *Run) StatusOf(path string) Status {
	if n := r.node(path); n != nil {
		return n.status
	}
	return Pending
}

// StateOf returns the state that a node sees now: that of its lane, or else the run's. ok
// is false if the run has no such node.
func (r *Run) StateOf(path string) (s State, ok bool) {
	n := r.node(path)
	if n == nil {
		return State{}, false
	}
	return r.stateOf(n), true
}
