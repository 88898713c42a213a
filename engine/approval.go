package engine

import (
	"encoding/json"
	"maps"
	"slices"
)

// IsApproved reports whether an answer to an interrupt of kind approval allows the call: it
// is "approve", or an object whose approve is true. Every other answer refuses.
func IsApproved(v Value) bool {
	if o, ok := v.(map[string]any); ok {
		return o["approve"] == true
	}
	return v == "approve"
}

// Approvals returns the approvals that people gave for the whole run, by Interrupt.Event.
// The map is a copy, nil if there are none.
func (r *Run) Approvals() map[string]Answer { return maps.Clone(r.approvals) }

// approvalFor returns the answer that was given for the whole run to requests like i.
func (r *Run) approvalFor(i *Interrupt) (a Answer, given bool) {
	if i.Kind != AwaitApproval || i.Event == "" {
		return Answer{}, false
	}
	a, given = r.approvals[i.Event]
	return a, given
}

// applyApproval records an approval for the whole run and resolves all other open
// interrupts that request the same. So no interrupt is open for what is already approved.
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

// encodeApprovals encodes the approvals as answers to their names.
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
			return invalid("an approval is %s", e.Kind())
		}
		setInMap(&r.approvals, a.ID, Answer{Value: a.Value, Given: true, By: a.By})
	}
	return nil
}
