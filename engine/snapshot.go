package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// snapshot is the state of a run between two events, as stored in checkpoints. Everything
// that holds values is stored as events, because their encoding keeps the types.
type snapshot struct {
	Events    int64             `json:"events"`
	Now       int64             `json:"now"`
	Usage     Usage             `json:"usage"`
	Shared    Usage             `json:"shared,omitzero"`
	Forked    json.RawMessage   `json:"forked,omitempty"` // as an event
	Start     json.RawMessage   `json:"start"`
	State     storedValues      `json:"state,omitempty"`
	Writers   map[string]string `json:"writers,omitempty"`
	Contexts  []contextSnapshot `json:"contexts,omitempty"`
	Scopes    []scopeSnapshot   `json:"scopes"`
	Waits     json.RawMessage   `json:"waits,omitempty"`    // open interrupts, oldest first, as events
	Children  json.RawMessage   `json:"children,omitempty"` // reports of those that are child runs
	Due       map[string]int64  `json:"due,omitempty"`
	Spent     map[string]Usage  `json:"spent,omitempty"`
	Reserved  map[string]Usage  `json:"reserved,omitempty"`
	Increases map[string]Usage  `json:"raised,omitempty"`
	Approvals json.RawMessage   `json:"leaves,omitempty"` // as answers to their names
}

// storedValues is Values encoded for a snapshot; see EncodeValue.
type storedValues Values

// MarshalJSON implements json.Marshaler.
func (k storedValues) MarshalJSON() ([]byte, error) { return EncodeValue(nil, Values(k)) }

// UnmarshalJSON implements json.Unmarshaler.
func (k *storedValues) UnmarshalJSON(data []byte) error { return (*Values)(k).UnmarshalJSON(data) }

func toStored(list []Values) []storedValues {
	out := make([]storedValues, len(list))
	for i := range list {
		out[i] = storedValues(list[i])
	}
	return out
}

func fromStored(list []storedValues) []Values {
	out := make([]Values, len(list))
	for i := range list {
		out[i] = Values(list[i])
	}
	return out
}

type contextSnapshot struct {
	ID     string `json:"id"`
	Length int    `json:"n"`
	Parent string `json:"parent,omitempty"`
	At     int    `json:"at,omitempty"`
}

type scopeSnapshot struct {
	Name   string         `json:"name,omitempty"`
	Inputs storedValues   `json:"in,omitempty"`
	Edges  string         `json:"edges"` // one digit for each edge
	Nodes  []nodeSnapshot `json:"nodes,omitempty"`
}

type nodeSnapshot struct {
	Index                    int                `json:"i"`
	Phase                    phase              `json:"ph,omitempty"`
	Status                   uint8              `json:"st,omitempty"` // as a number, which is short
	Attempt                  int32              `json:"a,omitempty"`
	Started                  int64              `json:"t,omitempty"`
	NotNeeded                bool               `json:"u,omitempty"`
	Grants                   []string           `json:"g,omitempty"`
	Uncounted                int32              `json:"free,omitempty"`
	CutOff                   bool               `json:"cut,omitempty"`
	Entered                  bool               `json:"e,omitempty"`
	Passed                   bool               `json:"p,omitempty"`
	Outputs                  storedValues       `json:"o,omitempty"`
	Facts                    json.RawMessage    `json:"f,omitempty"` // effects and answers, as events
	Steps                    []string           `json:"steps,omitempty"`
	Port                     string             `json:"port,omitempty"`
	EarlierIterations        int                `json:"base,omitempty"`
	EarlierAttemptIterations int                `json:"past,omitempty"`
	Failure                  *Error             `json:"err,omitempty"`
	Metadata                 storedValues       `json:"meta,omitempty"`
	Micros                   int64              `json:"us,omitempty"`
	Cached                   bool               `json:"cached,omitempty"`
	Expand                   *expansionSnapshot `json:"x,omitempty"`
}

type expansionSnapshot struct {
	Items       []storedValues `json:"items"`
	Outputs     []storedValues `json:"outputs"`
	Concurrency int            `json:"c"`
	Next        int            `json:"next"`
	Running     int            `json:"running,omitempty"`
	Done        int            `json:"done,omitempty"`
}

// CanSnapshot reports whether the run is at a point where a Snapshot can be taken: no
// decision is pending, no scope is being cancelled and no lanes are open. Attempts may be
// executing; Restore prepares them for re-entry, as a replay does.
func (r *Run) CanSnapshot() bool {
	if r.Start == nil || r.ended != Pending || len(r.cancelling) > 0 || len(r.finished) > 0 || r.Decide() != nil {
		return false
	}
	// order: any lane gives the answer.
	for _, s := range r.scopes {
		if s.lane != nil || s.cancelled() || s.hasLaneCommits() {
			return false
		}
	}
	return true
}

