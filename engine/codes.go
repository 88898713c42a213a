package engine

import "slices"

// The stable codes of errors, the same in the library, HTTP, the command line
// and the page. Codes says what each means and what to do; flow.Codes is the
// table of what validation finds. These are the codes of runs and their nodes.
const (
	CodeCancelled        = "cancelled"
	CodeBudget           = "budget_exceeded"
	CodePortConflict     = "port_conflict"
	CodeStateConflict    = "state_conflict"
	CodeStateReducer     = "state_reducer"
	CodeStateSize        = "state_too_big"
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
	CodeChildFlow        = "child_flow_unknown"
	CodeChildCancelled   = "child_cancelled"
	CodeDepth            = "depth_exceeded"
)

// The codes of the node types that come with Weir.
const (
	CodeAnswer        = "answer_invalid"
	CodeAnswerTimeout = "answer_timeout"
	CodeEventTimeout  = "event_timeout"
	CodeToolUnknown   = "tool_unknown"
	CodeToolFailed    = "tool_failed"
	CodeBranch        = "branch_unknown"
	CodeOutputInvalid = "output_invalid"
	CodeLoopLimit     = "loop_limit"
	CodeJSON          = "json_invalid"
	CodeHTTPRequest   = "http_request_invalid"
	CodeHTTPBlocked   = "http_blocked"
	CodeHTTPStatus    = "http_status"
	CodeHTTPFailed    = "http_failed"
	CodeHTTPUnknown   = "http_unknown"
	CodeHTTPTimeout   = "http_timeout"
	CodeHTTPTooLarge  = "http_too_large"
	CodeCache         = "cache_failed"
	CodeFailed        = "failed"
)

// The codes of code nodes and of what runs their code.
const (
	CodeCodeFailed         = "code_failed"
	CodeCodeInvalid        = "code_invalid"
	CodeCodeValue          = "code_value_invalid"
	CodeCodeTimeout        = "code_timeout"
	CodeCodeMemory         = "code_out_of_memory"
	CodeCodeOutput         = "code_output_too_long"
	CodeCodeKilled         = "code_killed"
	CodeBranchMissing      = "branch_missing"
	CodeSandboxUnavailable = "sandbox_unavailable"
	CodeSandboxFailed      = "sandbox_failed"
	CodeGeneration         = "code_generation_failed"
	CodeBreakerOpen        = "breaker_open"
)

// The codes of model calls.
const (
	CodeModelRateLimited     = "model_rate_limited"
	CodeModelOverloaded      = "model_overloaded"
	CodeModelAuth            = "model_auth"
	CodeModelRequest         = "model_invalid_request"
	CodeModelContextLength   = "model_context_length"
	CodeModelFiltered        = "model_filtered"
	CodeModelUnavailable     = "model_unavailable"
	CodeModelTimeout         = "model_timeout"
	CodeModelUnknownProvider = "model_unknown_provider"
	CodeModelSessionLost     = "model_session_lost"
	CodeModelAnswer          = "model_answer_invalid"
	CodeModelUnpriced        = "model_unpriced"
	CodeTurnTooLong          = "turn_too_long"
	CodeReplayDivergence     = "replay_divergence"
)

// The codes of what is asked of a run from outside.
const (
	CodeFlowInvalid         = "flow_invalid"
	CodeUsage               = "usage"
	CodeUnreadable          = "unreadable"
	CodeNotFound            = "not_found"
	CodeRunOwned            = "run_owned"
	CodeRunPoisoned         = "run_poisoned"
	CodeRunStopped          = "run_stopped"
	CodeInterruptUnknown    = "interrupt_unknown"
	CodeStatusConflict      = "status_conflict"
	CodeDependenciesChanged = "closure_changed"
	CodeTypesUnknown        = "types_unknown"
	CodeFork                = "fork_point"
	CodeSessionBusy         = "session_busy"
	CodeSessionMoved        = "session_moved"
	CodeSessionWaits        = "session_waits"
	CodeStoreNewer          = "store_newer"
	CodeStoreCorrupt        = "store_corrupt"
	CodeStoreFull           = "store_full"
)

