package engine

// The stable codes of errors, the same in the library, HTTP, the command line
// and the page. docs/errors.md says what each means and what to do.
const (
	CodeCancelled        = "cancelled"
	CodeBudget           = "budget_exceeded"
	CodePortConflict     = "port_conflict"
	CodeStateConflict    = "state_conflict"
	CodeStateReducer     = "state_reducer"
	CodeInput            = "input_invalid"
	CodeUnresolved       = "unresolved_reference"
	CodeExpression       = "expression_failed"
	CodeNodeFailed       = "node_failed"
	CodeNodePanic        = "node_panicked"
	CodeNondeterministic = "node_nondeterministic"
	CodeEffectUnknown    = "effect_outcome_unknown"
	CodeTimeout          = "node_timeout"
	CodeContext          = "context_invalid"
	CodeValue            = "value_invalid"
	CodeOutput           = "output_unresolved"
	CodeStore            = "store_failed"
)