// hasLaneCommits reports whether a composite of the scope has lanes to commit.
func (s *scope) hasLaneCommits() bool {
	for i := range s.nodes {
		if x := s.nodes[i].ext; x != nil && x.expansion != nil && x.expansion.fork {
			return true
		}
	}
	return false
}

// Snapshot encodes the run. CanSnapshot must be true. Restore recreates the run from it.
func (r *Run) Snapshot() ([]byte, error) {
	if !r.CanSnapshot() {
		return nil, fmt.Errorf("snapshot of run %s: decisions are pending", r.ID)
	}
	start, err := EncodeEvents(nil, []Event{r.Start})
	if err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	s := snapshot{Events: r.events, Now: r.now, Usage: r.usage, Shared: r.sharedUsage, Start: start, Due: r.due, Spent: r.spent, Reserved: r.reserved, Increases: r.increases, Writers: make(map[string]string)}
	if s.Forked, err = r.encodeForked(); err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	for _, k := range r.state.Keys() {
		v, _ := r.state.Get(k)
		s.State = append(s.State, Named{k, v})
	}
	// order: a map is built from a map.
	for k, n := range r.writers {
		s.Writers[k] = r.openAncestor(n.path())
	}
	for _, id := range slices.Sorted(maps.Keys(r.contexts)) {
		c := r.contexts[id]
		s.Contexts = append(s.Contexts, contextSnapshot{id, c.length, c.parent, c.at})
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
	if s.Approvals, err = r.encodeApprovals(); err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	if s.Scopes, err = r.encodeScopes(nil, r.root); err != nil {
		return nil, fmt.Errorf("snapshot of run %s: %w", r.ID, err)
	}
	return json.Marshal(s)
}

// openAncestor returns the path, or that of the nearest surrounding composite that still
// exists. Whatever followed the composite also followed the node.
func (r *Run) openAncestor(path string) string {
	for path != "" && r.node(path) == nil {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return ""
		}
		path = path[:strings.LastIndexByte(path[:i], '#')]
	}
	return path
}

func (r *Run) encodeScopes(out []scopeSnapshot, s *scope) ([]scopeSnapshot, error) {
	sn := scopeSnapshot{Name: s.name(), Inputs: storedValues(s.inputs)}
	edges := make([]byte, len(s.edges))
	for i, e := range s.edges {
		edges[i] = '0' + byte(e)
	}
	sn.Edges = string(edges)
	at := len(out)
	out = append(out, sn)
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.phase == phaseIdle && n.ext == nil && n.needed == !n.plan.lazyOnly {
			continue
		}
		ns, err := n.encode()
		if err != nil {
			return nil, err
		}
		out[at].Nodes = append(out[at].Nodes, ns)
		for _, inner := range r.iterations(n) {
			if out, err = r.encodeScopes(out, inner); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (n *nodeState) encode() (nodeSnapshot, error) {
	s := nodeSnapshot{
		Index: n.plan.Index, Phase: n.phase, Status: uint8(n.status), Attempt: n.attempt, Started: n.started,
		NotNeeded: !n.needed, Entered: n.entered, Passed: n.breakPassed, Outputs: storedValues(n.outputs),
	}
	x := n.ext
	if x == nil {
		return s, nil
	}
	s.Port, s.EarlierIterations, s.EarlierAttemptIterations, s.Failure, s.Metadata, s.Micros, s.Cached = x.port, x.earlierIterations, x.earlierAttemptIterations, x.failure, storedValues(x.metadata), x.micros, x.cached
	s.Grants, s.Uncounted, s.CutOff, s.Steps = x.grants, x.uncounted, x.cutOff, x.steps
	if e := x.expansion; e != nil {
		s.Expand = &expansionSnapshot{toStored(e.items), toStored(e.outputs), e.concurrency, e.next, e.running, e.done}
	}
	facts := n.facts()
	if len(facts) == 0 {
		return s, nil
	}
	var err error
	s.Facts, err = EncodeEvents(nil, facts)
	return s, err
}

// facts encodes the node's effects and answers as events.
func (n *nodeState) facts() []Event {
	var out []Event
	for _, k := range slices.Sorted(maps.Keys(n.ext.startedEffects)) {
		out = append(out, n.ext.startedEffects[k])
	}
	for _, k := range slices.Sorted(maps.Keys(n.ext.effects)) {
		out = append(out, n.ext.effects[k])
	}
	for _, s := range n.ext.steering {
		out = append(out, s)
	}
	for _, k := range slices.Sorted(maps.Keys(n.ext.steeringTaken)) {
		out = append(out, n.ext.steeringTaken[k])
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
