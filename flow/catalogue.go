package flow

// PortType names what a port carries.
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
	// Required: the node is skipped unless the port has a value. Validation
	// refuses a flow that leaves a required port unbound.
	Required bool
	// Lazy: its sources run only when the node pulls the port.
	Lazy bool
	// Many: any number of edges, collected as a list in edge order.
	Many bool
	// Exclusive: several edges, of which at most one may be taken, as `merge`.
	Exclusive bool
	// Branch marks an output of which a node takes one only, as the branches of
	// `decision` and `switch`: edges from different branches of one node
	// exclude each other, so they may end in one single port.
	Branch bool
	Schema map[string]any // JSON Schema of the value, nil is none
}

// ContextUse is what a node does with its context.
type ContextUse int

// The uses of a context. Only ContextWrite needs the grant.
const (
	ContextNone ContextUse = iota
	ContextRead
	ContextWrite
)

// Ports are the ports a node has under given settings.
type Ports struct {
	In, Out []Port
	// AnyIn accepts input ports beyond In, of type any (template, transform).
	AnyIn bool
	// AnyOut likewise for outputs; used where they cannot be known at load.
	AnyOut bool
}

// TypeSpec describes one node type to the loader, the schema, the page's form
// and the docs. It is data and pure functions: reading one runs nothing.
type TypeSpec struct {
	Name    string
	Aliases []string
	// Version changes when the type's behaviour does; part of a run's closure
	// and of cache keys. From 1.
	Version int
	// Summary is one sentence; Doc is Markdown.
	Summary, Doc string
	// Category groups the catalogue: flow, context, model, data, io, control.
	Category string
	// Ports under default settings. Shape, where set, gives them for a node's
	// own settings (branches, categories) and is total: bad settings are
	// reported by Check, not here.
	Ports    Ports
	PortsFor func(with map[string]any) Ports
	// Uses, where set, makes this a type that runs another flow, which the
	// setting `flow` names by its reference.
	Uses *UseSpec
	// Flows, where set, lists the flows that other settings name, each of which a
	// node of the type may run as a child run. It is total, as Shape is.
	Flows func(with map[string]any) []FlowRef
	// Settings is the JSON Schema of `with`; unknown keys are errors. The
	// keyword "x-weir" on a property marks its role: "template" (may hold
	// {{ inputs.* state.* run.* }}), "expression" (bare CEL over the same),
	// "secret" (may hold {{ secrets.NAME }}).
	Settings map[string]any
	// Check reports what Settings cannot say. Nil is no further check.
	Check func(with map[string]any) []Problem
	// Reads, where set, lets the loader refuse inputs that nothing reads: it lists
	// the input ports beyond those of Ports that a node with such settings reads by
	// itself, all of them where the second result is true. What settings, the cache
	// key, artifacts and a body read as inputs.NAME is known beside it. Nil is for
	// types that may read any.
	Reads func(with map[string]any) (names []string, all bool)
	// Context is what the type does with its context; ContextFor, where set,
	// decides it from the settings.
	Context    ContextUse
	ContextFor func(with map[string]any) ContextUse
	// NewContext: the context on the node's `context` output is one the node
	// makes, neither the main one nor one that came in (newContext).
	NewContext bool
	// Composite types have a Body graph under `with.body`.
	Composite bool
	// BodyInputs are what a composite's body may read under inputs.* beside
	// the input ports of the node and, where its ports are AnyOut, the outputs
	// of the body itself, which are carried from turn to turn; nil is item and
	// index.
	BodyInputs []string
	// Pure: no effect and no writing of a context; outputs depend on settings,
	// inputs and the state read. Such a node may run before its start is
	// durable, and may be cached.
	Pure bool
	// PureFor, where set, decides from the settings whether a type that is not
	// Pure may be cached (llmRequest with skipHistory).
	PureFor func(with map[string]any) bool
	// Replays: no effect, and what the node does follows from its settings, its
	// inputs, and the state, contexts, answers and iterations as the journal has
	// them. With Inline such a node too may run before its start is durable.
	Replays bool
	// Inline: cheap enough to run on the run's own goroutine. Only with Pure,
	// unless the author vouches for it.
	Inline bool
	// InlineFor, where set, decides from the settings which nodes of a type are
	// Inline, and what Replays says holds for those alone.
	InlineFor func(with map[string]any) bool
	// OnlyWaits: the node waits for something outside and does nothing else, so that a
	// `timeout: {idle: ...}` would say nothing.
	OnlyWaits bool
	// OnlyFails: the node never completes, so that what acts on a completion is refused.
	OnlyFails bool
	// AsksModels, where set, decides from the settings whether a node of the type may call
	// a model; a `budget` is refused where it may not. Nil is for types that may. It is not
	// asked of composites and of types with Uses, which may where something inside may.
	AsksModels func(with map[string]any) bool
	// PassThrough: the output on port P is the value that came in unchanged,
	// so provenance follows through it (merge, portalIn, portalOut).
	PassThrough bool
	// Writes lists the state keys the settings say the node writes, for the
	// check of unordered writers at load. Nil is unknown.
	Writes func(with map[string]any) []string
	// Portal is "out" for the type that names a value, "in" for the type that
	// reads it, both under `with.name`; the loader joins them by a hidden edge.
	Portal string
	// Examples are whole flows that run as tests and stand in the docs.
	Examples []Example
}

// UseSpec is what a type that runs another flow says of its nodes. The
// functions are pure and total, as Shape and Check are.
type UseSpec struct {
	// PortsFor gives the ports of a node that runs child.
	PortsFor func(with map[string]any, child *Flow) Ports
	// Check reports settings that do not suit the child; nil is no check.
	Check func(with map[string]any, child *Flow) []Problem
}

// FlowRef is a flow that a setting names.
type FlowRef struct {
	// Setting is where it is named, as Problem.Setting is: "pre.0.flow".
	Setting string
	// Ref is what stands there.
	Ref string
	// Check reports settings that do not suit the flow; nil is no check.
	Check func(child *Flow) []Problem
}

// PortsOf are the ports of a node of this type.
func (s *TypeSpec) PortsOf(n *Node) Ports {
	switch {
	case s.Uses != nil && n.Uses != nil:
		return s.Uses.PortsFor(n.With, n.Uses)
	case s.PortsFor != nil:
		return s.PortsFor(n.With)
	}
	return s.Ports
}

// ContextOf is what a node of this type does with its context.
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

// Example is a flow with what it is given and what it returns.
type Example struct {
	Name string
	// Flow is YAML, and Files are the flow files beside it that it uses, by path.
	Flow  string
	Files map[string]string
	// Inputs of the run, answers to its questions by node path, and scripted
	// model turns in call order.
	Inputs  map[string]any
	Answers map[string]any
	Script  []string
	// Outputs the run must end with; Error, where set, is the code it must
	// fail with instead.
	Outputs map[string]any
	Error   string
}

// Catalogue finds node types by name or alias.
type Catalogue interface {
	// Lookup returns the spec under a name or alias, nil where there is none.
	Lookup(name string) *TypeSpec
	// Specs lists all specs by name.
	Specs() []*TypeSpec
}
