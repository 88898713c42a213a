package history

import (
	"encoding/json"
	"maps"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// numberedEvent is an event of a view with its number.
type numberedEvent struct {
	number int64
	event  engine.Event
}

// comparedEvents returns the events of a run by node, "" for those of the run. It omits
// the events that record a fork, and all reports of a child run but the last: what a child
// reports before that depends on timing.
func comparedEvents(v *runner.RunView) map[string][]numberedEvent {
	last := make(map[string]engine.Event)
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if r, ok := e.(*engine.ChildReported); ok {
				last[r.ID] = r
			}
		}
	}
	out := make(map[string][]numberedEvent)
	for _, c := range v.Commits {
		for i, e := range c.Events {
			if _, ok := e.(*engine.RunForked); ok {
				continue
			}
			if r, ok := e.(*engine.ChildReported); ok && last[r.ID] != e {
				continue
			}
			node := engine.EventPath(e)
			out[node] = append(out[node], numberedEvent{c.First + int64(i), e})
		}
	}
	return out
}

// firstDifference returns the first event of each run that the other lacks. Events are
// compared node by node, because the order of nodes that run at the same time depends on
// timing.
func (i comparison) firstDifference(va, vb *runner.RunView) *EventDifference {
	x, y := comparedEvents(va), comparedEvents(vb)
	d := &EventDifference{NumberA: va.Run.Events() + 1, NumberB: vb.Run.Events() + 1}
	nodes := maps.Clone(x)
	maps.Copy(nodes, y)
	for node := range nodes { // order: the least of all is kept
		a, b := x[node], y[node]
		n := 0
		for n < min(len(a), len(b)) && i.equalEvents(a[n].event, b[n].event) {
			n++
		}
		if n < len(a) && a[n].number < d.NumberA {
			d.A, d.NumberA = a[n].event, a[n].number
		}
		if n < len(b) && b[n].number < d.NumberB {
			d.B, d.NumberB = b[n].event, b[n].number
		}
	}
	if d.A == nil && d.B == nil {
		return nil
	}
	return d
}

// comparedFields returns an event without the fields that depend on timing or on who
// caused it.
func comparedFields(e engine.Event) any {
	data, err := engine.EncodeEvents(nil, []engine.Event{e})
	var list []map[string]any
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil || len(list) != 1 {
		return e
	}
	for _, k := range []string{"us", "due", "origin", "by", "parallel", "closure", "again", "fingerprint", "at"} {
		delete(list[0], k)
	}
	if waits, ok := list[0]["interrupts"].([]any); ok {
		for _, w := range waits {
			if i, ok := w.(map[string]any); ok {
				delete(i, "due")
				delete(i, "child")
			}
		}
	}
	changes, _ := list[0]["contexts"].([]any)
	for _, c := range changes {
		said, _ := members(members(c)["body"])["append"].([]any)
		for _, m := range said {
			delete(members(m), "id")
			delete(members(m), "metadata")
		}
	}
	return list[0]
}
