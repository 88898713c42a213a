package engine

import "fmt"

// newEvent returns an empty event of a kind, nil if the kind is unknown.
func newEvent(kind string) Event {
	switch kind {
	case "run.started":
		return new(RunStarted)
	case "node.started":
		return new(NodeStarted)
	case "node.resumed":
		return new(NodeResumed)
	case "node.waiting":
		return new(NodeWaiting)
	case "node.pulling":
		return new(NodePulling)
	case "node.expanded":
		return new(NodeExpanded)
	case "iteration.started":
		return new(IterationStarted)
	case "iteration.completed":
		return new(IterationCompleted)
	case "iteration.cancelled":
		return new(IterationCancelled)
	case "node.completed":
		return new(NodeCompleted)
	case "node.failed":
		return new(NodeFailed)
	case "node.retrying":
		return new(NodeRetrying)
	case "node.errored":
		return new(NodeErrored)
	case "node.skipped":
		return new(NodeSkipped)
	case "node.not_needed":
		return new(NodeNotNeeded)
	case "node.cancelled":
		return new(NodeCancelled)
	}
	return newRareEvent(kind)
}

func newRareEvent(kind string) Event {
	switch kind {
	case "node.forced":
		return new(NodeOverridden)
	case "effect.started":
		return new(EffectStarted)
	case "effect.completed":
		return new(EffectCompleted)
	case "step.recorded":
		return new(StepRecorded)
	case "note.recorded":
		return new(NoteRecorded)
	case "steering.added":
		return new(SteeringAdded)
	case "steering.taken":
		return new(SteeringTaken)
	case "interrupt.answered":
		return new(InterruptAnswered)
	case "child.reported":
		return new(ChildReported)
	case "run.forked":
		return new(RunForked)
	case "changes.accepted":
		return new(ChangesAccepted)
	case "timer.fired":
		return new(TimerFired)
	case "cancel.requested":
		return new(CancelRequested)
	case "run.completed":
		return new(RunCompleted)
	case "run.failed":
		return new(RunFailed)
	case "run.cancelled":
		return new(RunCancelled)
	}
	return nil
}

// fields visits the fields of an event. The order is part of the format: a
// store may refer from a later value to an earlier one.
func (c *coder) fields(e Event) {
	switch v := e.(type) {
	case *NodeStarted:
		c.str("node", &v.Path)
		c.int("attempt", &v.Attempt)
		c.strings("grants", &v.Grants)
		objects(c, "forks", &v.Forks, (*coder).contextChange)
	case *NodeCompleted:
		c.nodeCompleted(v)
	case *EffectStarted:
		c.str("key", &v.Key)
		c.str("digest", &v.Digest)
		c.int("again", &v.UnknownStarts)
		pointer(c, "reserve", &v.Reserve, (*coder).usage)
	case *EffectCompleted:
		c.effectCompleted(v)
	case *NodeResumed:
		c.str("node", &v.Path)
		c.strings("grants", &v.Grants)
		objects(c, "forks", &v.Forks, (*coder).contextChange)
	case *NodeWaiting:
		c.str("node", &v.Path)
		objects(c, "interrupts", &v.Interrupts, (*coder).interrupt)
	case *NodePulling:
		c.str("node", &v.Path)
		c.str("port", &v.Port)
	case *NodeExpanded:
		c.nodeExpanded(v)
	case *IterationStarted:
		c.str("scope", &v.Path)
	case *IterationCompleted:
		c.str("scope", &v.Path)
		c.values("outputs", &v.Outputs)
	case *IterationCancelled:
		c.str("scope", &v.Path)
		pointer(c, "error", &v.Error, (*coder).failure)
	case *NodeSkipped:
		c.str("node", &v.Path)
	case *NodeNotNeeded:
		c.str("node", &v.Path)
	default:
		c.rareFields(e)
	}
}

