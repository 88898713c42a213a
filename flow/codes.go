package flow

// The codes of problems. They are stable: scripts and pages branch on them.
const (
	CodeSyntax            = "syntax"             // the file is not YAML or JSON
	CodeTooBig            = "too_big"            // a bound of limits.go is passed
	CodeDuplicateKey      = "duplicate_key"      // one key twice in an object
	CodeUnknownKey        = "unknown_key"        // a key that flow files do not have
	CodeMissingKey        = "missing_key"        // a key that must be there
	CodeBadValue          = "bad_value"          // a value of the wrong kind or out of range
	CodeBadVersion        = "bad_version"        // `weir:` is not a version
	CodeNewerVersion      = "newer_version"      // the file is for a newer build
	CodeEmptyFlow         = "empty_flow"         // a flow or body without nodes
	CodeBadID             = "bad_id"             // an id or name that cannot be one
	CodeReservedID        = "reserved_id"        // an id that means something else
	CodeDuplicateID       = "duplicate_id"       // two edges with one id
	CodeBadDuration       = "bad_duration"       // not a duration
	CodeBadReducer        = "bad_reducer"        // not a reducer
	CodeUnknownType       = "unknown_type"       // no such node type
	CodeUnknownNode       = "unknown_node"       // no such node in this scope
	CodeUnknownPort       = "unknown_port"       // the node has no such port
	CodeUnreadInput       = "unread_input"       // an input of a node that nothing reads
	CodeUnknownInput      = "unknown_input"      // no such input of the flow, body or node
	CodeUnknownReference  = "unknown_reference"  // a name that means nothing here
	CodeOuterReference    = "outer_reference"    // a body refers to a node around it
	CodeBadExpression     = "bad_expression"     // {{ }} or an expression cannot be read
	CodeSecretRefused     = "secret_refused"     // secrets.* where it may not stand
	CodeMissingInput      = "missing_input"      // a required port is unbound
	CodeMissingSetting    = "missing_setting"    // a required setting is absent
	CodeUnknownSetting    = "unknown_setting"    // the type has no such setting
	CodeInvalidSetting    = "invalid_setting"    // a setting the type refuses
	CodeMissingBody       = "missing_body"       // a composite without `with.body`
	CodePortConflict      = "port_conflict"      // two values for a port that takes one
	CodeTypeMismatch      = "type_mismatch"      // port types that do not fit
	CodeBadEdge           = "bad_edge"           // an entry of `edges` that connects nothing
	CodeDuplicateEdge     = "duplicate_edge"     // one connection twice
	CodeCycle             = "cycle"              // nodes that wait for each other
	CodeUnreachable       = "unreachable"        // a node that can never run
	CodeAmbiguousContext  = "ambiguous_context"  // two contexts for one node
	CodeNeedsIsolation    = "needs_isolation"    // retry or cache of a composite without a lane
	CodeNotComposite      = "not_composite"      // isolation of a node that has no body
	CodeNotPure           = "not_pure"           // cache of a type that is not pure
	CodeNoModel           = "no_model"           // a budget of a node that calls no model
	CodeNeverCompletes    = "never_completes"    // a key that acts on completion, of a node that has none
	CodeUnorderedWriters  = "unordered_writers"  // two writers of a state key, no reducer
	CodeUnknownPortal     = "unknown_portal"     // a portalIn without its portalOut
	CodeDuplicatePortal   = "duplicate_portal"   // two portalOut of one name
	CodeUnknownFlow       = "unknown_flow"       // a flow that is not there
	CodeFlowCycle         = "flow_cycle"         // flows that use each other
	CodeFlowChanged       = "flow_changed"       // a flow is not the one that is pinned
	CodeTooManyProblems   = "too_many_problems"  // the rest is not listed
	CodeUnsupportedSyntax = "unsupported_syntax" // YAML that flow files do without
)

// Code is one row of the table of problem codes.
type Code struct {
	// Name is the stable code; Meaning says what is wrong, Remedy what to do.
	Name, Meaning, Remedy string
}

