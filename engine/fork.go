package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Forked is the newest fork of a run that shares the past of another, nil for a
// run whose past is its own.
func (r *Run) Forked() *RunForked { return r.forked }

// Shared is what was spent in the past that the run shares with another. Usage
// does not count it, and no budget does.
func (r *Run) Shared() Usage { return r.shared }

// Forkable reports whether another run can go on from here: the run has begun
// and neither ended nor is about to.
func (r *Run) Forkable() bool {
	if r.Start == nil || r.ended != Pending || r.cancelled != nil || len(r.tearing)+len(r.failures) > 0 {
		return false
	}
	return r.children == 0 || !slices.ContainsFunc(r.interrupts, func(o *openInterrupt) bool { return o.node.phase == failing })
}

// applyForked makes the run one of its own. It is the root of its tree and no
// round of a session; it has spent nothing, and nobody has allowed it anything.
func (r *Run) applyForked(e *RunForked) error {
	if !r.Forkable() {
		return invalid("%s: the run has ended or is about to", e.Kind())
	}
	r.Start, r.forked = e.Over(r.Start), e
	r.shared, r.usage = r.shared.Add(r.usage), Usage{}
	r.spent, r.reserved, r.raised, r.leaves = nil, nil, nil, nil
	for _, c := range e.State {
		if c.Delete {
			r.state = r.state.without(c.Key)
		} else {
			r.state = r.state.with(c.Key, c.Value)
		}
	}
	r.applyContexts(e.Contexts)
	r.postpone(r.now - e.Then)
	r.restart(r.root, e)
	return nil
}

// Over is how a run began that was forked so, where the other run began with s.
func (e *RunForked) Over(s *RunStarted) *RunStarted {
	o := *s
	o.Flow, o.Fingerprint, o.Closure, o.Specs = e.Flow, e.Fingerprint, e.Closure, e.Specs
	o.Inputs, o.Breaks, o.Origin = e.Inputs, e.Breaks, e.Origin
	o.Parent, o.Node, o.Depth, o.Session, o.Round, o.Allowances = "", "", 0, "", 0, nil
	if len(e.Contexts) > 0 {
		o.Contexts = slices.Concat(s.Contexts, e.Contexts)
	}
	return &o
}

// postpone moves all timers, so that what was left of them is left of them now.
func (r *Run) postpone(by int64) {
	if by <= 0 {
		return
	}
	// order: each timer is moved by the same time, and a heap orders them.
	for id, at := range r.due {
		r.arm(id, at+by)
	}
	for _, o := range r.interrupts {
		if o.Due > 0 {
			o.Due += by
		}
	}
}

// restart has the attempts of a scope, and of those in it, begin anew whose
// function was running or whose child run was.
func (r *Run) restart(s *scope, e *RunForked) {
	for i := range s.nodes {
		n := &s.nodes[i]
		again := slices.Contains(e.Breaks, n.plan.Def.ID)
		switch n.phase {
		case executing:
			n.passed = n.passed && !again
			r.beginAnew(n)
		case asking:
			r.askAnew(n, e.Edited)
		case retrying:
			if e.Edited {
				n.forgetAll()
			}
		case readied:
			r.readyAnew(n, again, e.Edited)
		case idle, pulling, expanding, breaking, held, failing, done:
		}
		for _, inner := range r.iterations(n) {
			r.restart(inner, e)
		}
	}
}

// beginAnew puts an attempt that was executing back to where nothing of it had
// happened. One that had only been answered keeps the answers, and a composite
// its iterations: both do nothing outside.
func (r *Run) beginAnew(n *nodeState) {
	r.yield(n, readied)
	x := n.ext
	resumable := x != nil && len(x.effects)+len(x.begun) == 0 && (len(x.answers) > 0 || x.expansion != nil)
	if !resumable {
		r.closeAll(n)
		n.forgetAll()
		n.entered = false
		n.attempt--
	}
	r.makeReady(n)
}

// askAnew has a waiting attempt go on where it cannot wait any longer: its child
// run belongs to the run it is forked from, or what it was given has changed.
func (r *Run) askAnew(n *nodeState, edited bool) {
	if edited && len(n.ext.effects)+len(n.ext.begun) > 0 {
		r.closeAll(n)
		r.release(n)
		n.forgetAll()
		n.entered = false
		n.attempt--
		r.makeReady(n)
		return
	}
	orphaned := false
	for _, o := range slices.Clone(r.interrupts) {
		if o.node == n && o.Kind == AwaitChild {
			r.close(o)
			orphaned = true
		}
	}
	if orphaned {
		r.release(n) // a shared context was its child's
		r.makeReady(n)
	}
}

