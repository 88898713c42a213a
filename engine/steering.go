package engine

import (
	"slices"
	"strconv"
	"strings"
)

// applySteering adds a message of a person to a node that has started and not ended.
func (r *Run) applySteering(e *SteeringAdded) error {
	n := r.node(e.Path)
	if n == nil {
		return invalid("%s names %s, which does not exist", e.Kind(), e.Path)
	}
	if !n.steerable() {
		return invalid("%s: node %s is %s", e.Kind(), e.Path, n.phase)
	}
	if e.Text != "" {
		x := n.ensureExt()
		x.steering = append(x.steering, e)
	}
	return nil
}

func (r *Run) applySteeringTaken(e *SteeringTaken) error {
	n, err := r.nodeInPhase(effectNode(e.Key), phaseExecuting, e)
	if err != nil {
		return err
	}
	setInMap(&n.ensureExt().steeringTaken, e.Key, e)
	return nil
}

// steerable reports whether the node works, so that a later model call of it can take a
// message.
func (n *nodeState) steerable() bool {
	switch n.phase {
	case phaseExecuting, phaseWaiting, phaseRetrying:
		return true
	case phaseReady:
		return n.entered
	case phaseIdle, phasePulling, phaseExpanding, phaseBreakBefore, phaseBreakAfter, phaseFailing, phaseDone:
	}
	return false
}

// takesNoMore makes a model call that is repeated under its key take the messages that it
// took before, none if it took none: its request stays the same.
func (n *nodeState) takesNoMore(key string) {
	if n.ext.steering == nil {
		return
	}
	name, number := ordinalOf(key)
	key = name + "#" + strconv.Itoa(number)
	if n.ext.steeringTaken[key] == nil {
		setInMap(&n.ext.steeringTaken, key, &SteeringTaken{Key: key})
	}
}

// Steering returns the messages of people to a node, oldest first, and by the key of a model
// call those that it has taken. The caller must not change either.
func (r *Run) Steering(path string) ([]*SteeringAdded, map[string]*SteeringTaken) {
	if n := r.node(path); n != nil && n.ext != nil {
		return n.ext.steering, n.ext.steeringTaken
	}
	return nil, nil
}

// Steerable lists the nodes for which accepts is true and that work, in flow order, and the
// child runs that may, as "PATH>".
func (r *Run) Steerable(accepts func(p *NodePlan) bool) []string {
	var out []string
	if r.root != nil {
		out = r.appendSteerable(nil, r.root, accepts)
	}
	for _, c := range r.OpenChildren() {
		if !c.ToCancel {
			out = append(out, BelowChild(c.ID, ""))
		}
	}
	return out
}

func (r *Run) appendSteerable(out []string, s *scope, accepts func(p *NodePlan) bool) []string {
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.steerable() && !s.cancelled() && accepts(n.plan) {
			out = append(out, n.path())
		}
		for _, inner := range r.iterations(n) {
			out = r.appendSteerable(out, inner, accepts)
		}
	}
	return out
}

// ChildBelow splits a path of the form "PATH>REST" into the child run and the rest.
func (r *Run) ChildBelow(path string) (c OpenChild, rest string, ok bool) {
	outer, rest, found := strings.Cut(path, ">")
	if !found {
		return c, "", false
	}
	children := r.OpenChildren()
	i := slices.IndexFunc(children, func(c OpenChild) bool { return childPathPrefix(c.ID) == outer })
	if i < 0 {
		return c, "", false
	}
	return children[i], rest, true
}
