package flow

// The codes of problems. They are stable: scripts and pages depend on them.
const (
	CodeSyntax            = "syntax"             // the file is not YAML or JSON
	CodeTooBig            = "too_big"            // exceeds a limit of limits.go
	CodeDuplicateKey      = "duplicate_key"      // a key occurs twice in an object
	CodeUnknownKey        = "unknown_key"        // a key that does not exist in flow files
	CodeMissingKey        = "missing_key"        // a required key is absent
	CodeBadValue          = "bad_value"          // a value has the wrong type or is out of range
	CodeBadVersion        = "bad_version"        // `weir:` is not a version
	CodeNewerVersion      = "newer_version"      // the file requires a newer build
	CodeEmptyFlow         = "empty_flow"         // a flow or body without nodes
	CodeBadID             = "bad_id"             // an invalid id or name
	CodeReservedID        = "reserved_id"        // an id that expressions reserve
	CodeDuplicateID       = "duplicate_id"       // two edges, or two nodes of branches, with one id
	CodeBadDuration       = "bad_duration"       // not a duration
	CodeBadReducer        = "bad_reducer"        // not a reducer
	CodeUnknownType       = "unknown_type"       // no such node type
	CodeUnknownNode       = "unknown_node"       // no such node in this scope
	CodeUnknownPort       = "unknown_port"       // the node has no such port
	CodeUnreadInput       = "unread_input"       // an input of a node that nothing reads
	CodeUnknownInput      = "unknown_input"      // no such input of the flow, body or node
	CodeUnknownReference  = "unknown_reference"  // a name that is undefined here
	CodeOuterReference    = "outer_reference"    // a body refers to a node around it
	CodeBadExpression     = "bad_expression"     // invalid {{ }} or expression
	CodeSecretRefused     = "secret_refused"     // secrets.* where it is not allowed
	CodeMissingInput      = "missing_input"      // a required port is unbound
	CodeMissingSetting    = "missing_setting"    // a required setting is absent
	CodeUnknownSetting    = "unknown_setting"    // the type has no such setting
	CodeInvalidSetting    = "invalid_setting"    // a setting that the type refuses
	CodeRaceEffect        = "race_effect"        // a branch that may act outside the run
	CodeMissingBody       = "missing_body"       // a composite without `with.body`
	CodePortConflict      = "port_conflict"      // two values for a port that takes one value
	CodeTypeMismatch      = "type_mismatch"      // incompatible port types
	CodeBadEdge           = "bad_edge"           // an entry of `edges` that connects nothing
	CodeDuplicateEdge     = "duplicate_edge"     // a duplicate connection
	CodeCycle             = "cycle"              // nodes that depend on each other
	CodeUnreachable       = "unreachable"        // a node that can never run
	CodeAmbiguousContext  = "ambiguous_context"  // two contexts for one node
	CodeNeedsIsolation    = "needs_isolation"    // retry or cache of a composite without a lane
	CodeNotComposite      = "not_composite"      // isolation of a node without a body
	CodeNotPure           = "not_pure"           // cache of a type that is not pure
	CodeNoModel           = "no_model"           // a budget of a node that calls no model
	CodeNeverCompletes    = "never_completes"    // a key that acts on completion, on a node that never completes
	CodeUnorderedWriters  = "unordered_writers"  // two writers of a state key, no reducer
	CodeUnknownPortal     = "unknown_portal"     // a portalIn without its portalOut
	CodeDuplicatePortal   = "duplicate_portal"   // two portalOut of one name
	CodeUnknownFlow       = "unknown_flow"       // a flow that does not exist
	CodeUnknownTool       = "unknown_tool"       // a tool that this process does not offer
	CodeToolArguments     = "tool_arguments"     // arguments that do not fit the tool
	CodeFlowCycle         = "flow_cycle"         // flows that use each other
	CodeFlowChanged       = "flow_changed"       // a flow differs from the pinned one
	CodeTooManyProblems   = "too_many_problems"  // further problems are not listed
	CodeUnsupportedSyntax = "unsupported_syntax" // YAML that flow files do not support
)

// Code is one row of the table of problem codes.
type Code struct {
	// Name is the stable code, Meaning what is wrong, Remedy what to do.
	Name, Meaning, Remedy string
}

