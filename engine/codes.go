package engine

import "slices"

// The stable error codes of runs and nodes, the same in the library, HTTP, the command line
// and the web UI. Codes lists what each means and what to do. flow.Codes is the table of
// the validation codes.
const (
	CodeCancelled        = "cancelled"
	CodeBudget           = "budget_exceeded"
	CodePortConflict     = "port_conflict"
	CodeStateConflict    = "state_conflict"
	CodeStateReducer     = "state_reducer"
	CodeStateSize        = "state_too_big"
	CodeStateUnfit       = "state_incompatible"
	CodeStateChanged     = "state_changed"
	CodeInput            = "input_invalid"
	CodeUnresolved       = "unresolved_reference"
	CodeExpression       = "expression_failed"
	CodeNodeFailed       = "node_failed"
	CodeNodePanic        = "node_panicked"
	CodeNondeterministic = "node_nondeterministic"
	CodeEffectUnknown    = "effect_outcome_unknown"
	CodeTimeout          = "node_timeout"
	CodeRunTimeout       = "run_timeout"
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
	CodeToolError     = "tool_error"
	CodeToolRefused   = "tool_refused"
	CodeBranch        = "branch_unknown"
	CodeOutputInvalid = "output_invalid"
	CodeLoopLimit     = "loop_limit"
	CodeRaceFailed    = "race_failed"
	CodeRaceEffect    = "race_effect"
	CodeJSON          = "json_invalid"
	CodeHTTPRequest   = "http_request_invalid"
	CodeHTTPBlocked   = "http_blocked"
	CodeHTTPStatus    = "http_status"
	CodeHTTPFailed    = "http_failed"
	CodeHTTPUnknown   = "http_unknown"
	CodeHTTPTimeout   = "http_timeout"
	CodeHTTPTooLarge  = "http_too_large"
	CodeCache         = "cache_failed"

	CodeFileUnreadable = "file_unreadable"
	CodeRedactionLost  = "redaction_lost"
	CodeFailed         = "failed"
)

// The codes of code nodes and of sandboxes.
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
	CodeModelUnsupported     = "model_unsupported"
	CodeModelContextLength   = "model_context_length"
	CodeModelFiltered        = "model_filtered"
	CodeModelUnavailable     = "model_unavailable"
	CodeModelTimeout         = "model_timeout"
	CodeModelUnknownProvider = "model_unknown_provider"
	CodeModelSessionLost     = "model_session_lost"
	CodeModelAnswer          = "model_answer_invalid"
	CodeModelUnpriced        = "model_unpriced"
	CodeQuota                = "quota_exceeded"
	CodeTurnTooLong          = "turn_too_long"
	CodeReplayDivergence     = "replay_divergence"
)

// The codes of commands that act on a run.
const (
	CodeFlowInvalid         = "flow_invalid"
	CodeUsage               = "usage"
	CodeConfigRefused       = "config_refused"
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
	CodeSteerLate           = "steer_late"
	CodeStoreNewer          = "store_newer"
	CodeStoreCorrupt        = "store_corrupt"
	CodeStoreKey            = "store_key"
	CodeStoreForeign        = "store_foreign"
	CodeStoreFull           = "store_full"
	CodeStoreBackup         = "store_backup"
	CodeStoreUnsupported    = "store_unsupported"
)

// The codes of a server's answers.
const (
	CodeUnauthenticated = "unauthenticated"
	CodeForbidden       = "forbidden"
	CodeRequest         = "request_invalid"
	CodeRequestTooLarge = "request_too_large"
	CodeRequestReused   = "request_reused"
	CodeConfirmation    = "confirmation_needed"
	CodeUnavailable     = "unavailable"
	CodeNotGranted      = "not_granted"
	CodeFlowChanged     = "flow_changed"
	CodeFlowPaused      = "flow_paused"
	CodeLink            = "link_invalid"
	CodeTooMany         = "too_many_requests"
)

// CodeInfo is one row of the table of error codes.
type CodeInfo struct {
	// Code is stable; Meaning says what happened, Remedy what to do. Both are
	// whole sentences.
	Code, Meaning, Remedy string
}

// Codes returns the table of error codes, in the order in which they are declared.
func Codes() []CodeInfo {
	return slices.Concat(runErrorCodes(), nodeErrorCodes(), codeNodeErrorCodes(), modelErrorCodes(), requestErrorCodes(), serverErrorCodes())
}

