package engine

// The members of the message that stands in a queue for the repetition of a round.
const (
	repeatsMember = "repeats"
	tryMember     = "try"
	flowMember    = "flow"
)

// RepeatID returns the id of the message that repeats a round; there is one at most.
func RepeatID(run string) string { return run + "~" }

// QueuedRepeat returns the repetition of a round that the events of a commit put into the queue;
// nil for none.
func QueuedRepeat(events []Event) *RoundRepeat {
	for _, e := range events {
		if failed, ok := e.(*RunFailed); ok {
			return failed.Repeat
		}
	}
	return nil
}

// Value returns the repetition as the queue of a session keeps it.
func (r *RoundRepeat) Value() Value {
	return map[string]any{repeatsMember: r.Run, tryMember: int64(r.Try), flowMember: r.Flow}
}

// ReadRepeat reads what RoundRepeat.Value made; ok is false for another message.
func ReadRepeat(v Value) (r RepeatedRound, ok bool) {
	o, _ := v.(map[string]any)
	if r.Run, ok = o[repeatsMember].(string); !ok {
		return r, false
	}
	try, _ := o[tryMember].(int64)
	r.Try = int(try)
	return r, true
}

// FailInstead fails a run in place of the RunCompleted that was applied last, which was not made
// durable.
func (r *Run) FailInstead(e *RunFailed) error {
	if r.ended != Completed {
		return invalid("%s replaces no run.completed", e.Kind())
	}
	r.ended, r.failure, r.outputs, r.absent = Failed, e.Error, nil, nil
	return nil
}
