package flow

// PortType is the type of a port's values.
type PortType string

// The port types. Coercions between them are listed in Assignable.
const (
	TypeText     PortType = "text"
	TypeNumber   PortType = "number"
	TypeBool     PortType = "bool"
	TypeObject   PortType = "object"
	TypeList     PortType = "list"
	TypeMessage  PortType = "message"
	TypeMessages PortType = "messages"
	TypeContext  PortType = "context"
	TypeTools    PortType = "tools"
	TypeFile     PortType = "file"
	TypeAny      PortType = "any"
)

// Port is a named input or output of a node type.
type Port struct {
	Name        string
	Type        PortType
	Description string
	// Required: the node is skipped unless the port has a value. Validation refuses a flow
	// that does not bind a required port.
	Required bool
	// Lazy: its sources run only when the node pulls the port.
	Lazy bool
	// Many: any number of edges, whose values are collected as a list in edge order.
	Many bool
	// Exclusive: several edges, of which at most one may be taken, as for `merge`.
	Exclusive bool
	// Branch marks an output of which a node takes only one, as the branches of `decision`
	// and `switch`. Edges from different branches of one node exclude each other, so they
	// may end in one single port.
	Branch bool
	Schema map[string]any // JSON Schema of the value, nil for none
}

// ContextUse is how a node uses its context.
type ContextUse int

// The uses of a context. Only ContextWrite requires a grant.
const (
	ContextNone ContextUse = iota
	ContextRead
	ContextWrite
)

// Ports are the ports of a node under given settings.
type Ports struct {
	In, Out []Port
	// AnyIn accepts further input ports, of type any (template, transform).
	AnyIn bool
	// AnyOut does the same for outputs that cannot be known at load.
	AnyOut bool
}

// TypeSpec describes one node type to the loader, the schema, the forms of the web UI and
// the docs. It consists of data and pure functions: reading one executes nothing.
type TypeSpec struct {
	Name    string
	Aliases []string
	// Version changes with the type's behaviour. It is part of a run's pinned dependencies
	// and of cache keys. From 1.
	Version int
	// Summary is one sentence; Doc is Markdown.
	Summary, Doc string
	// Category groups the catalogue: flow, context, model, data, io, control.
	Category string
	// Ports under default settings. PortsFor, if set, returns them for a node's own settings
	// (branches, categories). It must accept any settings: Check reports invalid ones.
	Ports    Ports
	PortsFor func(with map[string]any) Ports
	// Uses, if set, makes this a type that runs another flow, which the setting `flow`
	// names by its reference.
	Uses *UseSpec
	// Flows, if set, lists the flows that other settings name, which a node of the type may
	// run as child runs. It must accept any settings, as PortsFor does.
	Flows func(with map[string]any) []FlowRef
	// Settings is the JSON Schema of `with`; unknown keys are errors. The keyword "x-weir"
	// on a property marks its role: "template" (may contain {{ inputs.* state.* run.* }}),
	// "expression" (bare CEL over the same), "secret" (may contain {{ secrets.NAME }}).
	Settings map[string]any
	// Check reports what Settings cannot express. Nil means no further check.
	Check func(with map[string]any) []Problem
	// Reads, if set, lets the loader refuse inputs that nothing reads. It lists the input
	// ports beyond those of Ports that a node with such settings reads itself; the second
	// result says that it reads all of them. Reads of inputs.NAME by settings, the cache
	// key, artifacts and a body are found by the loader. Nil means that the type may read
	// any input.
	Reads func(with map[string]any) (names []string, all bool)
	// Context is how the type uses its context; ContextFor, if set, decides it from the
	// settings.
	Context    ContextUse
	ContextFor func(with map[string]any) ContextUse
	// NewContext: the node creates the context on its `context` output; it is neither the
	// main context nor an incoming one (newContext).
	NewContext bool
	// Composite types have a Body graph under `with.body`.
	Composite bool
	// Branches: a Composite has several bodies by name under `with.branches` instead. Each of
	// its iterations runs one of them, in a lane of its own.
	Branches bool
	// LanesFor, if set, decides from the settings whether the iterations of a Composite need
	// lanes: isolation is then fork, the default, or fresh. It must accept any settings.
	LanesFor func(with map[string]any) bool
	// BodyInputs are what a composite's body may read under inputs.* besides the input ports
	// of the node and, where its ports are AnyOut, the outputs of the body itself, which
	// are carried from iteration to iteration; nil means item and index.
	BodyInputs []string
	// Pure: the node has no effects and writes no context, and its outputs depend only on
	// settings, inputs and the state that it reads. Such a node may run before its start is
	// durable, and may be cached.
	Pure bool
	// PureFor, if set, decides from the settings whether a type that is not Pure may be
	// cached (llmRequest with skipHistory).
	PureFor func(with map[string]any) bool
	// Replays: the node has no effects, and its result follows from its settings, its
	// inputs, and the journaled state, contexts, answers and iterations. With Inline such a
	// node may also run before its start is durable.
	Replays bool
	// Inline: cheap enough to run on the run's own goroutine. Only with Pure, or with
	// Replays.
	Inline bool
	// InlineFor, if set, decides from the settings which nodes of a type are Inline;
	// Replays then applies only to those.
	InlineFor func(with map[string]any) bool
	// ActsOutside, if set, decides from the settings whether a node of the type itself may
	// change something outside the run. Tools that models call are not counted. Nil means
	// that it may, unless it is Pure, Replays, Composite or runs a flow.
	ActsOutside func(with map[string]any) bool
	// Steered, if set, decides from the settings whether a person may send messages to a
	// node of the type while it works, which its next model call takes.
	Steered func(with map[string]any) bool
	// OnlyWaits: the node only waits for something outside, so that `timeout: {idle: ...}`
	// would have no meaning.
	OnlyWaits bool
	// Codes, if set, lists the error codes with which a node of the type itself may fail, for
	// the check of `retry: {on: ...}`. It must accept any settings. Nil means any code. The
	// codes of nodes in a body, and of flows that the node runs, are added by the loader.
	Codes func(with map[string]any) []string
	// OnlyFails: the node never completes, so that keys which act on completion are
	// refused.
	OnlyFails bool
	// AsksModels, if set, decides from the settings whether a node of the type may call a
	// model; if not, a `budget` is refused. Nil means that it may. It is not called for
	// composites and types with Uses, which call models if something inside them does.
	AsksModels func(with map[string]any) bool
	// AnswersBySchema, if set, decides from the settings whether a node of the type restricts
	// answers of models to a JSON Schema of its own, for the check of what models take. A
	// setting `schema` counts as one without it.
	AnswersBySchema func(with map[string]any) bool
	// PassThrough: the output on port P is the unchanged input value, so that provenance
	// follows it (merge, portalIn, portalOut).
	PassThrough bool
	// Writes lists the state keys that the node writes according to its settings, for the
	// check of unordered writers at load. Nil means unknown.
	Writes func(with map[string]any) []string
	// Portal is "out" for the type that names a value, "in" for the type that reads it,
	// both under `with.name`; the loader connects them with a hidden edge.
	Portal string
	// Examples are whole flows that run as tests and appear in the docs.
	Examples []Example
}

