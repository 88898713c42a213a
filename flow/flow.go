// Package flow defines flows: nodes, edges, inputs, outputs and context settings. It
// parses YAML and JSON, validates against a catalogue of node types, writes the normal
// form and computes the fingerprint.
//
// It must not know how a flow runs: no engine, store or model. Parsing and validating
// execute nothing.
package flow

import (
	"strings"
	"time"
)

// Version is the only value of a file's `weir:` key that this build reads.
const Version = 1

// Flow is a definition in memory, in its normal form: every connection is an
// entry in Edges, and an input that is exactly one reference is an edge only.
// A Flow is immutable once Load or Build has returned it.
type Flow struct {
	// Name identifies the flow to sessions and listings; required.
	Name string
	// Description is free text for people.
	Description string
	// Context holds the settings of the main context.
	Context ContextSettings
	// Session says how conversations over many runs go on.
	Session SessionSettings
	// Spend bounds what a run may spend on models, its children included.
	Spend SpendLimits
	// Inputs are the values a run is started with, sorted by name.
	Inputs []Input
	// Uses are the flows that its nodes run, by Ref; itself is not among them.
	Uses []Use
	// State declares keys of the run's state that need a reducer, a first
	// value or a schema, sorted by name; undeclared keys may be used too.
	State []StateKey
	// Graph is the root scope.
	Graph
	// File is the path the flow was read from, "" for one built in Go.
	File              string
	cachedFingerprint string // the fingerprint, of a flow that was loaded
	// outTypes are the port types of Outputs, as far as they are known.
	outTypes map[string]PortType
	recorded bool
}

// Recorded reports whether Record.Read returned the flow: it is for reading the
// records of its runs, and cannot be run.
func (f *Flow) Recorded() bool { return f.recorded }

// Self is the reference by which a flow uses itself.
const Self = "self"

// Use is a flow that nodes of another run as child runs.
type Use struct {
	// Ref is how the nodes' settings name it: a path from the file of the flow
	// that uses it, or a name given in Go.
	Ref  string
	Flow *Flow
}

// UsedFlow returns the flow that a reference in its nodes' settings stands for; nil
// where it stands for none.
func (f *Flow) UsedFlow(ref string) *Flow {
	if ref == Self {
		return f
	}
	for _, u := range f.Uses {
		if u.Ref == ref {
			return u.Flow
		}
	}
	return nil
}

// Dependencies lists the flow and all that it uses, those that they use and so on,
// each fingerprint once and used ones before those that use them: the flow itself is the last.
func (f *Flow) Dependencies() []*Flow {
	var out []*Flow
	seen := map[string]bool{}
	var visit func(f *Flow)
	visit = func(f *Flow) {
		if seen[f.Fingerprint()] {
			return
		}
		seen[f.Fingerprint()] = true
		for _, u := range f.Uses {
			visit(u.Flow)
		}
		out = append(out, f)
	}
	visit(f)
	return out
}

// Graph is one scope: the root of a flow, or the body of a loop or forEach.
type Graph struct {
	// Nodes in flow order: topological, ties by id.
	Nodes []*Node
	// Edges in flow order of their target, then by target port and source;
	// into a port that collects, as the file lists them.
	Edges []*Edge
	// Outputs are what the scope returns, by name; values are templates over
	// the scope's nodes. By name.
	Outputs []Binding

	index map[string]*Node
}

// ContextSettings are the `context:` key of a flow: the main context's model,
// system instructions and budget.
type ContextSettings struct {
	// Model is "provider/model", for example "openai/gpt-5-mini".
	Model string
	// System instructs the model; sent with every call.
	System string
	// Temperature and the rest are nil where the provider's default holds.
	Temperature *float64
	MaxOutput   int // tokens; 0 is the provider's default
	Reasoning   string
	// History is "server" where the provider may keep the conversation; "" and
	// "client" send it with every call.
	History string
	Budget  Budget
	View    View
}

// Budget bounds what one model call may be given, in tokens.
type Budget struct {
	Window  int // tokens; 0 is the model's own
	Reserve int // tokens kept free for the answer; 0 is the default
}

// SpendLimits bounds what a run or one of its nodes may spend on models, retries and
// calls whose outcome is unknown included: the `budget:` key. Zero is no bound.
type SpendLimits struct {
	MaxTokens int     `json:"maxTokens,omitempty"` // input and output
	MaxCost   float64 `json:"maxCost,omitempty"`   // US dollars
	MaxCalls  int     `json:"maxCalls,omitempty"`  // model calls
	// OnLimit is what happens where a call would go over: "fail" (the default)
	// fails the node with budget_exceeded, "pause" asks a person for more,
	// "branch" completes the node with its port limit alone.
	OnLimit string `json:"onLimit,omitempty"`
}

// View says how a context is shown where it outgrows its budget. Zero values
// are the defaults.
type View struct {
	// Strategy is "window" (the oldest messages are left out), "summary" (a
	// summary stands for them) or "all" (nothing is left out).
	Strategy string `json:"strategy,omitempty"`
	// Low is what is left after a cut, in per cent of the room.
	Low int `json:"low,omitempty"`
	// KeepResults is how many of the newest tool results keep their text when
	// old ones are cleared; -1 clears none.
	KeepResults int `json:"keepResults,omitempty"`
	// MaxResult is how many tokens of one tool result are shown.
	MaxResult int `json:"maxResult,omitempty"`
	// Summary is how many tokens a summary may have, and Model what makes it.
	Summary int    `json:"summary,omitempty"`
	Model   string `json:"model,omitempty"`
}

