// Package flow defines flows: nodes, edges, inputs, outputs and context settings. It parses
// YAML and JSON, validates against a catalogue of node types, writes the normal form and
// computes the fingerprint.
//
// It must not know how a flow is executed: no engine, store or model. Parsing and
// validating execute nothing.
package flow

import (
	"strings"
	"time"
)

// Version is the supported value of a file's `weir:` key.
const Version = 1

// Flow is a definition in memory, in its normal form: every connection is an entry in
// Edges, and an input that is exactly one reference is only an edge. A Flow from Load or
// Build is immutable.
type Flow struct {
	// Name identifies the flow in sessions and listings; required.
	Name string
	// Description is free text for people.
	Description string
	// Context holds the settings of the main context.
	Context ContextSettings
	// Session has the settings of conversations over many runs.
	Session SessionSettings
	// Spend limits the spending of a run on models, including its children.
	Spend SpendLimits
	// Timeout limits the time of a run from its start to its end, waits included; 0 is no
	// limit.
	Timeout time.Duration
	// Inputs are the declared inputs of a run, sorted by name.
	Inputs []Input
	// Uses are the flows that its nodes run, by Ref, without the flow itself.
	Uses []Use
	// State declares keys of the run's state that have a reducer, an initial value or a
	// schema, sorted by name. Undeclared keys may be used too.
	State []StateKey
	// Graph is the root scope.
	Graph
	// File is the path of the flow's file, "" for a flow built in Go.
	File              string
	cachedFingerprint string // the fingerprint of a loaded flow
	// outTypes are the known port types of Outputs.
	outTypes map[string]PortType
	recorded bool
}

// Recorded reports whether RecordedFlows.Read returned the flow: it serves to read the
// records of its runs, and cannot be run.
func (f *Flow) Recorded() bool { return f.recorded }

// Self is the reference by which a flow uses itself.
const Self = "self"

// Use is a flow that nodes of another flow run as child runs.
type Use struct {
	// Ref is the reference in the nodes' settings: a path relative to the file of the flow,
	// or a name given in Go.
	Ref  string
	Flow *Flow
}

// UsedFlow returns the flow that a reference in the settings of its nodes names, nil if
// there is none.
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

// Dependencies lists the flow and all flows that it uses, directly and indirectly, each
// fingerprint once. Used flows precede those that use them; the flow itself is last.
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

// Graph is one scope: the root of a flow, or the body of a composite.
type Graph struct {
	// Nodes are in flow order: topological, ties by id.
	Nodes []*Node
	// Edges are in flow order of their target, then by target port and source; into a port
	// that collects values, in file order.
	Edges []*Edge
	// Outputs are the named outputs of the scope, sorted by name. Values are templates over
	// the scope's nodes.
	Outputs []Binding

	index map[string]*Node
}

// ContextSettings is the `context:` key of a flow: model, system instructions and budget of
// the main context.
type ContextSettings struct {
	// Model is "provider/model", for example "openai/gpt-5-mini"; the first of Models, if there
	// are any.
	Model string
	// Models are asked one after another if one fails; nil for Model alone. On are the codes of
	// the failures after which the next one is asked; nil for the default.
	Models, On []string
	// CallTimeout limits each model call of the context; zero leaves the provider's limits.
	CallTimeout CallTimeout
	// System has the system instructions, which are sent with every call.
	System string
	// Temperature and the following are nil for the provider's default.
	Temperature *float64
	MaxOutput   int // tokens; 0 means the provider's default
	Reasoning   string
	// History is "server" if the provider may keep the conversation; with "" and "client"
	// it is sent with every call.
	History string
	Budget  Budget
	View    View
}

// CallTimeout limits one model call: until its answer begins, without anything arriving, and in
// all. Zero is no limit of its own.
type CallTimeout struct {
	First, Idle, Total time.Duration
}

// Budget limits the input of one model call, in tokens.
type Budget struct {
	Window  int // tokens; 0 means the model's own
	Reserve int // tokens reserved for the answer; 0 means the default
}