func (c *coder) rareFields(e Event) {
	switch v := e.(type) {
	case *StepRecorded:
		c.stepRecorded(v)
	case *NoteRecorded:
		c.str("node", &v.Path)
		c.str("key", &v.Key)
		c.value("value", &v.Value)
		pointer(c, "usage", &v.Usage, (*coder).usage)
	case *RunStarted:
		c.runStarted(v)
	case *NodeFailed:
		c.str("node", &v.Path)
		pointer(c, "error", &v.Error, (*coder).failure)
		c.int64("us", &v.Micros)
		c.values("metadata", &v.Metadata)
		objects(c, "contexts", &v.Contexts, (*coder).contextChange)
	case *NodeRetrying:
		c.str("node", &v.Path)
		c.int64("due", &v.Due)
	case *NodeErrored:
		c.str("node", &v.Path)
		c.str("handled", &v.Handled)
		c.values("outputs", &v.Outputs)
	case *NodeCancelled:
		c.str("node", &v.Path)
		c.bool("unknown", &v.Unknown)
		objects(c, "contexts", &v.Contexts, (*coder).contextChange)
	case *SteeringAdded:
		c.str("node", &v.Path)
		c.str("id", &v.ID)
		c.str("text", &v.Text)
		c.bool("interrupt", &v.Interrupt)
		c.str("by", &v.By)
	case *SteeringTaken:
		c.str("key", &v.Key)
		c.strings("ids", &v.IDs)
	case *InterruptAnswered:
		c.str("interrupt", &v.ID)
		c.value("value", &v.Value)
		c.str("by", &v.By)
		c.str("request", &v.Request)
	case *ChildReported:
		c.childReported(v)
	case *RunForked:
		c.runForked(v)
	case *ChangesAccepted:
		c.stringMap("closure", &v.Pinned)
		c.str("specs", &v.Specs)
		c.strings("changes", &v.Changes)
		c.str("by", &v.By)
	case *TimerFired:
		c.str("timer", &v.ID)
	case *CancelRequested:
		c.str("by", &v.By)
		c.str("reason", &v.Reason)
	case *NodeOverridden:
		c.str("node", &v.Path)
		c.str("op", &v.Op)
		c.values("outputs", &v.Outputs)
		c.str("by", &v.By)
		pointer(c, "raise", &v.Increase, (*coder).budgetIncrease)
		c.str("request", &v.Request)
	case *RunCompleted:
		c.values("outputs", &v.Outputs)
		c.values("absent", &v.Absent)
		objects(c, "session", &v.Session, (*coder).sessionChange)
		pointer(c, "userState", &v.UserState, (*coder).userStateWrite)
	case *RunFailed:
		pointer(c, "error", &v.Error, (*coder).failure)
		pointer(c, "repeat", &v.Repeat, (*coder).roundRepeat)
	case *RunCancelled:
	default:
		c.fail(fmt.Errorf("an event of type %T cannot be journaled", e))
	}
}

func (c *coder) runStarted(v *RunStarted) {
	c.str("flow", &v.Flow)
	c.str("fingerprint", &v.Fingerprint)
	c.values("inputs", &v.Inputs)
	c.values("state", &v.State)
	c.str("user", &v.User)
	c.str("parent", &v.Parent)
	c.str("origin", &v.Origin)
	c.strings("targets", &v.Targets)
	c.strings("breaks", &v.Breaks)
	c.int("parallel", &v.Parallel)
	objects(c, "contexts", &v.Contexts, (*coder).contextChange)
	c.stringMap("closure", &v.Pinned)
	c.int("depth", &v.Depth)
	c.str("node", &v.Node)
	c.str("session", &v.Session)
	c.int("round", &v.Round)
	objects(c, "allowances", &v.Allowances, (*coder).account)
	c.str("folder", &v.Folder)
	c.strings("agents", &v.Agents)
	c.str("caller", &v.Caller)
	c.str("messagePrefix", &v.MessagePrefix)
	pointer(c, "userState", &v.UserState, (*coder).userStateRead)
	c.str("specs", &v.Specs)
	c.str("treeSession", &v.TreeSession)
	c.int("treeRound", &v.TreeRound)
	c.str("runner", &v.Runner)
	pointer(c, "repeats", &v.Repeats, (*coder).repeatedRound)
}