// Input is a declared value of a run.
type Input struct {
	Name        string
	Type        PortType
	Required    bool
	Default     any // nil is none
	Description string
	Schema      map[string]any // JSON Schema, nil is none
	Pos         Pos
}

// StateKey declares how concurrent writes to one key of the state combine.
type StateKey struct {
	Name    string
	Reducer Reducer
	Initial any // nil is none
	Schema  map[string]any
	Pos     Pos
}

// Reducer says how a write combines with the value already there.
type Reducer string

// The reducers. ReduceNone (no reducer) makes two unordered writers an error.
const (
	ReduceNone    Reducer = ""
	ReduceReplace Reducer = "replace" // last in flow order of completion wins
	ReduceAppend  Reducer = "append"  // lists join, another value is one element
	ReduceMerge   Reducer = "merge"   // objects join key by key
	ReduceMax     Reducer = "max"
	ReduceMin     Reducer = "min"
	ReduceSum     Reducer = "sum"
)

// Node is one step of a graph.
type Node struct {
	ID          string
	Type        string // a name in the catalogue, alias already resolved
	Description string
	// In binds input ports to literals and to templates that are more than one
	// reference, sorted by name; a port bound to exactly one reference has an
	// Edge instead.
	In []Binding
	// With holds the settings as they stand in the file, JSON-like values.
	With map[string]any
	// Body is the inner graph of a composite, nil otherwise; it is not in With.
	Body *Graph
	// Uses is the flow that a node of a type with Uses runs, nil otherwise.
	Uses *Flow
	// Runs are the flows that a node of a type with Flows may run, in the order in
	// which its settings name them, each once.
	Runs []*Flow
	// Join says which control edges must be taken: "any" (default) or "all".
	Join string
	// Retry, Timeout, OnError and Cache are zero where the file has none.
	Retry   Retry
	Timeout Timeout
	OnError OnError
	Cache   Cache
	// Spend bounds what the node may spend on models, what is inside it included.
	Spend SpendLimits
	// Isolation is "", "fresh", "fork" or "share"; only on composites and on nodes
	// that run a flow.
	Isolation string
	// InterruptBefore and InterruptAfter pause the run around the node.
	InterruptBefore, InterruptAfter bool
	// Artifacts are the data that it declares where it completes.
	Artifacts []Artifact
	Pos       Pos
	// Places are those of settings that are evaluated, by path: "headers.accept".
	Places map[string]Pos

	recorded *TypeSpec // of a node of a recorded flow; see SpecIn
}

// PlaceOf is where the setting stands in the file, "headers.accept" or "text"; the
// node's own place where that is not known.
func (n *Node) PlaceOf(setting string) Pos {
	for setting != "" {
		if p, ok := n.Places[setting]; ok {
			return p
		}
		i := strings.LastIndexByte(setting, '.')
		if i < 0 {
			break
		}
		setting = setting[:i]
	}
	return n.Pos
}

// Binding gives a name a value: a literal, or a structure with templates in it.
type Binding struct {
	Name string
	// Value is JSON-like; strings in it may hold {{ }} templates.
	Value any
	Pos   Pos
}

// Retry says how often and when a failed attempt is made again.
type Retry struct {
	// Attempts is the total number of attempts; 0 and 1 are one.
	Attempts int
	// Backoff is the wait before the second attempt; it doubles each time, to
	// at most 5 minutes.
	Backoff time.Duration
	// On lists the error codes that are tried again; empty is every code that
	// is not permanent.
	On []string
}

// Timeout bounds one attempt; zero is unbounded.
type Timeout struct {
	Total time.Duration // from start to end
	Idle  time.Duration // without an effect, chunk or progress
}

// OnError says what a final failure becomes.
type OnError struct {
	// Handled is true for `onError: {value: ...}`: the node completes with
	// Value on its first output port.
	Handled bool
	Value   any
}

// Cache asks that a pure node's outputs be reused across runs.
type Cache struct {
	On  bool
	TTL time.Duration // 0 is for ever
	Key string        // template; "" is the node's inputs
}

// EdgeKind is what an edge carries.
type EdgeKind string

// The kinds of edge. Control edges carry order and branch, and no value.
const (
	EdgeData    EdgeKind = "data"
	EdgeContext EdgeKind = "context"
	EdgeTools   EdgeKind = "tools"
	EdgeControl EdgeKind = "control"
)

// Edge connects an output port to an input port.
type Edge struct {
	// ID is unique in its graph; by default "from->to".
	ID   string
	Kind EdgeKind
	// From is the source node's id, FromPort its output port. A control edge
	// has FromPort "" (taken when the node completes) or a branch port.
	From, FromPort string
	// To is the target node's id, ToPort its input port, "" on control edges.
	To, ToPort string
	// Partial marks an edge that exists because a template in the target's In
	// reads it; the port's value is that template, not the edge's value.
	Partial bool
	// Conditional marks a Partial edge that the template may not read, since it stands
	// in a branch of ?:, beside || or &&, or in a macro: the port has a value
	// without it. Tested marks one that the template asks for with has(): the
	// target may run without it.
	Conditional, Guarded bool
	// Metadata is free and kept through round trips.
	Metadata map[string]any
	Pos      Pos
}

// Pos is a place in a file; lines and columns count from 1, 0 is unknown.
type Pos struct {
	File         string
	Line, Column int
}