// NodeCodes returns the codes of the table with which a node of Weir may fail.
func NodeCodes() []string {
	var out []string
	for _, c := range slices.Concat(runErrorCodes(), nodeErrorCodes(), codeNodeErrorCodes(), modelErrorCodes()) {
		out = append(out, c.Code)
	}
	return append(out, CodeNotGranted)
}

// Remedy returns what to do about an error with a code, "" for an unknown code.
func Remedy(code string) string {
	for _, c := range Codes() {
		if c.Code == code {
			return c.Remedy
		}
	}
	return ""
}

func runErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeCancelled, "The run was cancelled. Neither retry nor onError handles a cancellation.", "Start the flow again."},
		{CodeBudget, "A budget of the run or of a node does not cover the next model call, or a budgetGuard with onLimit: fail found a limit reached. Neither retry nor onError handles this.", "Increase the budget and continue with `weir retry RUN NODE --add`, or set onLimit: pause to be asked."},
		{CodePortConflict, "Two taken edges bring a value to one port.", "Join the branches with a merge node, or make them exclusive."},
		{CodeStateConflict, "Two nodes wrote the same state key, and neither runs after the other.", "Order them with `after:`, or declare a reducer under `state:`."},
		{CodeStateSize, "A write would make the state of the run larger than 64 MiB, or what a session keeps of it larger than 64 KiB.", "Keep large data in files or pass it through ports; delete keys that are no longer read."},
		{CodeStateUnfit, "A value that the session or the user keeps does not fit the key's schema or reducer, as the flow declares them now. The run was not started or, if another run changed the value meanwhile, failed.", "Give the key another value with `weir sessions state set` or `weir users state set`, remove it with `reset`, or restore the declaration."},
		{CodeStateChanged, "Another run changed a value of the user with `onConflict:` after this run had read it, and before this run completed. The change of this run is not applied.", "Start the flow, or send the message, again. A reducer that commutes combines the writes; `onConflict: retryRound` repeats rounds of sessions."},
		{CodeStateReducer, "A value does not fit the reducer of its key, for example text under `sum`.", "Write a value of the reducer's type, or declare another reducer."},
		{CodeInput, "An input of the run or of a node is invalid.", "Give the value that the message describes."},
		{CodeUnresolved, "A template in `in:` reads a value that does not exist when the node starts.", "Order the node after the one that writes the value with `after:`, or guard the expression: {{ has(state.x) ? state.x : '' }}."},
		{CodeExpression, "An expression or a template in a setting failed, or gave a value of the wrong type.", "Correct the setting that the message names."},
		{CodeNodeFailed, "A node failed with an error that has no code of its own.", "See the message; `retry:` tries again."},
		{CodeNodePanic, "The code of a node panicked.", "Correct the node type; the hint shows the place."},
		{CodeNondeterministic, "A re-entered node requested something different under the key of a completed effect.", "Take time and randomness from the node's Ctx, and request effects in the same order."},
		{CodeEffectUnknown, "The process ended or the connection was lost while an effect was in flight, and its outcome is unknown.", "Find out whether it happened, then retry, complete or skip the node; `onUnknown: retry` retries without a question."},
		{CodeRunTimeout, "The run took longer than the `timeout:` of its flow, from its start and with all waits.", "Increase the timeout of the flow, or continue the run with `weir retry`, which starts the time again."},
		{CodeTimeout, "A node took longer than its `timeout:`.", "Increase the timeout, or add `retry:`."},
		{CodeContext, "A context that a node uses does not exist, or was not granted to the node.", "Connect its handle to a port of type context."},
		{CodeValue, "A value does not fit its port, or cannot be stored in a journal.", "Convert it with a transform or template node; in Go, return values that JSON can represent."},
		{CodeOutput, "An output of the flow or of a body reads a value that does not exist.", "Correct `outputs:`, or guard the expression: {{ has(state.x) ? state.x : '' }}."},
		{CodeChildFlow, "The flow that a node runs cannot be loaded.", "Keep the file at the path that the flow names, and start the run again or retry the node."},
		{CodeChildCancelled, "The child run that a node waited for was cancelled.", "Retry the node, which starts another child run, or handle the failure with `onError:`."},
		{CodeDepth, "Flows are nested deeper than the limit, which is 8 levels below the first unless configured otherwise.", "Make recursive flows end earlier."},
	}
}

func codeNodeErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeCodeFailed, "The code of a node raised an error, or printed `status: error`.", "See the traceback; line numbers refer to the node's code."},
		{CodeCodeInvalid, "The code of a node has a syntax error.", "Correct it; the message has the line."},
		{CodeCodeValue, "The code of a node left a value in the context that JSON cannot represent.", "Convert it; the message names the key."},
		{CodeCodeTimeout, "The code of a node exceeded its `timeout` and was killed.", "Increase the timeout, up to 300 seconds, or reduce the work."},
		{CodeCodeMemory, "The code of a node exceeded its memory limit.", "Process less data at once, or increase the executor's limit."},
		{CodeCodeOutput, "The code of a node exceeded its output limit.", "Write less output, or increase the executor's limit."},
		{CodeCodeKilled, "The sandbox killed the code of a node, or the code ended without a result.", "See the message; the sandbox documentation lists what is forbidden."},
		{CodeBranchMissing, "The code of a decision did not set `branch_decision`.", "Set context['branch_decision'] on every path through the code."},
		{CodeSandboxUnavailable, "Code cannot be isolated on this machine, so it is not run.", "`weir doctor` lists what is missing and how to install it; another executor may work."},
		{CodeSandboxFailed, "The sandbox could not be created, or was lost.", "Try again, with `retry:`."},
		{CodeGeneration, "All attempts to generate a node's code failed.", "See `weir show RUN --chain`; make the prompt more specific, or increase `attempts`."},
		{CodeBreakerOpen, "An executor or a model failed repeatedly and is not called for a while.", "Wait, then retry the node."},
	}
}

func nodeErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeAnswer, "An answer or an event does not fit its schema.", "Answer again with a value that the schema allows."},
		{CodeAnswerTimeout, "No answer arrived in time.", "Increase the node's `timeout`, or connect its `error` port."},
		{CodeEventTimeout, "The event did not arrive in time.", "Increase the node's `timeout`, or connect its `error` port."},
		{CodeToolUnknown, "A node names a tool that this process does not offer.", "Register the tool where Weir is opened, or correct the name."},
		{CodeToolFailed, "A tool that a node calls itself, for example from an agent's queue, failed or was refused by a person.", "See the message; `retry:` calls it again."},
		{CodeToolError, "The tool that a node calls reported an error.", "See the message, and wire the node's error port to continue. `retry:` repeats the call only if the tool is read-only or idempotent, or if the call was certainly not made."},
		{CodeToolRefused, "A person refused the tool call of a node. It was not made.", "Wire the node's error port to continue, or run `weir retry RUN NODE` to be asked again."},
		{CodeBranch, "A decision returned a value that is not one of its branches, or no case of a switch matched.", "Add the branch, or a default."},
		{CodeOutputInvalid, "A value does not fit the schema of an output.", "Correct the node that produces the value, or the schema."},
		{CodeLoopLimit, "A loop reached `max` before its condition was true.", "Increase `max`, or set atMax: stop."},
		{CodeRaceFailed, "Every branch of a race failed.", "See the failure of each branch in the message."},
		{CodeRaceEffect, "A branch of a race started an effect that may change something outside the run, such as a call of a tool that is not read-only.", "Move it behind the race, or set allowEffects: true on the race."},
		{CodeJSON, "A text that must be JSON is not.", "Correct the node that produces it; increase `maxOutput` if a model's answer was truncated."},
		{CodeHTTPRequest, "The settings do not make a valid request.", "Correct the setting that the message names."},
		{CodeHTTPBlocked, "Requests may not reach this address.", "Use a public address, or ask the operator of Weir to allow this one."},
		{CodeHTTPStatus, "The response has a status that the node does not expect.", "See the message; `expect` lists the statuses that are not failures."},
		{CodeHTTPFailed, "No response arrived, and the server did not receive the request.", "Try again, with `retry:`."},
		{CodeHTTPUnknown, "No response arrived, and the server may have executed the request.", "Find out whether it happened; `onUnknown: retry` sends it again with the same key."},
		{CodeHTTPTimeout, "A request that is safe to repeat got no response in time.", "Increase the node's `timeout`, or add `retry:`."},
		{CodeHTTPTooLarge, "The response body is longer than `maxBytes`.", "Increase it."},
		{CodeCache, "The cache could not be read or written.", "Try again, with `retry:`."},
		{CodeRedactionLost, "The private map of a redactor, from which placeholders are to be restored, does not exist for the user of the run.", "Run the part of the flow that redacts again; a map is deleted with its user, with a session or run of that user, and when its `ttl` has passed."},
		{CodeFileUnreadable, "A file that a node reads does not exist, is outside the allowed folder, is too large, or may not be read.", "See the message; paths are relative to the folder of the flow's file."},
		{CodeFailed, "A fail node without a code ended the flow, or a command failed for a reason that has no code.", "See the message."},
	}
}

func modelErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeModelRateLimited, "The provider accepts no more calls for now, or the account has no credit left.", "Wait, increase the account's limits, or set `retry:`."},
		{CodeModelOverloaded, "The provider is overloaded.", "Try again later, with `retry:`."},
		{CodeModelAuth, "The provider rejects the API key, or no key is set.", "Set the API key of the provider."},
		{CodeModelRequest, "The provider rejects the request, or the request has no message.", "See the message: an invalid model, setting or schema, or a context without messages."},
		{CodeModelUnsupported, "The model is known not to take what the request has: tools, a schema, images, PDF files, a temperature, reasoning, or that `maxOutput`. Nothing was sent.", "Use another model, or remove the setting that the message names; if the table is wrong, set `takes` or `maxOutput` of the model in the configuration."},
		{CodeModelContextLength, "The request is longer than the model's context window.", "Use a model with a larger window, or a new context with fewer messages."},
		{CodeModelFiltered, "The provider's content filter withheld the answer or rejected the request.", "Change the request."},
		{CodeModelUnavailable, "The provider is unreachable, closed the connection, or sent an answer that cannot be decoded.", "Try again, with `retry:`; check the base URL."},
		{CodeModelTimeout, "The provider did not start, continue or complete its answer in time.", "Try again, with `retry:`, or increase the provider's `timeouts` in the configuration."},
		{CodeModelUnknownProvider, "The model name has no provider, or one that is not configured.", "Write it as provider/model, with one of the providers that the message lists."},
		{CodeModelSessionLost, "The provider no longer has the conversation that the call refers to.", "Weir sends the whole history again automatically; if you see this error, set `history: client`."},
		{CodeModelAnswer, "The model's answer does not have the requested format, even after one repair.", "Simplify the schema, use a model with structured output, or set `retry` with `on: [model_answer_invalid]`, which makes each attempt ask again."},
		{CodeQuota, "A quota of the user or of the token that started the run does not cover the call today. The call was not made.", "Retry the node after midnight UTC, when quotas renew, or have an owner of the server raise the quota."},
		{CodeModelUnpriced, "A budget limits the cost of calls (`maxCost`) and the model has no price. The call was not made.", "Set the model's `price` in the configuration, 0 for input and output if it is free, or limit `maxTokens` instead."},
		{CodeTurnTooLong, "A model still calls tools after the maximum number of calls that the node allows.", "Increase `maxSteps`."},
		{CodeReplayDivergence, "A replay or a script has no answer for this call, or the request differs from the recorded one.", "See the difference in the message; record again if the change is intended."},
	}
}

func requestErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeFlowInvalid, "The flow has validation problems.", "Correct what the message lists; docs/errors.md describes the codes of problems."},
		{CodeUsage, "The command line is invalid.", "See `--help` of the command."},
		{CodeConfigRefused, "A configuration that was read again was not taken.", "Correct what the message names, or restart the process with it."},
		{CodeUnreadable, "A file cannot be read.", "Check its path and permissions."},
		{CodeNotFound, "The run does not exist.", "`weir runs` lists the runs; --db or WEIR_DB selects the database."},
		{CodeRunOwned, "Another process is executing the run.", "Wait for it to end, watch it with `weir show`, or cancel it with `weir cancel`."},
		{CodeRunPoisoned, "Several processes ended while they executed the run, so it is blocked.", "`weir resume RUN` continues it anyway, `weir cancel RUN` ends it; `weir runs --blocked` lists such runs."},
		{CodeRunStopped, "The process that executed the run is shutting down. Acknowledged data is not lost.", "Continue the run with `weir resume RUN`."},
		{CodeInterruptUnknown, "The run does not wait for this answer or event.", "`weir show RUN` lists what it waits for."},
		{CodeStatusConflict, "The state of the run or node does not allow this command.", "See `weir show RUN`."},
		{CodeDependenciesChanged, "The run was started with other versions of the flow, its node types or its tools, or with other ports of a node type.", "Use the version it was started with, continue under the present one with `weir resume RUN --accept-changes`, or continue from a given point with `weir fork`."},
		{CodeTypesUnknown, "The run was recorded by a version that did not record its node types, and this process lacks some of them.", "Read it with a program that has these node types, or print its events with `weir show RUN --events`."},
		{CodeFork, "A run cannot be forked at that point.", "See the message; `weir show RUN --events` lists the events."},
		{CodeSessionBusy, "A round of the session is running, and the message must not be queued.", "Send it again when the round has ended, or set `session: {busy: queue}` or `fork`."},
		{CodeSessionMoved, "The session has continued since the round ended, so the round cannot continue.", "Send the message again in the session, or fork the session at the start of the round."},
		{CodeSteerLate, "No node of the run works that could take a message: it has answered, or takes none.", "Send it to the session as the next message, or start another run."},
		{CodeSessionWaits, "The session waits for something that a message cannot answer: an approval or an event, also beside questions.", "Answer the run by the interrupt's id, as the message shows."},
		{CodeStoreNewer, "The database was written by a newer version of Weir. It was not changed.", "Use that version, or another database with --db."},
		{CodeStoreCorrupt, "The database is damaged. It was not changed.", "Restore it from a backup with `weir store restore`."},
		{CodeStoreKey, "Contents of the database are encrypted, and the key is not configured, or it was destroyed when its user was erased.", "Set storage.encryption.key to the key, or list it under storage.encryption.previous."},
		{CodeStoreForeign, "The file is not a Weir database: it is of another program. It was not changed.", "Name a Weir database, or a new file, with --db."},
		{CodeStoreBackup, "The database is a backup. It can be read, and nothing runs in it.", "`weir store restore BACKUP` makes a database of it."},
		{CodeStoreUnsupported, "The store lacks a capability that the call needs, for example sessions.", "Use a store that has it: `sqlite.Open` has every capability."},
		{CodeStoreFull, "The disk is full. Acknowledged data is kept.", "Free disk space and continue with `weir resume RUN`."},
	}
}

func serverErrorCodes() []CodeInfo {
	return []CodeInfo{
		{CodeUnauthenticated, "A request to the server has no token, or one that is unknown, expired or revoked.", "Send `Authorization: Bearer TOKEN`; `weir tokens create` makes a token."},
		{CodeForbidden, "The token lacks the scope of the operation, or the request comes from a host or page that the server does not accept.", "Use a token with the scope that the message names; `weir serve --host` accepts another host name."},
		{CodeRequest, "A request to the server cannot be read: its body, a parameter or a header is invalid.", "Change what the message and its details name; /openapi.json describes every operation."},
		{CodeRequestTooLarge, "The body of a request is larger than the server accepts.", "Send less, or start the server with a larger `--max-body`."},
		{CodeRequestReused, "An Idempotency-Key, or the id of a run or message, was used before with another content.", "Use a new key or id for something new."},
		{CodeConfirmation, "A deletion lists what it deletes and was not confirmed.", "Send the request again with the confirmation of this answer."},
		{CodeUnavailable, "The server is stopping.", "Send the request again; another process or the restarted server answers it."},
		{CodeNotGranted, "A flow that was put through the API uses a secret, tool, provider, host, executor or file that is not granted to it.", "Ask a person with the scope admin for the grant (`PUT /v1/flows/NAME/grants`), or change the flow."},
		{CodeFlowChanged, "A flow, webhook or other object was changed since it was read.", "Read it again, and send the change with its present ETag."},
		{CodeFlowPaused, "The flow is paused, or no version of it is promoted: nothing new starts.", "Promote a version, or end the pause of the flow."},
		{CodeLink, "An answer link is unknown, used or expired, or its question is no longer open.", "Ask for a new link; if the question was answered, nothing is left to do."},
		{CodeTooMany, "Too many requests in a short time.", "Send fewer requests; the header Retry-After says when to try again."},
	}
}