// CodeInfo is one row of the table of error codes.
type CodeInfo struct {
	// Code is stable; Meaning says what happened, Remedy what to do. Both are
	// whole sentences.
	Code, Meaning, Remedy string
}

// Codes is the table of error codes, in the order in which they are declared.
func Codes() []CodeInfo {
	return slices.Concat(runErrorCodes(), nodeErrorCodes(), codeNodeErrorCodes(), modelErrorCodes(), requestErrorCodes())
}

func runErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeCancelled, "Somebody cancelled the run. No retry and no onError takes it.", "Start the flow again."},
		{CodeBudget, "A budget of the run or of a node does not cover the next model call. No retry and no onError takes it.", "Add to it and go on with `weir retry RUN NODE --add`, or set onLimit: pause to be asked."},
		{CodePortConflict, "Two taken edges bring a value to one port.", "Join the branches with a merge node, or make them exclusive."},
		{CodeStateConflict, "Two nodes wrote one key of the state, and neither runs after the other.", "Order them with `after:`, or declare a reducer under `state:`."},
		{CodeStateSize, "A write would make the state of the run larger than 64 MiB.", "Keep large data in files or pass it on ports; delete keys that are no longer read."},
		{CodeStateReducer, "A value does not fit the reducer of its key, as a text given to `sum`.", "Write a value of the reducer's kind, or declare another reducer."},
		{CodeInput, "An input of the run or of a node cannot be used.", "Give what the message expects."},
		{CodeUnresolved, "A template in `in:` reads what is not there when the node starts.", "Order the node behind what writes it with `after:`, or guard what may be missing: {{ has(state.x) ? state.x : '' }}."},
		{CodeExpression, "An expression or a template of a setting failed, or gave a value of the wrong kind.", "Correct it; the message names the setting."},
		{CodeNodeFailed, "A node failed with an error that has no code of its own.", "See the message; `retry:` tries again."},
		{CodeNodePanic, "The code of a node panicked.", "Correct the node type; the hint shows where."},
		{CodeNondeterministic, "A node that was entered again asked for something else under the key of an effect that is done.", "Take time and chance from the node's Ctx, and ask for effects in the same order."},
		{CodeEffectUnknown, "The process ended while an effect was in flight, and nobody can say whether it happened.", "Find out, then retry, complete or skip the node; `onUnknown: retry` asks again without a question."},
		{CodeTimeout, "A node took longer than its `timeout:`.", "Raise it, or add `retry:`."},
		{CodeContext, "A context that a node wants is not there, or was not granted to it.", "Bring its handle in on a port of type context."},
		{CodeValue, "A value cannot go to its port, or cannot be kept in a journal.", "Convert it with a transform or template node; in Go, give values that JSON has."},
		{CodeOutput, "An output of the flow or of a body reads what is not there.", "Correct `outputs:`, or guard what may be missing: {{ has(state.x) ? state.x : '' }}."},
		{CodeChildFlow, "The flow that a node runs cannot be had.", "Keep the file where the flow names it, and start the run again or retry the node."},
		{CodeChildCancelled, "Somebody cancelled the child run that a node waited for.", "Retry the node for another child run, or take it with `onError:`."},
		{CodeDepth, "Flows run flows deeper than is allowed, 8 below the first unless said otherwise.", "Have flows that use each other end somewhere."},
	}
}

func codeNodeErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeCodeFailed, "The code of a node raised an error, or printed `status: error`.", "See the traceback; the line is that of the node's code."},
		{CodeCodeInvalid, "The code of a node cannot be read as the language it is written in.", "Correct it; the message has the line."},
		{CodeCodeValue, "The code of a node left a value in the context that JSON does not have.", "Convert it; the message names the key."},
		{CodeCodeTimeout, "The code of a node ran longer than its `timeout`, and was killed.", "Raise it, up to 300 seconds, or do less."},
		{CodeCodeMemory, "The code of a node took more memory than it may.", "Take less at once, or raise the executor's limit."},
		{CodeCodeOutput, "The code of a node wrote more than it may.", "Write less, or raise the executor's limit."},
		{CodeCodeKilled, "The sandbox killed the code of a node, or it ended without a word.", "See the message; what is forbidden in a sandbox is listed in its documentation."},
		{CodeBranchMissing, "The code of a decision did not set `branch_decision`.", "Set context['branch_decision'] on every way through the code."},
		{CodeSandboxUnavailable, "Code cannot be isolated here, so it is not run.", "`weir doctor` says what is missing and how to get it; another executor may do."},
		{CodeSandboxFailed, "The sandbox could not be made, or was lost.", "Try again, with `retry:`."},
		{CodeGeneration, "No attempt at writing a node's code did what was asked.", "See `weir show RUN --chain`; say more in the prompt, or raise `attempts`."},
		{CodeBreakerOpen, "An executor or a model failed again and again, and is left alone for a while.", "Wait, then retry the node."},
	}
}

func nodeErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeAnswer, "An answer or an event does not fit the schema that asks for it.", "Answer again with what the schema allows."},
		{CodeAnswerTimeout, "Nobody answered in time.", "Raise the node's `timeout`, or wire its `error` port."},
		{CodeEventTimeout, "The event did not come in time.", "Raise the node's `timeout`, or wire its `error` port."},
		{CodeToolUnknown, "A tool is named that this process does not offer.", "Offer it where Weir is opened, or correct the name."},
		{CodeToolFailed, "A tool that a node calls by itself, as an agent's queue has it, failed or was refused by a person.", "See the message; `retry:` calls it again."},
		{CodeBranch, "A decision gave a result that is none of its branches, or no case of a switch holds.", "Add the branch, or a default."},
		{CodeOutputInvalid, "A value does not fit the schema of an output.", "Correct what makes it, or the schema."},
		{CodeLoopLimit, "A loop reached `max` and its condition never held.", "Raise `max`, or set atMax: stop."},
		{CodeJSON, "A text that has to be JSON is not.", "Correct what makes it; raise `maxOutput` if a model was cut off."},
		{CodeHTTPRequest, "A request cannot be made as the settings say.", "Correct the setting that the message names."},
		{CodeHTTPBlocked, "The address is one that requests may not reach.", "Use a public address, or let whoever runs Weir allow this one."},
		{CodeHTTPStatus, "The answer's status is not one the node expects.", "See the message; `expect` lists what is no failure."},
		{CodeHTTPFailed, "No answer came, and the request was not received.", "Try again, with `retry:`."},
		{CodeHTTPUnknown, "No answer came, and the request may have been acted on.", "Find out; `onUnknown: retry` asks again with the same key."},
		{CodeHTTPTimeout, "No answer came in time to a request that may be repeated.", "Raise the node's `timeout`, or add `retry:`."},
		{CodeHTTPTooLarge, "The answer's body is longer than `maxBytes`.", "Raise it."},
		{CodeCache, "The cache could not be read or written.", "Try again, with `retry:`."},
		{CodeFailed, "The flow ended itself with a fail node that gives no code, or a command failed for a reason that has none.", "See the message."},
	}
}

func modelErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeModelRateLimited, "The provider takes no more calls for now, or the account has nothing left.", "Wait, raise the account's limits, or set `retry:`."},
		{CodeModelOverloaded, "The provider is overloaded.", "Try again later, with `retry:`."},
		{CodeModelAuth, "The provider refuses the key, or there is none.", "Set the key of the provider."},
		{CodeModelRequest, "The provider refuses the request, or there is nothing to answer.", "See the message: a wrong model, setting or schema, or a context without messages."},
		{CodeModelContextLength, "The request is longer than the model's window.", "Use a model with a larger window, or a new context with less in it."},
		{CodeModelFiltered, "The provider's filter withheld the answer or refused the request.", "Change what is asked."},
		{CodeModelUnavailable, "The provider cannot be reached, broke off, or answered what cannot be read.", "Try again, with `retry:`; check the base URL."},
		{CodeModelTimeout, "The provider did not begin its answer, did not go on with it, or did not end it in time.", "Try again, with `retry:`, or raise the provider's `timeouts` in the configuration."},
		{CodeModelUnknownProvider, "The model names a provider that is not configured, or none.", "Write it as provider/model, with one of the providers that the message lists."},
		{CodeModelSessionLost, "The provider no longer holds the conversation that the call names.", "Weir sends the whole history again by itself; if you see this, set `history: client`."},
		{CodeModelAnswer, "The model's answer cannot be read as what was asked for, also after one repair.", "Simplify the schema, use a model with structured output, or set `retry` with `on: [model_answer_invalid]`: each attempt asks anew."},
		{CodeModelUnpriced, "A budget bounds the cost of calls (`maxCost`) and the model has no price. The call was not made.", "Set the model's `price` in the configuration, 0 for input and output where it is free, or bound `maxTokens` instead."},
		{CodeTurnTooLong, "A model still calls tools after as many calls of it as the node allows.", "Raise `maxSteps`."},
		{CodeReplayDivergence, "A replay or a script has no answer for this call, or the request differs from the recorded one.", "See the difference in the message; record again where it is meant."},
	}
}

func requestErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeFlowInvalid, "The flow has problems.", "Correct what the message lists; docs/errors.md has the codes of problems."},
		{CodeUsage, "The command line cannot be carried out as it stands.", "See `--help` of the command."},
		{CodeUnreadable, "A file cannot be read.", "Check its path and permissions."},
		{CodeNotFound, "There is no such run.", "`weir runs` lists the runs; --db or WEIR_DB says in which database."},
		{CodeRunOwned, "Another process runs it.", "Wait for it to end, watch it with `weir show`, or stop it with `weir cancel`."},
		{CodeRunPoisoned, "Processes ended several times while they executed the run, which is set aside.", "`weir resume RUN` continues it all the same, `weir cancel RUN` ends it; `weir runs --blocked` lists such runs."},
		{CodeRunStopped, "The process that executed the run is closing. Nothing that was acknowledged is lost.", "Continue the run with `weir resume RUN`."},
		{CodeInterruptUnknown, "The run does not wait for that.", "`weir show RUN` lists what it waits for."},
		{CodeStatusConflict, "The run or node is not in a state in which that can be done.", "See `weir show RUN`."},
		{CodeDependenciesChanged, "The run was started with another version of the flow, of its node types or of tools that the flow names, or with other ports of a node type.", "Use the version it was started with; or continue it under what there is now with `weir resume RUN --accept-changes`, or from some point with `weir fork`."},
		{CodeTypesUnknown, "The run was recorded by a version that did not record its node types, and this process lacks some of them.", "Read it with a program that has these node types, or print its events with `weir show RUN --events`."},
		{CodeFork, "A run cannot be forked from there.", "The message says why; `weir show RUN --events` lists the events."},
		{CodeSessionBusy, "A round of the session is going on, and the message is not to wait its turn.", "Send it again when the round has ended, or set `session: {busy: queue}` or `fork`."},
		{CodeSessionMoved, "The session has gone on since the round ended, so that the round cannot.", "Say it again in the session, or fork the session where the round began."},
		{CodeSessionWaits, "The session waits for something that a message does not answer: an approval, an event, or several questions.", "Answer the run by the interrupt's id, as the message says."},
		{CodeStoreNewer, "The database was written by a newer Weir. It was not changed.", "Use that version, or another database with --db."},
		{CodeStoreCorrupt, "The database is damaged, or no database of Weir. It was not changed.", "Restore it from a copy."},
		{CodeStoreFull, "There is no room left for the database. What was acknowledged is kept.", "Make room and `weir resume` the run."},
	}
}
