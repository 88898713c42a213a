package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// snapshot is a run between two events as checkpoints keep it. Whatever holds
// values is kept as events, whose encoding keeps their types.
type snapshot struct {
	Events   int64             `json:"events"`
	Now      int64             `json:"now"`
	Usage    Usage             `json:"usage"`
	Shared   Usage             `json:"shared,omitzero"`
	Forked   json.RawMessage   `json:"forked,omitempty"` // as an event
	Start    json.RawMessage   `json:"start"`
	State    kept              `json:"state,omitempty"`
	Writers  map[string]string `json:"writers,omitempty"`
	Contexts []contextSnap     `json:"contexts,omitempty"`
	Scopes   []scopeSnap       `json:"scopes"`
	Waits    json.RawMessage   `json:"waits,omitempty"`    // open interrupts, oldest first, as events
	Children json.RawMessage   `json:"children,omitempty"` // what was reported of those that are child runs
	Due      map[string]int64  `json:"due,omitempty"`
	Spent    map[string]Usage  `json:"spent,omitempty"`
	Reserved map[string]Usage  `json:"reserved,omitempty"`
	Raised   map[string]Usage  `json:"raised,omitempty"`
	Leaves   json.RawMessage   `json:"leaves,omitempty"` // as answers to what they are about
}

// kept are values as a snapshot keeps them; see EncodeValue.
type kept Values

// MarshalJSON implements json.Marshaler.
func (k kept) MarshalJSON() ([]byte, error) { return EncodeValue(nil, Values(k)) }

// UnmarshalJSON implements json.Unmarshaler.
func (k *kept) UnmarshalJSON(data []byte) error { return (*Values)(k).UnmarshalJSON(data) }

func keep(list []Values) []kept {
	out := make([]kept, len(list))
	for i := range list {
		out[i] = kept(list[i])
	}
	return out
}

func unkeep(list []kept) []Values {
	out := make([]Values, len(list))
	for i := range list {
		out[i] = Values(list[i])
	}
	return out
}

type contextSnap struct {
	ID     string `json:"id"`
	Length int    `json:"n"`
	Parent string `json:"parent,omitempty"`
	At     int    `json:"at,omitempty"`
}

type scopeSnap struct {
	Name   string     `json:"name,omitempty"`
	Inputs kept       `json:"in,omitempty"`
	Edges  string     `json:"edges"` // a digit an edge
	Nodes  []nodeSnap `json:"nodes,omitempty"`
}

type nodeSnap struct {
	Index    int             `json:"i"`
	Phase    phase           `json:"ph,omitempty"`
	Status   uint8           `json:"st,omitempty"` // the number, which is short
	Attempt  int32           `json:"a,omitempty"`
	Started  int64           `json:"t,omitempty"`
	Unwanted bool            `json:"u,omitempty"`
	Grants   []string        `json:"g,omitempty"`
	Free     int32           `json:"free,omitempty"`
	CutOff   bool            `json:"cut,omitempty"`
	Entered  bool            `json:"e,omitempty"`
	Passed   bool            `json:"p,omitempty"`
	Outputs  kept            `json:"o,omitempty"`
	Facts    json.RawMessage `json:"f,omitempty"` // effects and answers, as events
	Steps    []string        `json:"steps,omitempty"`
	Port     string          `json:"port,omitempty"`
	Base     int             `json:"base,omitempty"`
	Past     int             `json:"past,omitempty"`
	Failure  *Error          `json:"err,omitempty"`
	Metadata kept            `json:"meta,omitempty"`
	Micros   int64           `json:"us,omitempty"`
	Cached   bool            `json:"cached,omitempty"`
	Expand   *expandSnap     `json:"x,omitempty"`
}

type expandSnap struct {
	Items       []kept `json:"items"`
	Outputs     []kept `json:"outputs"`
	Concurrency int    `json:"c"`
	Next        int    `json:"next"`
	Running     int    `json:"running,omitempty"`
	Done        int    `json:"done,omitempty"`
}

// Quiet reports whether the run is between two events, so that a Snapshot can
// be taken: nothing is to be decided or torn down, and no lanes are open.
// Attempts may execute; Restore brings them back as a replay does, to be
// entered again.
func (r *Run) Quiet() bool {
	if r.Start == nil || r.ended != Pending || len(r.tearing) > 0 || len(r.finished) > 0 || r.Decide() != nil {
		return false
	}
	// order: any one lane will do.
	for _, s := range r.scopes {
		if s.lane != nil || s.torn() || s.forks() {
			return false
		}
	}
	return true
}