// Codes is the table of problem codes, by name.
func Codes() []Code {
	return []Code{
		{CodeAmbiguousContext, "Two context edges that may both be taken bring different contexts to one node.", "Keep one, or let them leave different branches of one node."},
		{CodeBadDuration, "The value is no duration, or a negative one.", "Write 30s, 5m or 1h30m, or whole seconds."},
		{CodeBadEdge, "An entry of `edges` does not connect an output port to an input port, nor a node to a node.", "Write from: node.port and to: node.port, or from: node and to: node."},
		{CodeBadExpression, "An expression cannot be read.", "Mend it at the place the message names; a literal {{ is written {{ '{{' }}."},
		{CodeBadID, "An id or name has characters that ids do not have.", "Use letters, digits and _, not a digit first, at most 64."},
		{CodeBadReducer, "No reducer has that name.", "Use append, merge, max, min, sum or replace."},
		{CodeBadValue, "A value is of the wrong kind or out of range.", "Give what the message expects."},
		{CodeBadVersion, "`weir:` does not hold a version number.", "Write weir: 1."},
		{CodeCycle, "Nodes wait for each other in a circle.", "Repeat with a loop node; it carries values from one turn to the next."},
		{CodeDuplicateEdge, "One connection is listed twice.", "Remove one."},
		{CodeDuplicateID, "Two edges of one graph have the same id.", "Rename one; ids are for whoever annotates edges."},
		{CodeDuplicateKey, "An object has one key twice.", "Remove or rename one."},
		{CodeDuplicatePortal, "Two portalOut nodes of one scope have the same name.", "Rename one."},
		{CodeEmptyFlow, "A flow or body has no nodes.", "Add a node under `nodes:`."},
		{CodeFlowChanged, "`uses` pins a flow to a fingerprint, and the flow that is found has another.", "Bring back the flow that was pinned, or remove the entry to take the one that is there."},
		{CodeFlowCycle, "Flows use each other in a circle.", "Let one flow use itself with flow: self, or repeat with a loop."},
		{CodeInvalidSetting, "A node type refuses a setting.", "Give what the message expects; `weir nodes TYPE` shows the settings."},
		{CodeMissingBody, "A loop or forEach has no `with.body`.", "Add body: {nodes: ..., outputs: ...}."},
		{CodeMissingInput, "A required input port of a node is unbound.", "Bind it under `in:`."},
		{CodeMissingKey, "A key that must be there is not.", "Add it."},
		{CodeMissingSetting, "A required setting of a node is absent.", "Add it under `with:`."},
		{CodeNeedsIsolation, "`retry` or `cache` on a composite needs a lane that is dropped as a whole.", "Add isolation: fork."},
		{CodeNeverCompletes, "`cache`, `artifacts` or `interruptAfter` stands on a type whose nodes never complete.", "Remove it."},
		{CodeNewerVersion, "The file is written for a newer Weir.", "Upgrade weir."},
		{CodeNoModel, "`budget` stands on a node that calls no model.", "Remove it, or set it on the flow or on a node that calls one."},
		{CodeNotComposite, "`isolation` stands on a node that has no body and runs no flow.", "Remove it."},
		{CodeNotPure, "`cache` stands on a type whose outputs depend on more than its inputs.", "Remove it, or put the pure part into a node of its own."},
		{CodeOuterReference, "A body refers to a node outside it.", "Pass the value through the composite's `in:` and read inputs.NAME."},
		{CodePortConflict, "Two values may arrive at a port that takes one, or onError and a wired port error handle one failure.", "Join the values with a merge node; remove one of the two handlers."},
		{CodeReservedID, "The id is a word of the expression language or a root name.", "Choose another id."},
		{CodeSecretRefused, "secrets.* stands where secrets may not go.", "Secrets may be read in settings marked secret only."},
		{CodeSyntax, "The file is not YAML, or not JSON.", "Mend it at the place the message names."},
		{CodeTooBig, "The file passes a bound: size, depth, aliases, numbers.", "Split the flow, or keep data out of it."},
		{CodeTooManyProblems, "There are more problems than are listed.", "Mend these first."},
		{CodeTypeMismatch, "A value of one port type cannot go to a port of the other.", "Convert it with a transform or template node."},
		{CodeUnknownFlow, "A node runs a flow that cannot be found.", "Respell the path, which goes from the folder of the file it stands in, or add the file."},
		{CodeUnknownInput, "No input has that name.", "Declare it under `inputs:`, or bind it under the node's `in:`."},
		{CodeUnknownKey, "Flow files have no such key there.", "Remove or respell it."},
		{CodeUnknownNode, "No node of this scope has that id.", "Respell it, or add the node."},
		{CodeUnknownPort, "The node has no such port.", "Use one of those the message lists."},
		{CodeUnknownPortal, "No portalOut of this scope has that name.", "Respell it, or add the portalOut."},
		{CodeUnknownReference, "A name means nothing where it stands.", "Use a name the message lists."},
		{CodeUnknownSetting, "The node type has no such setting.", "Remove or respell it."},
		{CodeUnknownType, "The catalogue has no such node type.", "Respell it; `weir nodes` lists the types."},
		{CodeUnorderedWriters, "Two nodes write one key of the state, neither after the other, and no reducer is declared.", "Declare a reducer under `state:`, or order them with `after:`."},
		{CodeUnreachable, "The node can never run: what it needs excludes itself.", "Use join: any, or a merge node."},
		{CodeUnreadInput, "A node is given an input that no port, setting or body of it reads.", "Respell it after a port or after what the settings read as inputs.NAME, or remove it; order without a value is `after:`."},
		{CodeUnsupportedSyntax, "YAML that flow files do without: merge keys, tags, several documents.", "Write it out."},
	}
}
