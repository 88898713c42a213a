package engine

import (
	"encoding/json"
	"maps"
	"slices"
)

// GivesLeave reports whether an answer to an interrupt of kind approval allows
// what was asked: it is "approve", or an object whose approve is true. What does
// not say so plainly refuses.
func GivesLeave(v Value) bool {
	if o, ok := v.(map[string]any); ok {
		return o["approve"] == true
	}
	return v == "approve"
}

// Leaves are what people allowed for the whole run, by Interrupt.Event. The map
// is a copy, nil where nothing was.
func (r *Run) Leaves() map[string]Answer { return maps.Clone(r.leaves) }

// leave is the answer that was given for the whole run to what i asks.
func (r *Run) leave(i *Interrupt) (a Answer, given bool) {
	if i.Kind != AwaitApproval || i.Event == "" {
		return Answer{}, false
	}
	a, given = r.leaves[i.Event]
	return a, given
}

// allow notes what a person allowed for the whole run, and answers with it what
// else is open that asks for the same. So there is never an open question about
// what is allowed already.
func (r *Run) allow(i *Interrupt, a Answer) error {
	if _, known := r.leave(i); known || i.Kind != AwaitApproval || i.Event == "" || !GivesLeave(a.Value) {
		return nil
	}
	put(&r.leaves, i.Event, a)
	for _, o := range slices.Clone(r.interrupts) {
		if o.Kind != AwaitApproval || o.Event != i.Event {
			continue
		}
		if err := r.resolveInterrupt(o.ID, a); err != nil {
			return err
		}
	}
	return nil
}

// snapLeaves are the leaves as answers to their names.
func (r *Run) snapLeaves() (json.RawMessage, error) {
	if r.leaves == nil {
		return nil, nil
	}
	var out []Event
	for _, name := range slices.Sorted(maps.Keys(r.leaves)) {
		a := r.leaves[name]
		out = append(out, &InterruptAnswered{ID: name, Value: a.Value, By: a.By})
	}
	return EncodeEvents(nil, out)
}

func (r *Run) restoreLeaves(data json.RawMessage) error {
	if data == nil {
		return nil
	}
	events, err := DecodeEvents(data)
	if err != nil {
		return err
	}
	for _, e := range events {
		a, ok := e.(*InterruptAnswered)
		if !ok {
			return invalid("a leave is %s", e.Kind())
		}
		put(&r.leaves, a.ID, Answer{Value: a.Value, Given: true, By: a.By})
	}
	return nil
}