// forks reports whether a composite of the scope has lanes to commit.
func (s *scope) forks() bool {
	for i := range s.nodes {
		if x := s.nodes[i].ext; x != nil && x.expansion != nil && x.expansion.fork {
			return true
		}
	}
	return false
}

// Snapshot encodes a quiet run. Restore makes the same run of it.
func (r *Run) Snapshot() ([]byte, error) {
	if !r.Quiet() {
		return nil, fmt.Errorf("snapshot of run %s: something is still to be decided", r.ID)
	}
	start, err := EncodeEvents(nil, []Event{r.Start})
	if err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	s := snapshot{Events: r.events, Now: r.now, Usage: r.usage, Shared: r.shared, Start: start, Due: r.due, Spent: r.spent, Reserved: r.reserved, Raised: r.raised, Writers: make(map[string]string)}
	if s.Forked, err = r.snapForked(); err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	for _, k := range r.state.Keys() {
		v, _ := r.state.Get(k)
		s.State = append(s.State, Named{k, v})
	}
	// order: a map is made of a map.
	for k, n := range r.writers {
		s.Writers[k] = r.surviving(n.path())
	}
	for _, id := range slices.Sorted(maps.Keys(r.contexts)) {
		c := r.contexts[id]
		s.Contexts = append(s.Contexts, contextSnap{id, c.length, c.parent, c.at})
	}
	var waits, children []Event
	for _, i := range r.interrupts {
		waits = append(waits, &NodeWaiting{Path: i.node.path(), Interrupts: []Interrupt{i.Interrupt}})
		if i.report != nil {
			children = append(children, i.report)
		}
	}
	if s.Children, err = EncodeEvents(nil, children); err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	if s.Waits, err = EncodeEvents(nil, waits); err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	if s.Leaves, err = r.snapLeaves(); err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	if s.Scopes, err = r.snapScopes(nil, r.root); err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	return json.Marshal(s)
}

// surviving is the path, or that of the nearest composite around it that is
// still there: what came after the composite came after it too.
func (r *Run) surviving(path string) string {
	for path != "" && r.node(path) == nil {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return ""
		}
		path = path[:strings.LastIndexByte(path[:i], '#')]
	}
	return path
}

func (r *Run) snapScopes(out []scopeSnap, s *scope) ([]scopeSnap, error) {
	sn := scopeSnap{Name: s.name(), Inputs: kept(s.inputs)}
	edges := make([]byte, len(s.edges))
	for i, e := range s.edges {
		edges[i] = '0' + byte(e)
	}
	sn.Edges = string(edges)
	at := len(out)
	out = append(out, sn)
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.phase == idle && n.ext == nil && n.wanted == !n.plan.lazyOnly {
			continue
		}
		ns, err := n.snap()
		if err != nil {
			return nil, err
		}
		out[at].Nodes = append(out[at].Nodes, ns)
		for _, inner := range r.iterations(n) {
			if out, err = r.snapScopes(out, inner); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (n *nodeState) snap() (nodeSnap, error) {
	s := nodeSnap{
		Index: n.plan.Index, Phase: n.phase, Status: uint8(n.status), Attempt: n.attempt, Started: n.started,
		Unwanted: !n.wanted, Entered: n.entered, Passed: n.passed, Outputs: kept(n.outputs),
	}
	x := n.ext
	if x == nil {
		return s, nil
	}
	s.Port, s.Base, s.Past, s.Failure, s.Metadata, s.Micros, s.Cached = x.port, x.base, x.past, x.failure, kept(x.metadata), x.micros, x.cached
	s.Grants, s.Free, s.CutOff, s.Steps = x.grants, x.free, x.cutOff, x.steps
	if e := x.expansion; e != nil {
		s.Expand = &expandSnap{keep(e.items), keep(e.outputs), e.concurrency, e.next, e.running, e.done}
	}
	facts := n.facts()
	if len(facts) == 0 {
		return s, nil
	}
	var err error
	s.Facts, err = EncodeEvents(nil, facts)
	return s, err
}

// facts are the node's effects and answers as the events they came by.
func (n *nodeState) facts() []Event {
	var out []Event
	for _, k := range slices.Sorted(maps.Keys(n.ext.begun)) {
		out = append(out, n.ext.begun[k])
	}
	for _, k := range slices.Sorted(maps.Keys(n.ext.effects)) {
		out = append(out, n.ext.effects[k])
	}
	for _, k := range slices.Sorted(maps.Keys(n.ext.answers)) {
		if a := n.ext.answers[k]; a.Child != nil {
			out = append(out, a.Child)
		} else if a.Given {
			out = append(out, &InterruptAnswered{ID: k, Value: a.Value, By: a.By})
		} else {
			out = append(out, &TimerFired{ID: k})
		}
	}
	return out
}
