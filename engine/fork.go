package engine

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Forked returns the newest fork of a run that shares the past of another, nil for a run
// with its own past.
func (r *Run) Forked() *RunForked { return r.forked }

// SharedUsage returns what was spent in the past that the run shares with another. Neither Usage
// nor any budget counts it.
func (r *Run) SharedUsage() Usage { return r.sharedUsage }

// Forkable reports whether another run can continue from here: the run has started, has not
// ended, and is not failing or being cancelled.
func (r *Run) Forkable() bool {
	if r.Start == nil || r.ended != Pending || r.cancelled != nil || len(r.cancelling)+len(r.failures) > 0 {
		return false
	}
	return r.children == 0 || !slices.ContainsFunc(r.interrupts, func(o *openInterrupt) bool { return o.node.phase == phaseFailing })
}

// applyForked makes the run independent. It is the root of its tree and not a round of a
// session; it has spent nothing and has no approvals.
func (r *Run) applyForked(e *RunForked) error {
	if !r.Forkable() {
		return invalid("%s: the run has ended, is failing or is being cancelled", e.Kind())
	}
	r.Start, r.forked = e.EffectiveStart(r.Start), e
	r.sharedUsage, r.usage = r.sharedUsage.Add(r.usage), Usage{}
	r.spent, r.reserved, r.increases, r.approvals, r.near = nil, nil, nil, nil, nil
	for _, c := range e.State {
		if c.Delete {
			r.state = r.state.without(c.Key)
		} else {
			r.set(c.Key, c.Value)
		}
	}
	r.applyContexts(e.Contexts)
	r.shiftTimers(r.now - e.AtTime)
	r.restartScope(r.root, e)
	return nil
}

// EffectiveStart returns the start of a run that was forked this way from a run that
// started with s.
func (e *RunForked) EffectiveStart(s *RunStarted) *RunStarted {
	o := *s
	o.Flow, o.Fingerprint, o.Pinned, o.Specs = e.Flow, e.Fingerprint, e.Pinned, e.Specs
	o.Inputs, o.Breaks, o.Origin = e.Inputs, e.Breaks, e.Origin
	o.Parent, o.Node, o.Depth, o.Session, o.Round, o.Allowances = "", "", 0, "", 0, nil
	o.TreeSession, o.TreeRound, o.Runner = "", 0, e.Runner
	if len(e.Contexts) > 0 {
		o.Contexts = slices.Concat(s.Contexts, e.Contexts)
	}
	return &o
}

// shiftTimers moves all timers, so that each has the same time left as at the fork point.
func (r *Run) shiftTimers(by int64) {
	if by <= 0 {
		return
	}
	// order: each timer is moved by the same time, and a heap orders them.
	for id, at := range r.due {
		r.setTimer(id, at+by)
	}
	for _, o := range r.interrupts {
		if o.Due > 0 {
			o.Due += by
		}
	}
}

// restartScope restarts the attempts in a scope, and in scopes below it, that were
// executing or waiting for an executing child run.
func (r *Run) restartScope(s *scope, e *RunForked) {
	for i := range s.nodes {
		n := &s.nodes[i]
		again := slices.Contains(e.Breaks, n.plan.Def.ID)
		switch n.phase {
		case phaseExecuting:
			n.breakPassed = n.breakPassed && !again
			r.resetExecuting(n)
		case phaseWaiting:
			r.resumeWaiting(n, e.Edited)
		case phaseRetrying:
			if e.Edited {
				n.dropAttempts()
			}
		case phaseReady:
			r.recheckReady(n, again, e.Edited)
		case phaseIdle, phasePulling, phaseExpanding, phaseBreakBefore, phaseBreakAfter, phaseFailing, phaseDone:
		}
		for _, inner := range r.iterations(n) {
			r.restartScope(inner, e)
		}
	}
}

// resetExecuting resets an attempt that was executing to its start. An attempt that was
// only resumed with answers keeps them, and a composite keeps its iterations: neither acts
// outside the engine.
func (r *Run) resetExecuting(n *nodeState) {
	r.endEntry(n, phaseReady)
	x := n.ext
	resumable := x != nil && len(x.effects)+len(x.startedEffects) == 0 && (len(x.answers) > 0 || x.expansion != nil)
	if !resumable {
		r.closeInterrupts(n)
		n.dropAttempts()
		n.entered = false
		n.attempt--
	}
	r.makeReady(n)
}