// readyAnew looks again at a node that has not been started or resumed yet.
func (r *Run) readyAnew(n *nodeState, again, edited bool) {
	switch {
	case n.entered:
		if edited && n.ext != nil && len(n.ext.effects)+len(n.ext.begun) > 0 {
			n.forgetAll()
			n.entered = false
			n.attempt--
		}
	case again && !slices.Contains(r.skips, n) && !slices.Contains(r.clashes, n) && !slices.Contains(r.breaks, n):
		n.passed = false
		r.breaks = append(r.breaks, n)
	}
}

// forgetAll drops what the node's attempts did and were told.
func (n *nodeState) forgetAll() {
	if x := n.ext; x != nil {
		x.effects, x.begun, x.answers, x.steps, x.port, x.cutOff = nil, nil, nil, nil, "", false
	}
}

// snapForked is the fork as a snapshot keeps it, nil for none.
func (r *Run) snapForked() (json.RawMessage, error) {
	if r.forked == nil {
		return nil, nil
	}
	return EncodeEvents(nil, []Event{r.forked})
}

func (r *Run) restoreForked(data json.RawMessage) error {
	if data == nil {
		return nil
	}
	events, err := DecodeEvents(data)
	if err != nil {
		return err
	}
	e, ok := events[0].(*RunForked)
	if !ok {
		return invalid("the fork is %s", events[0].Kind())
	}
	r.forked = e
	return nil
}

// Fate is what the rest of a plan makes of a node, beside its definition and the
// edges into it.
type Fate struct {
	// Needed is false for a node that runs only when somebody pulls it, or that
	// no target needs.
	Needed bool
	// Caught says that its error port is wired.
	Caught bool
}

// Fates are those of the nodes of the root graph, by id, in a run limited to the
// targets; none is no limit.
func (p *Plan) Fates(targets []string) map[string]Fate {
	need := p.Root.needed(targets)
	out := make(map[string]Fate, len(p.Root.Nodes))
	for i := range p.Root.Nodes {
		n := &p.Root.Nodes[i]
		f := Fate{Needed: !n.lazyOnly, Caught: n.errorWired}
		if len(targets) > 0 {
			f.Needed = need[i]
		}
		out[n.Def.ID] = f
	}
	return out
}

// NodeOf is the path of the node that an event is about: for an iteration, of
// the iteration itself; "" where it is about the run.
func NodeOf(e Event) string {
	switch e := e.(type) {
	case *NodeStarted:
		return e.Path
	case *NodeResumed:
		return e.Path
	case *NodeWaiting:
		return e.Path
	case *NodePulling:
		return e.Path
	case *NodeExpanded:
		return e.Path
	case *IterationStarted:
		return e.Path
	case *IterationCompleted:
		return e.Path
	case *EffectStarted:
		return effectNode(e.Key)
	case *EffectCompleted:
		return effectNode(e.Key)
	case *StepRecorded:
		return e.Path
	case *NoteRecorded:
		return e.Path
	case *InterruptAnswered:
		return interruptNode(e.ID)
	case *ChildReported:
		return interruptNode(e.ID)
	case *TimerFired:
		return interruptNode(e.ID)
	}
	return endOf(e)
}

// endOf is NodeOf for events that end a node or an attempt.
func endOf(e Event) string {
	switch e := e.(type) {
	case *NodeCompleted:
		return e.Path
	case *NodeFailed:
		return e.Path
	case *NodeRetrying:
		return e.Path
	case *NodeErrored:
		return e.Path
	case *NodeSkipped:
		return e.Path
	case *NodeNotNeeded:
		return e.Path
	case *NodeCancelled:
		return e.Path
	case *NodeForced:
		return e.Path
	}
	return ""
}

// interruptNode is the path in an interrupt's id path:name#ordinal; a timer of a
// retry is called as its node is.
func interruptNode(id string) string {
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		return id[:i]
	}
	return id
}

// Untouched reports whether there is a node at the path that nothing has happened
// to yet.
func (r *Run) Untouched(path string) bool {
	n := r.node(path)
	return n != nil && n.attempt == 0 && !n.entered && (n.phase == idle || n.phase == readied)
}

// StartOf is how the run began that a Snapshot was taken of, as it holds for what
// it does now. It reads no more of the snapshot than that.
func StartOf(data []byte) (*RunStarted, error) {
	var s struct {
		Start json.RawMessage `json:"start"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("start of a snapshot: %w", err)
	}
	events, err := DecodeEvents(s.Start)
	if err != nil {
		return nil, fmt.Errorf("start of a snapshot: %w", err)
	}
	if len(events) == 1 {
		if start, ok := events[0].(*RunStarted); ok {
			return start, nil
		}
	}
	return nil, invalid("the snapshot has no start")
}