// UseSpec describes the nodes of a type that runs another flow. The functions are pure and
// accept any settings, as PortsFor and Check.
type UseSpec struct {
	// PortsFor returns the ports of a node that runs child.
	PortsFor func(with map[string]any, child *Flow) Ports
	// Check reports settings that do not fit the child; nil means no check.
	Check func(with map[string]any, child *Flow) []Problem
	// PortsForAny returns the ports of a node that runs one of several flows, which Flows of
	// the type lists and the run chooses. Nil means that the type runs the flow in the
	// setting `flow` only.
	PortsForAny func(with map[string]any, children []*Flow) Ports
}

// FlowRef is a flow that a setting names.
type FlowRef struct {
	// Setting is the place of the reference, in the form of Problem.Setting: "pre.0.flow".
	Setting string
	// Ref is the reference.
	Ref string
	// Check reports settings that do not fit the flow; nil means no check.
	Check func(child *Flow) []Problem
}

// PortsOf returns the ports of a node of this type.
func (s *TypeSpec) PortsOf(n *Node) Ports {
	switch {
	case s.Uses != nil && n.Uses != nil:
		return s.Uses.PortsFor(n.With, n.Uses)
	case s.choosesFlow(n):
		return s.Uses.PortsForAny(n.With, n.Runs)
	case s.PortsFor != nil:
		return s.PortsFor(n.With)
	}
	return s.Ports
}

// choosesFlow reports whether the node runs one of several flows, which the run chooses.
func (s *TypeSpec) choosesFlow(n *Node) bool {
	return s.Uses != nil && s.Uses.PortsForAny != nil && n.Uses == nil && len(n.Runs) > 0
}

// NeedsLanes reports whether the iterations of a node of this type always have lanes.
func (s *TypeSpec) NeedsLanes(with map[string]any) bool {
	return s.Branches || s.LanesFor != nil && s.LanesFor(with)
}

// ContextOf returns how a node of this type uses its context.
func (s *TypeSpec) ContextOf(n *Node) ContextUse {
	use := s.Context
	if s.ContextFor != nil {
		use = s.ContextFor(n.With)
	}
	if s.Uses != nil && n.Isolation == "share" {
		return ContextWrite
	}
	return use
}

// Example is a flow with its inputs and expected outputs.
type Example struct {
	Name string
	// Flow is YAML; Files are the flow files that it uses, by path.
	Flow  string
	Files map[string]string
	// Inputs of the run, answers to its questions by node path, and scripted
	// model turns in call order.
	Inputs  map[string]any
	Answers map[string]any
	Script  []string
	// Tools are read-only tools that return these values, by name, and accept any arguments.
	// User is whose run it is; the tools of the long-term memory are offered, too.
	Tools map[string]any
	User  string
	// Outputs are the expected outputs; Error, if set, is the expected error code instead.
	Outputs map[string]any
	Error   string
}

// Catalogue finds node types by name or alias.
type Catalogue interface {
	// Lookup returns the spec with that name or alias, nil if there is none.
	Lookup(name string) *TypeSpec
	// Specs lists all specs by name.
	Specs() []*TypeSpec
	// Settings returns the schemas of their settings, which loads prepare and share.
	Settings() *SettingsSchemas
}
