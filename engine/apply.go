package engine

import "fmt"

// invalidError is the type of every error of Apply: the event cannot follow the events
// before it.
type invalidError struct{ msg string }

func (e *invalidError) Error() string { return "journal: " + e.msg }

func invalid(format string, args ...any) error {
	return &invalidError{fmt.Sprintf(format, args...)}
}

// ApplyCommit applies a commit's events in order.
func (r *Run) ApplyCommit(c Commit) error {
	r.Tick(c.At)
	for _, e := range c.Events {
		if err := r.Apply(e); err != nil {
			return fmt.Errorf("commit %d of run %s: %w", c.Seq, c.Run, err)
		}
	}
	return nil
}

// Tick advances the run's clock, in Unix milliseconds. The clock never moves backwards.
func (r *Run) Tick(at int64) { r.now = max(r.now, at) }

// Apply adds an event to the run. An error means that the event cannot follow the events
// before it; the run must then be discarded.
func (r *Run) Apply(e Event) error {
	if r.Start == nil {
		s, ok := e.(*RunStarted)
		if !ok {
			return invalid("the first event is %s, not run.started", e.Kind())
		}
		r.applyStart(s)
		r.events++
		return nil
	}
	if r.ended != Pending {
		if !allowedAfterEnd(r.ended, e) && (r.ended != Failed || !reopens(e)) {
			return invalid("%s follows the end of the run", e.Kind())
		}
	}
	if err := r.apply(e); err != nil {
		return err
	}
	r.events++
	return nil
}

// allowedAfterEnd reports whether the event may follow the end of the run without reopening
// it: a note of the run, or the acceptance of changed dependencies.
func allowedAfterEnd(end Status, e Event) bool {
	if _, ok := e.(*ChangesAccepted); ok {
		return end == Failed // precedes the retry of one of its nodes
	}
	n, ok := e.(*NoteRecorded)
	return ok && n.Path == "" && end != Cancelled
}

// reopens reports whether the event can make a failed run continue.
func reopens(e Event) bool {
	switch e.(type) {
	case *NodeOverridden, *ChildReported:
		return true
	}
	return false
}

func (r *Run) apply(e Event) error {
	switch e := e.(type) {
	case *NodeStarted:
		return r.applyStarted(e)
	case *NodeCompleted:
		return r.applyCompleted(e)
	case *EffectCompleted:
		return r.applyEffect(e)
	case *NodeSkipped:
		return r.applySkipped(e)
	case *NodeResumed:
		return r.applyResumed(e)
	case *NodeWaiting:
		return r.applyWaiting(e)
	case *InterruptAnswered:
		return r.resolveInterrupt(e.ID, Answer{Value: e.Value, Given: true, By: e.By})
	case *TimerFired:
		return r.applyTimer(e)
	case *NodePulling:
		return r.applyPulling(e)
	case *NodeExpanded:
		return r.applyExpanded(e)
	case *IterationStarted:
		return r.applyIteration(e)
	case *IterationCompleted:
		return r.applyIterationDone(e)
	case *IterationCancelled:
		return r.applyIterationCancelled(e)
	case *EffectStarted:
		return r.applyEffectStarted(e)
	case *ChildReported:
		return r.applyReport(e)
	case *StepRecorded:
		return r.applyStep(e)
	case *NoteRecorded:
		return r.applyNote(e)
	}
	return r.applyRare(e)
}

// applyRare applies the events of failures, overrides and the end of the run.
func (r *Run) applyRare(e Event) error {
	switch e := e.(type) {
	case *NodeFailed:
		r.chargeNode(e.Path)
		return r.applyFailed(e)
	case *NodeRetrying:
		return r.applyRetrying(e)
	case *NodeErrored:
		return r.applyErrored(e)
	case *NodeNotNeeded:
		return r.applyNotNeeded(e)
	case *NodeCancelled:
		r.chargeNode(e.Path)
		return r.applyCancelled(e)
	case *CancelRequested:
		r.cancelled = e
		r.cancelScope(r.root, nil)
	case *NodeOverridden:
		return r.applyOverridden(e)
	case *SteeringAdded:
		return r.applySteering(e)
	case *SteeringTaken:
		return r.applySteeringTaken(e)
	case *RunForked:
		return r.applyForked(e)
	case *ChangesAccepted:
		start := *r.Start
		start.Pinned, start.Specs = e.Pinned, e.Specs
		r.Start = &start
	case *RunCompleted:
		r.ended, r.outputs, r.absent, r.finished = Completed, e.Outputs, e.Absent, nil
		delete(r.due, runTimer)
	case *RunFailed:
		r.ended, r.failure = Failed, e.Error
		delete(r.due, runTimer)
	case *RunCancelled:
		r.ended = Cancelled
		delete(r.due, runTimer)
	case *RunStarted:
		return invalid("a second run.started")
	default:
		return invalid("unknown event %s", e.Kind())
	}
	return nil
}

func (r *Run) applyStart(e *RunStarted) {
	r.Start = e
	r.parallel = max(1, e.Parallel)
	for _, k := range r.plan.Flow.State {
		if k.Initial != nil {
			r.set(k.Name, k.Initial)
		}
	}
	for _, n := range e.State {
		r.set(n.Name, n.Value)
	}
	r.startRunTimer()
	r.applyContexts(e.Contexts)
	r.root = r.openScope(r.plan.Root, nil, 0, nil)
	r.root.limitTo(e.Targets)
	r.startEntries(r.root)
}