func (c *coder) repeatedRound(v *RepeatedRound) {
	c.str("run", &v.Run)
	c.int("try", &v.Try)
}

func (c *coder) roundRepeat(v *RoundRepeat) {
	c.str("message", &v.Message)
	c.str("flow", &v.Flow)
	c.repeatedRound(&v.RepeatedRound)
}

func (c *coder) account(v *Account) {
	c.str("path", &v.Path)
	c.str("onLimit", &v.OnLimit)
	c.nested("max", func() { c.usage(&v.Max) })
	c.nested("used", func() { c.usage(&v.Used) })
}

func (c *coder) childReported(v *ChildReported) {
	c.str("interrupt", &v.ID)
	c.status("status", &v.Status)
	objects(c, "interrupts", &v.Interrupts, (*coder).interrupt)
	c.values("outputs", &v.Outputs)
	pointer(c, "error", &v.Error, (*coder).failure)
	c.text("answer", &v.Answer)
	c.nested("usage", func() { c.usage(&v.Usage) })
	c.str("run", &v.Run)
	c.int("began", &v.Began)
	c.int("length", &v.Length)
	objects(c, "raised", &v.Increases, (*coder).account)
}

func (c *coder) runForked(v *RunForked) {
	c.str("from", &v.From)
	c.int64("at", &v.At)
	c.str("flow", &v.Flow)
	c.str("fingerprint", &v.Fingerprint)
	c.values("inputs", &v.Inputs)
	objects(c, "state", &v.State, (*coder).stateChange)
	c.strings("breaks", &v.Breaks)
	c.str("origin", &v.Origin)
	c.str("by", &v.By)
	c.stringMap("closure", &v.Pinned)
	c.int64("then", &v.AtTime)
	c.bool("edited", &v.Edited)
	objects(c, "contexts", &v.Contexts, (*coder).contextChange)
	c.str("specs", &v.Specs)
	c.str("runner", &v.Runner)
}

func (c *coder) childStart(v *ChildStart) {
	c.str("run", &v.Run)
	c.str("fingerprint", &v.Fingerprint)
	c.values("inputs", &v.Inputs)
	c.values("state", &v.State)
	c.str("isolation", &v.Isolation)
	c.nested("main", func() { c.contextChange(&v.Main) })
}

func (c *coder) nodeCompleted(v *NodeCompleted) {
	c.str("node", &v.Path)
	c.values("outputs", &v.Outputs)
	objects(c, "state", &v.State, (*coder).stateChange)
	objects(c, "contexts", &v.Contexts, (*coder).contextChange)
	c.values("metadata", &v.Metadata)
	c.int64("us", &v.Micros)
	c.bool("cached", &v.Cached)
}

func (c *coder) effectCompleted(v *EffectCompleted) {
	c.str("key", &v.Key)
	c.str("digest", &v.Digest)
	c.value("result", &v.Result)
	pointer(c, "error", &v.Error, (*coder).failure)
	pointer(c, "usage", &v.Usage, (*coder).usage)
	c.int64("us", &v.Micros)
	c.value("manifest", &v.Manifest)
	c.bool("passed", &v.Superseded)
}

func (c *coder) stepRecorded(v *StepRecorded) {
	c.str("node", &v.Path)
	c.int("number", &v.Number)
	c.str("name", &v.Name)
	c.int("attempt", &v.Attempt)
	c.str("status", &v.Status)
	c.value("input", &v.Input)
	c.value("output", &v.Output)
	c.text("code", &v.Code)
	c.text("error", &v.Error)
	c.str("model", &v.Model)
	pointer(c, "usage", &v.Usage, (*coder).usage)
	c.int64("us", &v.Micros)
	c.str("sandbox", &v.Sandbox)
}

