package engine

import (
	"encoding/json"
	"maps"
	"slices"
)

// IsApproved reports whether an answer to an interrupt of kind approval allows
// what was asked: it is "approve", or an object whose approve is true. What does
// not say so plainly refuses.
func IsApproved(v Value) bool {
	if o, ok := v.(map[string]any); ok {
		return o["approve"] == true
	}
	return v == "approve"
}

// Approvals are what people allowed for the whole run, by Interrupt.Event. The map
// is a copy, nil where nothing was.
func (r *Run) Approvals() map[string]Answer { return maps.Clone(r.approvals) }

// approvalFor is the answer that was given for the whole run to what i asks.
func (r *Run) approvalFor(i *Interrupt) (a Answer, given bool) {
	if i.Kind != AwaitApproval || i.Event == "" {
		return Answer{}, false
	}
	a, given = r.approvals[i.Event]
	return a, given
}

// applyApproval notes what a person allowed for the whole run, and answers with it what
// else is open that asks for the same. So there is never an open question about
// what is allowed already.
func (r *Run) applyApproval(i *Interrupt, a Answer) error {
	if _, known := r.approvalFor(i); known || i.Kind != AwaitApproval || i.Event == "" || !IsApproved(a.Value) {
		return nil
	}
	setInMap(&r.approvals, i.Event, a)
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

// encodeApprovals are the leaves as answers to their names.
func (r *Run) encodeApprovals() (json.RawMessage, error) {
	if r.approvals == nil {
		return nil, nil
	}
	var out []Event
	for _, name := range slices.Sorted(maps.Keys(r.approvals)) {
		a := r.approvals[name]
		out = append(out, &InterruptAnswered{ID: name, Value: a.Value, By: a.By})
	}
	return EncodeEvents(nil, out)
}

func (r *Run) restoreApprovals(data json.RawMessage) error {
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
		setInMap(&r.approvals, a.ID, Answer{Value: a.Value, Given: true, By: a.By})
	}
	return nil
}
