package history

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// Diff are the differences between two runs, A and B. A list is empty if there is no
// difference.
type Diff struct {
	A, B Side
	// Same reports that nothing below differs.
	Same bool
	// Shared is the past that both runs share, nil if there is none.
	Shared *CommonAncestor
	// Flow are the differences between their flows in the normal form.
	Flow []FlowDifference
	// Inputs, Outputs and State are the differences by name.
	Inputs, Outputs, State []ValueDifference
	// Nodes are the nodes whose status, attempts or outputs differ, in the order in which
	// the runs reached them.
	Nodes []NodeDifference
	// First is the first event of each run that the other does not have, nil if there is
	// none. Durations are ignored, and so is the order of nodes that ran at the same time.
	First *EventDifference
	// Contexts are the contexts whose messages differ, by id.
	Contexts []ContextDifference
}

// Side describes one of the two runs.
type Side struct {
	Run, Flow, Fingerprint, User string
	Status                       engine.Status
	Error                        *engine.Error
	Events                       int64
	// Usage is what the run has spent, including the past that it shares.
	Usage engine.Usage
}

// CommonAncestor is a run whose events up to At are part of both runs.
type CommonAncestor struct {
	Run string
	At  int64
}

// ValueDifference is a named value that differs. InA and InB report which runs have it.
type ValueDifference struct {
	Name     string
	A, B     engine.Value
	InA, InB bool
}

// NodeDifference is a node whose status, attempts or outputs differ.
type NodeDifference struct {
	Path string
	// A and B are its status in each run. ReachedA and ReachedB report whether the run
	// reached it.
	A, B                 engine.Status
	ReachedA, ReachedB   bool
	AttemptsA, AttemptsB int
	// Outputs are those that differ.
	Outputs []ValueDifference
}

// EventDifference is where two journals diverge. An event is nil if its journal has none
// that the other lacks.
type EventDifference struct {
	// NumberA and NumberB are the numbers of the events in their runs.
	NumberA, NumberB int64
	A, B             engine.Event
}

// ContextDifference is a context whose messages differ after the first Common ones.
type ContextDifference struct {
	ID     string
	Common int
	// A and B are the messages after those.
	A, B []convo.Message
}

// Compare returns the differences between two runs. The error has the code fork_point if a
// run has not started.
func Compare(va, vb *runner.RunView) (*Diff, error) {
	for _, v := range []*runner.RunView{va, vb} {
		if v.Run.Start == nil {
			return nil, &engine.Error{
				Code: engine.CodeFork, Permanent: true,
				Message: fmt.Sprintf("run %s was created and never started: there is nothing to compare", v.Run.ID),
			}
		}
	}
	same := newComparison(va, vb)
	d := &Diff{
		A: sideOf(va), B: sideOf(vb), Shared: commonAncestor(va, vb),
		Inputs:  same.valueDifferences(va.Run.Start.Inputs, vb.Run.Start.Inputs),
		Outputs: same.valueDifferences(va.Run.Outputs(), vb.Run.Outputs()),
		State:   same.valueDifferences(stateValues(va.Run.State()), stateValues(vb.Run.State())),
		Nodes:   same.nodeDifferences(va, vb), First: same.firstDifference(va, vb),
	}
	var err error
	if d.Flow, err = flowDifferences(va.Run.Plan().Flow, vb.Run.Plan().Flow); err != nil {
		return nil, err
	}
	if d.Contexts, err = same.contextDifferences(va.Contexts, vb.Contexts); err != nil {
		return nil, err
	}
	d.Same = len(d.Flow)+len(d.Inputs)+len(d.Outputs)+len(d.State)+len(d.Nodes)+len(d.Contexts) == 0 && d.First == nil &&
		d.A.Status == d.B.Status && d.A.Usage == d.B.Usage && d.A.User == d.B.User
	return d, nil
}

func sideOf(v *runner.RunView) Side {
	r := v.Run
	return Side{
		Run: r.ID, Flow: r.Start.Flow, Fingerprint: r.Start.Fingerprint, User: r.Start.User, Status: r.Status(),
		Error: r.Failure(), Events: r.Events(), Usage: r.SharedUsage().Add(r.Usage()),
	}
}

func stateValues(s engine.State) engine.Values {
	var out engine.Values
	for _, k := range s.Keys() {
		v, _ := s.Get(k)
		out = append(out, engine.Named{Name: k, Value: v})
	}
	return out
}

// valueDifferences returns the names whose values differ in two lists.
func (i comparison) valueDifferences(a, b engine.Values) []ValueDifference {
	names := make(map[string]bool)
	for _, v := range slices.Concat(a, b) {
		names[v.Name] = true
	}
	var out []ValueDifference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := ValueDifference{Name: name}
		d.A, d.InA = a.Get(name)
		d.B, d.InB = b.Get(name)
		if d.InA != d.InB || !i.equalValues(d.A, d.B) {
			out = append(out, d)
		}
	}
	return out
}

