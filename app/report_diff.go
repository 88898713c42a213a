package app

import (
	"encoding/json"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
)

// DiffReport is what `weir diff --json` prints. All keys are always there; a key
// of an entry that one side does not have is null there.
type DiffReport struct {
	Same     bool          `json:"same"`
	A        diffSide      `json:"a"`
	B        diffSide      `json:"b"`
	Shared   *diffShared   `json:"shared"`
	Flow     []FlowChange  `json:"flow"`
	Inputs   []diffEntry   `json:"inputs"`
	Nodes    []diffNode    `json:"nodes"`
	First    *diffEvents   `json:"first_event"`
	Contexts []diffContext `json:"contexts"`
	State    []diffEntry   `json:"state"`
	Outputs  []diffEntry   `json:"outputs"`
}

type diffSide struct {
	Run         string        `json:"run"`
	Flow        string        `json:"flow"`
	Fingerprint string        `json:"fingerprint"`
	User        string        `json:"user"`
	Status      string        `json:"status"`
	Events      int64         `json:"events"`
	Usage       Usage         `json:"usage"` // the shared past included
	Error       *engine.Error `json:"error"`
}

type diffShared struct {
	Run string `json:"run"`
	At  int64  `json:"at"`
}

type diffEntry struct {
	Name string          `json:"name"`
	A    json.RawMessage `json:"a"`
	B    json.RawMessage `json:"b"`
}

// FlowChange is a value of the normal form in which two flows differ. A side that lacks it has
// null.
type FlowChange struct {
	Node string          `json:"node,omitempty"` // "" for a value of the flow
	Name string          `json:"name"`           // its place, "" for a whole node
	A    json.RawMessage `json:"a"`
	B    json.RawMessage `json:"b"`
}

// FlowChangesOf returns the differences between two flows for a report.
func FlowChangesOf(list []history.FlowDifference) []FlowChange {
	out := make([]FlowChange, 0, len(list))
	for _, f := range list {
		out = append(out, FlowChange{Node: f.Node, Name: f.Key, A: rawOf(f.A, f.InA), B: rawOf(f.B, f.InB)})
	}
	return out
}

// FlowMove is a node or setting that two flows have in different nodes.
type FlowMove struct {
	Name  string          `json:"name" doc:"The place of the setting in its node; empty for a node that has another id"`
	From  string          `json:"from" doc:"The node that has it in the first version"`
	To    string          `json:"to" doc:"The node that has it in the other version"`
	Value json.RawMessage `json:"value"`
}

// FlowMovesOf returns what moved between nodes of two flows for a report.
func FlowMovesOf(list []history.FlowMove) []FlowMove {
	out := make([]FlowMove, 0, len(list))
	for _, m := range list {
		out = append(out, FlowMove{Name: m.Key, From: m.From, To: m.To, Value: rawOf(m.Value, true)})
	}
	return out
}

type diffNode struct {
	Node      string      `json:"node"`
	A         string      `json:"a"` // "" where the run never came to it
	B         string      `json:"b"`
	AttemptsA int         `json:"attempts_a"`
	AttemptsB int         `json:"attempts_b"`
	Outputs   []diffEntry `json:"outputs"`
}

type diffEvents struct {
	NumberA int64           `json:"number_a"`
	NumberB int64           `json:"number_b"`
	A       json.RawMessage `json:"a"`
	B       json.RawMessage `json:"b"`
}

type diffContext struct {
	Context string          `json:"context"`
	Common  int             `json:"common"`
	A       []convo.Message `json:"a"`
	B       []convo.Message `json:"b"`
}

// DiffReportOf returns the differences between two runs for a report.
func DiffReportOf(d *history.Diff) *DiffReport {
	r := &DiffReport{
		Same: d.Same, A: diffSideOf(d.A), B: diffSideOf(d.B), Flow: FlowChangesOf(d.Flow), Nodes: []diffNode{}, Contexts: []diffContext{},
		Inputs: diffEntries(d.Inputs), State: diffEntries(d.State), Outputs: diffEntries(d.Outputs),
	}
	if d.Shared != nil {
		r.Shared = &diffShared{d.Shared.Run, d.Shared.At}
	}
	for _, n := range d.Nodes {
		e := diffNode{Node: n.Path, AttemptsA: n.AttemptsA, AttemptsB: n.AttemptsB, Outputs: diffEntries(n.Outputs)}
		if n.ReachedA {
			e.A = n.A.String()
		}
		if n.ReachedB {
			e.B = n.B.String()
		}
		r.Nodes = append(r.Nodes, e)
	}
	if f := d.First; f != nil {
		r.First = &diffEvents{NumberA: f.NumberA, NumberB: f.NumberB, A: rawEvent(f.A), B: rawEvent(f.B)}
	}
	for _, c := range d.Contexts {
		r.Contexts = append(r.Contexts, diffContext{
			Context: c.ID, Common: c.Common, A: append([]convo.Message{}, c.A...), B: append([]convo.Message{}, c.B...),
		})
	}
	return r
}

func diffSideOf(s history.Side) diffSide {
	return diffSide{
		Run: s.Run, Flow: s.Flow, Fingerprint: s.Fingerprint, User: s.User, Status: s.Status.String(),
		Events: s.Events, Usage: UsageOf(s.Usage), Error: s.Error,
	}
}

func diffEntries(list []history.ValueDifference) []diffEntry {
	out := []diffEntry{}
	for _, v := range list {
		out = append(out, diffEntry{Name: v.Name, A: rawOf(v.A, v.InA), B: rawOf(v.B, v.InB)})
	}
	return out
}

// rawOf returns a value as JSON, null if there is none.
func rawOf(v any, there bool) json.RawMessage {
	if !there {
		return json.RawMessage("null")
	}
	return json.RawMessage(JSONOf(v))
}

// JSONOf returns the JSON of a value.
func JSONOf(v any) []byte {
	if b, err := engine.AppendValue(nil, v); err == nil {
		return b
	}
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}

func rawEvent(e engine.Event) json.RawMessage {
	if e == nil {
		return json.RawMessage("null")
	}
	b, err := engine.EncodeEvents(nil, []engine.Event{e})
	if err != nil || len(b) < 2 {
		return json.RawMessage("null")
	}
	return json.RawMessage(b[1 : len(b)-1])
}