// SpendLimits is the `budget:` key: it limits the spending of a run or one of its nodes on
// models, including retries and calls with an unknown outcome. 0 means no limit.
type SpendLimits struct {
	MaxTokens int     `json:"maxTokens,omitempty"` // input and output
	MaxCost   float64 `json:"maxCost,omitempty"`   // US dollars
	MaxCalls  int     `json:"maxCalls,omitempty"`  // model calls
	// OnLimit says what happens when a call would exceed the budget: "fail" (the default)
	// fails the node with budget_exceeded, "pause" asks a person for an increase, "branch"
	// completes the node with only its port limit.
	OnLimit string `json:"onLimit,omitempty"`
}

// View says how a context is reduced when it outgrows its budget. Zero values mean the
// defaults.
type View struct {
	// Strategy is "window" (omits the oldest messages), "summary" (replaces them with a
	// summary) or "all" (omits nothing).
	Strategy string `json:"strategy,omitempty"`
	// Low is the size after a cut, in per cent of the room.
	Low int `json:"low,omitempty"`
	// KeepResults is the number of newest tool results that keep their text when old ones
	// are cleared; -1 clears none.
	KeepResults int `json:"keepResults,omitempty"`
	// MaxResult is the number of tokens of one tool result that are shown.
	MaxResult int `json:"maxResult,omitempty"`
	// Summary is the maximum number of tokens of a summary, and Model the model that makes
	// it.
	Summary int    `json:"summary,omitempty"`
	Model   string `json:"model,omitempty"`
}

// Input is a declared input of a run.
type Input struct {
	Name        string
	Type        PortType
	Required    bool
	Default     any // nil for none
	Description string
	Schema      map[string]any // JSON Schema, nil for none
	Pos         Pos
}

// StateKey declares how concurrent writes to one key of the state combine.
type StateKey struct {
	Name string
	// Scope says how long the value lives: ScopeRun (also ""), ScopeSession or ScopeUser.
	Scope   string
	Reducer Reducer
	// OnConflict says what happens to a run that completes with another value for a key with
	// ScopeUser which another run has changed since it was read: ConflictFail or
	// ConflictRetryRound. "" means that the reducer combines the writes.
	OnConflict string
	Initial    any // nil for none
	Schema     map[string]any
	Pos        Pos
}

// How long the value of a state key lives. A session's rounds read a key with ScopeSession
// as the completed rounds before them left it. The runs of a user read a key with ScopeUser
// as the runs of the flow for that user that completed before left it; what they write is
// combined by the key's reducer, or refused if OnConflict is set, so that no write of another run
// is lost.
const (
	ScopeRun     = "run"
	ScopeSession = "session"
	ScopeUser    = "user"
)

// What happens to a run that has lost the race for a value of its user. ConflictFail fails it.
// ConflictRetryRound fails it too and, if it is a round of a session, starts another round with
// the same message.
const (
	ConflictFail       = "fail"
	ConflictRetryRound = "retryRound"
)

// Commutes reports whether writes of parallel runs combine in any order without losing one.
func (r Reducer) Commutes() bool {
	switch r {
	case ReduceSum, ReduceMin, ReduceMax, ReduceAppend, ReduceMerge:
		return true
	default:
		return false
	}
}

// MaxScopedBytes is the maximum size of the values that a session keeps between its
// rounds, or that a flow keeps for a user, measured as the state of a run is.
const MaxScopedBytes = 64 << 10

// Reducer says how a write combines with the present value.
type Reducer string

// The reducers. ReduceNone (no reducer) makes two unordered writers an error.
const (
	ReduceNone    Reducer = ""
	ReduceReplace Reducer = "replace" // the last in flow order of completion wins
	ReduceAppend  Reducer = "append"  // concatenates lists; another value is appended as one element
	ReduceMerge   Reducer = "merge"   // merges objects key by key
	ReduceMax     Reducer = "max"
	ReduceMin     Reducer = "min"
	ReduceSum     Reducer = "sum"
)