// applyContexts records the ids and lengths of changed contexts.
func (r *Run) applyContexts(changes []ContextChange) {
	for i := range changes {
		ch := &changes[i]
		c := r.contexts[ch.ID]
		if c == nil {
			c = &contextState{id: ch.ID, parent: ch.Parent, at: ch.At, length: ch.At, grant: []string{ch.ID}}
			r.contexts[ch.ID] = c
		}
		c.length += ch.Adds
	}
}

// nodeInPhase finds the node of an event that is valid in one phase only.
func (r *Run) nodeInPhase(path string, want phase, e Event) (*nodeState, error) {
	n := r.node(path)
	if n == nil {
		return nil, invalid("%s names %s, which does not exist", e.Kind(), path)
	}
	if n.phase != want {
		return nil, invalid("%s: node %s is %s, not %s", e.Kind(), path, n.phase, want)
	}
	return n, nil
}

func (r *Run) applyStarted(e *NodeStarted) error {
	n, err := r.nodeInPhase(e.Path, phaseReady, e)
	if err != nil {
		return err
	}
	n.attempt = int32(max(1, e.Attempt))
	if x := n.ext; x != nil && x.cutOff { // a cancelled attempt does not count
		x.cutOff = false
		x.uncounted++
	}
	n.entered, n.started = true, r.now
	return r.execute(n, e.Grants, e.Forks)
}

func (r *Run) applyResumed(e *NodeResumed) error {
	n, err := r.nodeInPhase(e.Path, phaseReady, e)
	if err != nil {
		return err
	}
	return r.execute(n, e.Grants, e.Forks)
}

func (r *Run) execute(n *nodeState, grants []string, forks []ContextChange) error {
	r.stopWaitTimer(n)
	r.applyContexts(forks)
	r.trackForks(forks)
	if err := r.grant(n, grants); err != nil {
		return err
	}
	n.phase, n.status = phaseExecuting, Running
	r.countExecuting(n, 1)
	return nil
}

// countExecuting updates the number of executing attempts of the run and of each scope
// around the node.
func (r *Run) countExecuting(n *nodeState, by int) {
	r.executing += by
	for s := n.scope; s != nil; s = s.parent() {
		s.live += by
	}
}

// endEntry ends one entry into an attempt and releases its slot and its contexts.
func (r *Run) endEntry(n *nodeState, next phase) {
	n.phase = next
	r.countExecuting(n, -1)
	r.releaseGrants(n)
}

func (r *Run) applyCompleted(e *NodeCompleted) error {
	n, err := r.nodeInPhase(e.Path, phaseExecuting, e)
	if err != nil {
		return err
	}
	n.outputs = e.Outputs
	if e.Metadata != nil || e.Cached {
		m := n.ensureExt()
		m.metadata, m.micros, m.cached = e.Metadata, e.Micros, e.Cached
	}
	r.applyContexts(e.Contexts)
	r.write(n, e.State)
	r.endEntry(n, phaseBreakAfter)
	r.closeInterrupts(n)
	r.dropIterations(n)
	if n.plan.Def.InterruptAfter && !n.scope.cancelled() {
		n.status = Waiting
		r.breaks = append(r.breaks, n)
		return nil
	}
	r.endNode(n, Completed)
	return nil
}

func (r *Run) applySkipped(e *NodeSkipped) error {
	n, err := r.nodeInPhase(e.Path, phaseReady, e)
	if err != nil {
		return err
	}
	r.skips = removeNode(r.skips, n)
	r.breaks = removeNode(r.breaks, n) // an earlier version skipped a node that this version would run
	r.endNode(n, Skipped)
	return nil
}

func (r *Run) applyNotNeeded(e *NodeNotNeeded) error {
	n, err := r.nodeInPhase(e.Path, phaseIdle, e)
	if err != nil {
		return err
	}
	r.unneeded = removeNode(r.unneeded, n)
	r.endNode(n, NotNeeded)
	return nil
}

// removeNode removes n, which is usually the first.
func removeNode(list []*nodeState, n *nodeState) []*nodeState {
	for i, x := range list {
		if x == n {
			if i == 0 {
				list[0] = nil
				return list[1:]
			}
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

func (r *Run) applyEffect(e *EffectCompleted) error {
	n, err := r.nodeInPhase(effectNode(e.Key), phaseExecuting, e)
	if err != nil {
		return err
	}
	setInMap(&n.ensureExt().effects, e.Key, e)
	delete(r.reserved, e.Key)
	if e.Usage != nil {
		r.addUsage(effectNode(e.Key), *e.Usage)
	}
	return nil
}

func (r *Run) applyStep(e *StepRecorded) error {
	n, err := r.nodeInPhase(e.Path, phaseExecuting, e)
	if err != nil {
		return err
	}
	x := n.ensureExt()
	x.steps = append(x.steps, e.Key(int(n.attempt)))
	return nil
}

func (r *Run) applyNote(e *NoteRecorded) error {
	if e.Usage != nil {
		r.addUsage(e.Path, *e.Usage)
	}
	if e.Path == "" {
		return nil
	}
	n, err := r.nodeInPhase(e.Path, phaseExecuting, e)
	if err != nil {
		return err
	}
	x := n.ensureExt()
	x.steps = append(x.steps, e.Key)
	return nil
}

func (r *Run) applyEffectStarted(e *EffectStarted) error {
	n, err := r.nodeInPhase(effectNode(e.Key), phaseExecuting, e)
	if err != nil {
		return err
	}
	setInMap(&n.ensureExt().startedEffects, e.Key, e)
	r.reserve(e)
	return nil
}
