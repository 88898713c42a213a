package engine

import (
	"slices"

	"github.com/weir-run/weir/flow"
)

// RaceOutcome is the outcome of a race whose branches have ended.
type RaceOutcome struct {
	// Winner is the name of the branch that completed first, and Outputs what it returned;
	// Winner is "" if every branch failed.
	Winner  string
	Outputs Values
	// Failures are the branches that failed, in their order.
	Failures []BranchFailure
}

// BranchFailure is the failure of one branch.
type BranchFailure struct {
	Branch string
	Error  *Error
}

// branchPlan is the part of a body's plan that belongs to one branch: its nodes and outputs
// from lo to hi.
type branchPlan struct {
	nodesLo, nodesHi     int
	outputsLo, outputsHi int
}

func (b *branchPlan) has(node int) bool { return node >= b.nodesLo && node < b.nodesHi }

// branchesOf returns the parts of the node's body, nil if it has no branches.
func branchesOf(n *flow.Node) []branchPlan {
	var out []branchPlan
	nodes, outputs := 0, 0
	for i := range n.Branches {
		b := branchPlan{nodesLo: nodes, nodesHi: nodes + len(n.Branches[i].Nodes), outputsLo: outputs, outputsHi: outputs + len(n.Branches[i].Outputs)}
		nodes, outputs = b.nodesHi, b.outputsHi
		out = append(out, b)
	}
	return out
}

// limitToBranch makes the scope execute only the nodes of one branch. The others, which no
// edge connects with these, never exist for it.
func (s *scope) limitToBranch(b *branchPlan) {
	s.branch = b
	for i := range s.nodes {
		if b.has(i) {
			continue
		}
		n := &s.nodes[i]
		if !n.needed {
			s.unneeded--
		}
		n.phase, n.status, n.needed = phaseDone, NotNeeded, false
		s.open--
	}
}

// OutputRange returns which of the outputs of the scope's graph the scope returns: all of
// them, or those of its branch.
func (s Scope) OutputRange() (from, to int) {
	if b := s.s.branch; b != nil {
		return b.outputsLo, b.outputsHi
	}
	return 0, len(s.s.plan.Def.Outputs)
}

// checkRace reports why the event cannot start a race or items that fail alone.
func checkRace(n *nodeState, e *NodeExpanded) error {
	switch {
	case e.Tolerant && (e.Race || !e.Fork):
		return invalid("%s: the items of node %s fail alone, race is %v and fork is %v", e.Kind(), e.Path, e.Race, e.Fork)
	case !e.Race && n.plan.branches == nil:
		return nil
	case !e.Race || !e.Fork || n.plan.branches == nil:
		return invalid("%s: node %s has %d branches, race is %v and fork is %v", e.Kind(), e.Path, len(n.plan.branches), e.Race, e.Fork)
	case len(e.Items) != len(n.plan.branches) || e.Concurrency < len(e.Items):
		return invalid("%s: node %s has %d branches, not %d of which %d run at the same time", e.Kind(), e.Path, len(n.plan.branches), len(e.Items), e.Concurrency)
	case n.ext != nil && n.ext.expansion != nil:
		return invalid("%s: node %s has a race already", e.Kind(), e.Path)
	}
	return nil
}

// winRace makes item i the winner and cancels the other branches.
func (r *Run) winRace(n *nodeState, i int) {
	x := n.ext.expansion
	x.separate.winner = i + 1
	for ; x.next < len(x.items); x.next++ { // never started
		x.lanes[x.next] = &laneResult{}
		x.done++
	}
	for _, s := range r.iterations(n) {
		r.cancelAlone(s, nil)
	}
}

// raceOutcome returns the outcome of the node's race, nil if it has none.
func (n *nodeState) raceOutcome() *RaceOutcome {
	x := n.ext.expansion
	if x.separate == nil || !x.separate.race {
		return nil
	}
	out := &RaceOutcome{}
	for i, err := range x.separate.errors {
		name := n.plan.Def.Branches[i].Name
		if i+1 == x.separate.winner {
			out.Winner, out.Outputs = name, x.outputs[i]
		}
		if err != nil {
			out.Failures = append(out.Failures, BranchFailure{name, err})
		}
	}
	return out
}

// LostRace reports whether the node at the path is in a branch of a race that another branch
// has won.
func (r *Run) LostRace(path string) bool {
	n := r.node(path)
	if n == nil {
		return false
	}
	for s := n.scope; s != nil; s = s.parent() {
		if s.branch != nil && s.cancel != nil && s.owner.ext.expansion.separate.winner > 0 {
			return true
		}
	}
	return false
}

// RacesAround returns the nodes whose branches the node at the path is in, innermost first.
func (r *Run) RacesAround(path string) []*NodePlan {
	var out []*NodePlan
	if n := r.node(path); n != nil {
		for s := n.scope; s != nil; s = s.parent() {
			if s.branch != nil {
				out = append(out, s.owner.plan)
			}
		}
	}
	return slices.Clip(out)
}