// ancestors returns the run and those whose past it shares, each with the number of the
// last shared event.
func ancestors(v *runner.RunView) []CommonAncestor {
	out := []CommonAncestor{{v.Run.ID, v.Run.Events()}}
	forks := []CommonAncestor{}
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if f, ok := e.(*engine.RunForked); ok {
				forks = append(forks, CommonAncestor{f.From, f.At})
			}
		}
	}
	slices.Reverse(forks) // the newest first
	at := v.Run.Events()
	for _, f := range forks {
		at = min(at, f.At)
		out = append(out, CommonAncestor{f.Run, at})
	}
	return out
}

// commonAncestor returns the nearest run whose past both runs share.
func commonAncestor(a, b *runner.RunView) *CommonAncestor {
	for _, x := range ancestors(a) {
		for _, y := range ancestors(b) {
			if x.Run == y.Run {
				return &CommonAncestor{x.Run, min(x.At, y.At)}
			}
		}
	}
	return nil
}

// nodeOutcome is the state of a node at the end of a journal.
type nodeOutcome struct {
	status   engine.Status
	attempts int
	outputs  engine.Values
	position int
	done     bool // completed, and waiting at the breakpoint after it
}

// nodeOutcomes returns the nodes that a run has reached.
func nodeOutcomes(v *runner.RunView) map[string]*nodeOutcome {
	out := make(map[string]*nodeOutcome)
	at := func(path string) *nodeOutcome {
		n := out[path]
		if n == nil {
			n = &nodeOutcome{position: len(out)}
			out[path] = n
		}
		return n
	}
	for _, c := range v.Commits {
		for _, e := range c.Events {
			switch e := e.(type) {
			case *engine.NodeStarted:
				n := at(e.Path)
				n.status, n.attempts = engine.Running, max(1, e.Attempt)
			case *engine.NodeCompleted:
				n := at(e.Path)
				n.status, n.outputs = engine.Completed, e.Outputs
			case *engine.NodeErrored:
				n := at(e.Path)
				n.status, n.outputs = engine.Failed, e.Outputs
			case *engine.NodeSkipped:
				at(e.Path).status = engine.Skipped
			case *engine.NodeNotNeeded:
				at(e.Path).status = engine.NotNeeded
			case *engine.NodeCancelled:
				at(e.Path).status = engine.Cancelled
			case *engine.NodeWaiting:
				n := at(e.Path)
				n.done = n.status == engine.Completed
				n.status = engine.Waiting
			case *engine.InterruptAnswered:
				if n := out[engine.EventPath(e)]; n != nil && n.done && n.status == engine.Waiting {
					n.status = engine.Completed
				}
			}
		}
	}
	return out
}

func (i comparison) nodeDifferences(va, vb *runner.RunView) []NodeDifference {
	a, b := nodeOutcomes(va), nodeOutcomes(vb)
	order := make(map[string]int)
	for path, n := range b {
		order[path] = n.position
	}
	for path, n := range a {
		order[path] = n.position
	}
	paths := slices.Sorted(maps.Keys(order))
	slices.SortStableFunc(paths, func(x, y string) int { return order[x] - order[y] })
	var out []NodeDifference
	for _, path := range paths {
		d := NodeDifference{Path: path}
		x, y := a[path], b[path]
		if d.ReachedA = x != nil; d.ReachedA {
			d.A, d.AttemptsA = x.status, x.attempts
		} else {
			x = &nodeOutcome{}
		}
		if d.ReachedB = y != nil; d.ReachedB {
			d.B, d.AttemptsB = y.status, y.attempts
		} else {
			y = &nodeOutcome{}
		}
		d.Outputs = i.valueDifferences(x.outputs, y.outputs)
		if d.A != d.B || d.ReachedA != d.ReachedB || d.AttemptsA != d.AttemptsB || len(d.Outputs) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// contextDifferences compares messages without their ids and metadata.
func (i comparison) contextDifferences(a, b map[string]convo.Context) ([]ContextDifference, error) {
	ids := make(map[string]bool)
	for _, m := range []map[string]convo.Context{a, b} {
		for id := range m {
			ids[id] = true
		}
	}
	var out []ContextDifference
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		x, err := messagesOf(a, id)
		if err != nil {
			return nil, err
		}
		y, err := messagesOf(b, id)
		if err != nil {
			return nil, err
		}
		n := 0
		for n < min(len(x), len(y)) && i.equalMessages(x[n], y[n]) {
			n++
		}
		if n < max(len(x), len(y)) {
			out = append(out, ContextDifference{ID: id, Common: n, A: x[n:], B: y[n:]})
		}
	}
	return out, nil
}

func messagesOf(m map[string]convo.Context, id string) ([]convo.Message, error) {
	c, ok := m[id]
	if !ok {
		return nil, nil
	}
	ms, err := c.AddedSince(0)
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", id, err)
	}
	return ms, nil
}