// resumeWaiting resumes a waiting attempt that cannot wait any longer: its child run
// belongs to the original run, or its inputs have changed.
func (r *Run) resumeWaiting(n *nodeState, edited bool) {
	if edited && len(n.ext.effects)+len(n.ext.startedEffects) > 0 {
		r.closeInterrupts(n)
		r.releaseGrants(n)
		n.dropAttempts()
		n.entered = false
		n.attempt--
		r.makeReady(n)
		return
	}
	ownerGone := false
	for _, o := range slices.Clone(r.interrupts) {
		if o.node == n && o.Kind == AwaitChild {
			r.removeInterrupt(o)
			ownerGone = true
		}
	}
	if ownerGone {
		r.releaseGrants(n) // the child used the shared context
		r.makeReady(n)
	}
}

// recheckReady checks again a node that has not been started or resumed yet.
func (r *Run) recheckReady(n *nodeState, again, edited bool) {
	switch {
	case n.entered:
		if edited && n.ext != nil && len(n.ext.effects)+len(n.ext.startedEffects) > 0 {
			n.dropAttempts()
			n.entered = false
			n.attempt--
		}
	case again && !slices.Contains(r.skips, n) && !slices.Contains(r.conflicts, n) && !slices.Contains(r.breaks, n):
		n.breakPassed = false
		r.breaks = append(r.breaks, n)
	}
}

// dropAttempts removes the effects, answers and steps of the node's attempts.
func (n *nodeState) dropAttempts() {
	if x := n.ext; x != nil {
		x.effects, x.startedEffects, x.answers, x.steps, x.port, x.cutOff = nil, nil, nil, nil, "", false
		x.steeringTaken = nil // the messages stay, for the calls of the next attempt
	}
}

// encodeForked encodes the fork for a snapshot, nil if there is none.
func (r *Run) encodeForked() (json.RawMessage, error) {
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

// NodeUse says how the rest of a plan uses a node, apart from its definition and the edges
// into it.
type NodeUse struct {
	// Needed is false for a node that runs only when it is pulled, or that no target needs.
	Needed bool
	// ErrorHandled says that its error port is connected.
	ErrorHandled bool
}

// NodeUses returns the uses of the nodes of the root graph, by id, in a run limited to the
// targets; no targets means no limit.
func (p *Plan) NodeUses(targets []string) map[string]NodeUse {
	need := p.Root.needed(targets)
	out := make(map[string]NodeUse, len(p.Root.Nodes))
	for i := range p.Root.Nodes {
		n := &p.Root.Nodes[i]
		f := NodeUse{Needed: !n.lazyOnly, ErrorHandled: n.errorWired}
		if len(targets) > 0 {
			f.Needed = need[i]
		}
		out[n.Def.ID] = f
	}
	return out
}

// EventPath returns the path of the node that an event is about; for an iteration, the path
// of the iteration; "" if the event is about the run.
func EventPath(e Event) string {
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
	case *IterationCancelled:
		return e.Path
	case *EffectStarted:
		return effectNode(e.Key)
	case *EffectCompleted:
		return effectNode(e.Key)
	case *StepRecorded:
		return e.Path
	case *NoteRecorded:
		return e.Path
	case *SteeringAdded:
		return e.Path
	case *SteeringTaken:
		return effectNode(e.Key)
	case *InterruptAnswered:
		return interruptNode(e.ID)
	case *ChildReported:
		return interruptNode(e.ID)
	case *TimerFired:
		return interruptNode(e.ID)
	}
	return endedNode(e)
}

// endedNode is EventPath for events that end a node or an attempt.
func endedNode(e Event) string {
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
	case *NodeOverridden:
		return e.Path
	}
	return ""
}

// Unstarted reports whether the node at the path exists and has not started.
func (r *Run) Unstarted(path string) bool {
	n := r.node(path)
	return n != nil && n.attempt == 0 && !n.entered && (n.phase == phaseIdle || n.phase == phaseReady)
}

// SnapshotStart returns the start of the run in a Snapshot, with the changes since then
// applied. It reads only that part of the snapshot.
func SnapshotStart(data []byte) (*RunStarted, error) {
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