func (c *coder) nodeExpanded(v *NodeExpanded) {
	c.str("node", &v.Path)
	each(c, "items", &v.Items,
		func(item *Values) { c.appendValues(*item) },
		func(raw []byte, item *Values) { *item = c.decodeValues(raw) })
	c.int("concurrency", &v.Concurrency)
	c.bool("fork", &v.Fork)
	c.bool("fresh", &v.Fresh)
	c.bool("race", &v.Race)
	c.bool("tolerant", &v.Tolerant)
}

func (c *coder) failure(v *Error) {
	c.str("code", &v.Code)
	c.text("message", &v.Message)
	c.str("node", &v.Node)
	c.int("attempt", &v.Attempt)
	c.str("key", &v.Key)
	c.str("hint", &v.Hint)
	c.bool("permanent", &v.Permanent)
	c.bool("noRetry", &v.NoRetry)
	c.str("budget", &v.Budget)
	c.str("below", &v.Below)
	c.str("run", &v.Run)
	c.int64("retryAfter", &v.RetryAfter)
}

func (c *coder) usage(v *Usage) {
	c.int("calls", &v.Calls)
	c.int("input", &v.Input)
	c.int("cached", &v.Cached)
	c.int("output", &v.Output)
	c.int("reasoning", &v.Reasoning)
	c.int64("cost", &v.CostMicros)
	c.int("estimated", &v.Estimated)
}

func (c *coder) budgetIncrease(v *BudgetIncrease) {
	c.str("budget", &v.Budget)
	c.nested("more", func() { c.usage(&v.More) })
}

func (c *coder) interrupt(v *Interrupt) {
	c.str("id", &v.ID)
	c.str("kind", (*string)(&v.Kind))
	c.text("prompt", &v.Prompt)
	c.schema("schema", &v.Schema)
	c.str("event", &v.Event)
	c.int64("due", &v.Due)
	pointer(c, "child", &v.Child, (*coder).childStart)
}

func (c *coder) stateChange(v *StateChange) {
	c.str("key", &v.Key)
	c.value("value", &v.Value)
	c.bool("delete", &v.Delete)
}

func (c *coder) sessionChange(v *SessionChange) {
	c.str("key", &v.Key)
	c.value("value", &v.Value)
	c.bool("delete", &v.Delete)
	c.str("reducer", &v.Reducer)
}

func (c *coder) userStateRead(v *UserStateRead) {
	c.str("flow", &v.Flow)
	objects(c, "versions", &v.Versions, func(c *coder, u *UserVersion) {
		c.str("key", &u.Key)
		c.int64("version", &u.Version)
		c.str("digest", &u.Digest)
	})
}

func (c *coder) userStateWrite(v *UserStateWrite) {
	c.str("user", &v.User)
	c.str("flow", &v.Flow)
	objects(c, "changes", &v.Changes, func(c *coder, u *UserChange) {
		c.str("key", &u.Key)
		c.value("value", &u.Value)
		c.value("initial", &u.Initial)
		c.bool("replace", &u.Replace)
		c.bool("delete", &u.Delete)
		c.str("reducer", &u.Reducer)
		c.str("expect", &u.Expect)
	})
}

func (c *coder) contextChange(v *ContextChange) {
	c.str("context", &v.ID)
	c.int("adds", &v.Adds)
	c.bool("create", &v.Create)
	c.str("parent", &v.Parent)
	c.int("at", &v.At)
	c.str("run", &v.Run)
	c.str("session", &v.Session)
	c.body(v)
}

// ContextChanges returns the changes to contexts in an event, nil for most kinds. The list
// belongs to the event.
func ContextChanges(e Event) []ContextChange {
	switch v := e.(type) {
	case *RunStarted:
		return v.Contexts
	case *NodeStarted:
		return v.Forks
	case *NodeResumed:
		return v.Forks
	case *NodeCompleted:
		return v.Contexts
	case *NodeFailed:
		return v.Contexts
	case *NodeCancelled:
		return v.Contexts
	case *RunForked:
		return v.Contexts
	}
	return nil
}