// Node is one step of a graph.
type Node struct {
	ID          string
	Type        string // a name in the catalogue, with aliases resolved
	Description string
	// In binds input ports to literals and to templates that are more than one reference,
	// sorted by name. A port bound to exactly one reference has an Edge instead.
	In []Binding
	// With has the settings as in the file, JSON-like values.
	With map[string]any
	// Body is the inner graph of a composite, nil otherwise. It is not in With.
	Body *Graph
	// Branches are the branches of a composite that has several bodies, sorted by name. Body
	// then is the concatenation of their graphs, which no edge connects and in which node ids
	// are unique.
	Branches []Branch
	// Uses is the flow that a node of a type with Uses runs, nil otherwise.
	Uses *Flow
	// Runs are the flows that a node of a type with Flows may run, in the order of its
	// settings, each once.
	Runs []*Flow
	// Join says which control edges must be taken: "any" (default) or "all".
	Join string
	// Retry, Timeout, OnError and Cache are zero if the file has none.
	Retry   Retry
	Timeout Timeout
	OnError OnError
	Cache   Cache
	// Spend limits the spending of the node on models, including nodes inside it.
	Spend SpendLimits
	// Isolation is "", "fresh", "fork" or "share"; only on composites and on nodes that run
	// a flow.
	Isolation string
	// InterruptBefore and InterruptAfter pause the run around the node.
	InterruptBefore, InterruptAfter bool
	// Artifacts are the data that the node declares when it completes.
	Artifacts []Artifact
	Pos       Pos
	// Places are the positions of evaluated settings, by path: "headers.accept".
	Places map[string]Pos

	recorded *TypeSpec // of a node of a recorded flow; see SpecIn
}

// PlaceOf returns the position of a setting such as "headers.accept" in the file; the
// node's own position if that is unknown.
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

// Branch is one of several bodies of a composite.
type Branch struct {
	Name string
	Graph
}

// Binding binds a name to a value: a literal, or a structure with templates.
type Binding struct {
	Name string
	// Value is JSON-like; strings in it may contain {{ }} templates.
	Value any
	Pos   Pos
}

// Retry says how often and when a failed attempt is repeated.
type Retry struct {
	// Attempts is the total number of attempts; 0 and 1 mean one.
	Attempts int
	// Backoff is the wait before the second attempt; it doubles each time, to
	// at most 5 minutes.
	Backoff time.Duration
	// On lists the error codes that are retried; empty means every code that is not
	// permanent.
	On []string
}

// Timeout limits one attempt; zero means no limit.
type Timeout struct {
	Total time.Duration // from start to end
	Idle  time.Duration // without an effect, chunk or progress
}

// OnError says how a final failure is handled.
type OnError struct {
	// Handled is true for `onError: {value: ...}`: the node completes with Value on its
	// first output port.
	Handled bool
	Value   any
}

// Cache says that a pure node's outputs are reused across runs.
type Cache struct {
	// Shared keeps the entry for all users; otherwise each user has their own.
	Shared bool
	On     bool
	TTL    time.Duration // 0 means for ever
	Key    string        // template; "" means the node's inputs
}

// EdgeKind says what an edge carries.
type EdgeKind string

// The kinds of edge. Control edges carry order and branch, but no value.
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
	// Partial marks an edge that exists because a template in the target's In reads it. The
	// port's value is the result of the template, not the edge's value.
	Partial bool
	// Conditional marks a Partial edge that the template may not read, because it is in a
	// branch of ?:, next to || or &&, or in a macro: the port can have a value without it.
	// Guarded marks one that the template tests with has(): the target may run without it.
	Conditional, Guarded bool
	// Metadata is free-form and preserved in round trips.
	Metadata map[string]any
	Pos      Pos
}

// Pos is a position in a file; lines and columns count from 1, 0 means unknown.
type Pos struct {
	File         string
	Line, Column int
}