// Codes returns the table of problem codes, by name.
func Codes() []Code {
	return []Code{
		{CodeAmbiguousContext, "Two context edges that may both be taken bring different contexts to one node.", "Keep one, or let them leave different branches of one node."},
		{CodeBadDuration, "The value is not a duration, or is negative.", "Write 30s, 5m or 1h30m, or whole seconds."},
		{CodeBadEdge, "An entry of `edges` does not connect an output port to an input port, nor a node to a node.", "Write from: node.port and to: node.port, or from: node and to: node."},
		{CodeBadExpression, "An expression is invalid.", "Correct it at the place that the message names; write a literal {{ as {{ '{{' }}."},
		{CodeBadID, "An id or name has characters that are not allowed.", "Use at most 64 letters, digits and _, and do not begin with a digit."},
		{CodeBadReducer, "The reducer does not exist.", "Use append, merge, max, min, sum or replace."},
		{CodeBadValue, "A value has the wrong type or is out of range.", "Give the value that the message describes."},
		{CodeBadVersion, "`weir:` does not hold a version number.", "Write weir: 1."},
		{CodeCycle, "Nodes depend on each other in a cycle.", "Repeat with a loop node, which carries values from one iteration to the next."},
		{CodeDuplicateEdge, "A connection is listed twice.", "Remove one."},
		{CodeDuplicateID, "Two edges of one graph, or two nodes in the branches of one node, have the same id.", "Rename one of them."},
		{CodeDuplicateKey, "A key occurs twice in an object.", "Remove or rename one of them."},
		{CodeDuplicatePortal, "Two portalOut nodes of one scope have the same name.", "Rename one."},
		{CodeEmptyFlow, "A flow or body has no nodes.", "Add a node under `nodes:`."},
		{CodeFlowChanged, "`uses` pins a flow to a fingerprint, and the flow that was found has a different one.", "Restore the pinned flow, or remove the entry to accept the present one."},
		{CodeFlowCycle, "Flows use each other in a cycle.", "Let one flow use itself with flow: self, or repeat with a loop."},
		{CodeInvalidSetting, "A node type refuses a setting.", "Give the value that the message describes; `weir nodes TYPE` shows the settings."},
		{CodeRaceEffect, "A branch of a race may change something outside the run.", "Move the node behind the race, or set allowEffects: true on the race."},
		{CodeMissingBody, "A composite has no `with.body`, or no `with.branches`.", "Add body: {nodes: ..., outputs: ...}, or branches: {NAME: {nodes: ..., outputs: ...}, ...}."},
		{CodeMissingInput, "A required input port of a node is not bound.", "Bind it under `in:`."},
		{CodeMissingKey, "A required key is absent.", "Add it."},
		{CodeMissingSetting, "A required setting of a node is absent.", "Add it under `with:`."},
		{CodeNeedsIsolation, "`retry` or `cache` on a composite requires a lane that can be discarded as a whole.", "Add isolation: fork."},
		{CodeNeverCompletes, "A node type that never completes has `cache`, `artifacts` or `interruptAfter`.", "Remove it."},
		{CodeNewerVersion, "The file requires a newer version of Weir.", "Upgrade weir."},
		{CodeNoModel, "A node that calls no model has a `budget`.", "Remove it, or set it on the flow or on a node that calls a model."},
		{CodeNotComposite, "A node without a body that runs no flow has `isolation`.", "Remove it."},
		{CodeNotPure, "A node has `cache`, but its outputs depend on more than its inputs.", "Remove it, or move the pure part to a separate node."},
		{CodeOuterReference, "A body refers to a node outside it.", "Pass the value through the composite's `in:` and read inputs.NAME."},
		{CodePortConflict, "Two values may arrive at a port that takes one, or onError and a connected port error both handle a failure.", "Combine the values with a merge node; remove one of the two handlers."},
		{CodeReservedID, "The id is reserved: a keyword of the expression language or a root name.", "Choose another id."},
		{CodeSecretRefused, "secrets.* is used where secrets are not allowed.", "Read secrets only in settings that are marked secret."},
		{CodeSyntax, "The file is not valid YAML or JSON.", "Correct it at the place that the message names."},
		{CodeTooBig, "The file exceeds a limit: size, depth, aliases or numbers.", "Split the flow, or move data out of it."},
		{CodeToolArguments, "The arguments that a node gives a tool do not fit the schema of the tool.", "Give the arguments that the message lists; `weir tools NAME` shows the schema."},
		{CodeTooManyProblems, "The flow has more problems than are listed.", "Correct the listed problems first."},
		{CodeTypeMismatch, "The types of two connected ports are incompatible.", "Convert it with a transform or template node."},
		{CodeUnknownFlow, "A node runs a flow that cannot be found.", "Correct the path, which is relative to the folder of the file, or add the file."},
		{CodeUnknownInput, "The input does not exist.", "Declare it under `inputs:`, or bind it under the node's `in:`."},
		{CodeUnknownKey, "Flow files do not have this key here.", "Remove it, or correct the spelling."},
		{CodeUnknownNode, "No node of this scope has that id.", "Correct the spelling, or add the node."},
		{CodeUnknownPort, "The node does not have that port.", "Use one of the ports that the message lists."},
		{CodeUnknownPortal, "No portalOut of this scope has that name.", "Correct the spelling, or add the portalOut."},
		{CodeUnknownReference, "A name is not defined here.", "Use one of the names that the message lists."},
		{CodeUnknownSetting, "The node type does not have that setting.", "Remove it, or correct the spelling."},
		{CodeUnknownTool, "A node calls a tool that this process does not offer.", "Correct the name, or start Weir with a configuration that offers the tool; `weir tools` lists the tools."},
		{CodeUnknownType, "The node type does not exist in the catalogue.", "Correct the spelling; `weir nodes` lists the types."},
		{CodeUnorderedWriters, "Two nodes write the same state key in no defined order, and no reducer is declared.", "Declare a reducer under `state:`, or order them with `after:`."},
		{CodeUnreachable, "The node can never run, because its conditions contradict each other.", "Use join: any, or a merge node."},
		{CodeUnreadInput, "No port, setting or body of a node reads one of its inputs.", "Rename the input to a port, or to the NAME that the settings read as inputs.NAME, or remove it; to order nodes without a value use `after:`."},
		{CodeUnsupportedSyntax, "The file uses YAML that flow files do not support: merge keys, tags, several documents.", "Write the content in full."},
	}
}
