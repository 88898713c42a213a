package engine

// Event is one fact in a run's journal. An event is also a command: the runner acts on the
// events that Decide returns (it starts the node that NodeStarted names) once they are
// durable. Events are immutable once applied. Nodes are named by path: "draft", or
// "refine#2/draft" for the node draft in the second iteration of refine.
type Event interface {
	// Kind returns the stable name in the journal, for example "node.started".
	Kind() string
}

// RunStarted is the first event of every journal.
type RunStarted struct {
	Flow        string `json:"flow"`
	Fingerprint string `json:"fingerprint"`
	// Inputs are the run's inputs with defaults filled in.
	Inputs Values `json:"inputs,omitempty"`
	// State is the initial state.
	State  Values `json:"state,omitempty"`
	User   string `json:"user,omitempty"`
	Parent string `json:"parent,omitempty"` // run id
	// Caller identifies the agent call in Parent that started the run: the effect key of a
	// tool call, with the attempt if it is not the first, or the interrupt of a queue
	// entry; "" if a node runs the flow.
	Caller string `json:"caller,omitempty"`
	// Depth is the number of runs above this one, 0 for the root of a tree.
	Depth int `json:"depth,omitempty"`
	// Node is the interrupt of Parent that waits for this run; "" if there is none.
	Node string `json:"node,omitempty"`
	// Session is the session of which the run is a round, and Round the round's number,
	// from 1. Both are zero for a run outside of sessions.
	Session string `json:"session,omitempty"`
	Round   int    `json:"round,omitempty"`
	// TreeSession and TreeRound are the session and the round of the root of the run's tree;
	// only child runs have them.
	TreeSession string `json:"treeSession,omitempty"`
	TreeRound   int    `json:"treeRound,omitempty"`
	// Allowances are budgets from outside the run that also bind it: those of its session.
	// Used is what was spent of them before the run.
	Allowances []Account `json:"allowances,omitempty"`
	// Origin is what started the run: "cli", "go", "schedule", ...
	Origin string `json:"origin,omitempty"`
	// Targets limits the run to what these nodes need; empty means all nodes.
	Targets []string `json:"targets,omitempty"`
	// Breaks are the nodes before which the run pauses.
	Breaks []string `json:"breaks,omitempty"`
	// Parallel is the limit of nodes that execute at the same time; at least 1.
	Parallel int `json:"parallel"`
	// Contexts creates the main context.
	Contexts []ContextChange `json:"contexts,omitempty"`
	// Pinned has the pinned dependencies: node-type versions and tool hashes.
	Pinned map[string]string `json:"closure,omitempty"`
	// Specs is the digest under which the store keeps the parts of the node types that
	// readers of the journal need: see flow.Specs. "" in runs of earlier versions.
	Specs string `json:"specs,omitempty"`
	// Folder is the folder of the flow's file, for files that its nodes name; "" if they
	// name none.
	Folder string `json:"folder,omitempty"`
	// Agents are the sub-agents of the run's trajectory: paths of nodes, with "review>ask"
	// for a node of a child run, in the order of their numbers from 1. Child runs have none
	// of their own.
	Agents []string `json:"agents,omitempty"`
	// MessagePrefix is the prefix of the ids of the messages that the run adds to contexts,
	// which makes them unique in the tree of runs. "" in a run without a parent, and in
	// child runs of journals that predate the field.
	MessagePrefix string `json:"messagePrefix,omitempty"`
	// UserState identifies the user's state that State includes; nil if the run has none.
	UserState *UserStateRead `json:"userState,omitempty"`
	// Runner is the name of the runner that executes the run, "" for the local one. Processes
	// of another runner do not take the run.
	Runner string `json:"runner,omitempty"`
	// Repeats is the round that this one repeats, nil for none.
	Repeats *RepeatedRound `json:"repeats,omitempty"`
}

// RepeatedRound is a round that is repeated because another run changed the state of the user
// before it completed. Try counts the repetitions of the first round, from 1.
type RepeatedRound struct {
	Run string `json:"run"`
	Try int    `json:"try"`
}

// NodeStarted starts an attempt.
type NodeStarted struct {
	Path    string `json:"node"`
	Attempt int    `json:"attempt,omitempty"` // from 1; 0 in JSON is 1
	// Grants are the contexts that the node may write.
	Grants []string `json:"grants,omitempty"`
	// Forks creates the lane's contexts that the node is the first to use.
	Forks []ContextChange `json:"forks,omitempty"`
}

// NodeResumed re-enters an attempt that was waiting, pulling or expanding. Its function
// runs again from the top with its recorded effects, answers and pulled values.
type NodeResumed struct {
	Path   string          `json:"node"`
	Grants []string        `json:"grants,omitempty"`
	Forks  []ContextChange `json:"forks,omitempty"`
}

// NodeWaiting suspends an attempt until its interrupts are resolved.
type NodeWaiting struct {
	Path       string      `json:"node"`
	Interrupts []Interrupt `json:"interrupts"`
}

// NodePulling suspends an attempt until the sources of a lazy port are done.
type NodePulling struct {
	Path string `json:"node"`
	Port string `json:"port"`
}

// NodeExpanded suspends a composite until iterations of its body, one for each item, are
// done. Items are added to those of earlier expansions of the same node.
type NodeExpanded struct {
	Path string `json:"node"`
	// Items are the inputs of the iterations.
	Items []Values `json:"items"`
	// Concurrency limits the iterations that run at the same time; 0 and 1 mean one after
	// another.
	Concurrency int `json:"concurrency,omitempty"`
	// Fork gives each iteration its own lanes for contexts and state.
	Fork bool `json:"fork,omitempty"`
	// Fresh, with Fork, starts the lanes' contexts without messages and discards everything
	// of the lanes except the outputs.
	Fresh bool `json:"fresh,omitempty"`
	// Race, with Fork, makes the iterations run the branches of the node, one each, at the
	// same time. The first iteration that completes wins: the others are cancelled and their
	// lanes discarded.
	Race bool `json:"race,omitempty"`
	// Tolerant, with Fork, makes each iteration fail alone: its lane is discarded and the
	// others continue. An exhausted budget fails the composite all the same.
	Tolerant bool `json:"tolerant,omitempty"`
}

// IterationStarted opens a scope. Path is "refine#2", counted from 1.
type IterationStarted struct {
	Path string `json:"scope"`
}

// IterationCompleted closes a scope with the body's outputs.
type IterationCompleted struct {
	Path    string `json:"scope"`
	Outputs Values `json:"outputs,omitempty"`
}

// IterationCancelled closes the scope of a branch without outputs because another branch has
// won or, with Error, that of a branch or item that failed alone.
type IterationCancelled struct {
	Path  string `json:"scope"`
	Error *Error `json:"error,omitempty"`
}

// NodeCompleted commits the transaction of a node without a body, or ends a composite.
type NodeCompleted struct {
	Path string `json:"node"`
	// Outputs by port. An edge from a port that is missing here is skipped.
	Outputs  Values          `json:"outputs,omitempty"`
	State    []StateChange   `json:"state,omitempty"`
	Contexts []ContextChange `json:"contexts,omitempty"`
	// Metadata is free-form: token usage, or whatever the node reports.
	Metadata Values `json:"metadata,omitempty"`
	// Micros is the run time of the attempt's function, in microseconds.
	Micros int64 `json:"us,omitempty"`
	// Cached marks outputs that came from the cache.
	Cached bool `json:"cached,omitempty"`
}

// NodeFailed ends an attempt with an error. The consequence (a retry, the error port, a
// value, the run's failure) is a separate command.
type NodeFailed struct {
	Path     string `json:"node"`
	Error    *Error `json:"error"`
	Micros   int64  `json:"us,omitempty"`
	Metadata Values `json:"metadata,omitempty"`
	// Contexts has what is kept in spite of the failure: the person's message.
	Contexts []ContextChange `json:"contexts,omitempty"`
}

// NodeRetrying schedules the next attempt of a failed node at Due.
type NodeRetrying struct {
	Path string `json:"node"`
	// Due is Unix time in milliseconds.
	Due int64 `json:"due"`
}

// NodeErrored makes a failure final and says how it is handled.
type NodeErrored struct {
	Path string `json:"node"`
	// Handled is "port" (its error port is connected), "value" (the value of onError is its
	// output) or "" (the run fails).
	Handled string `json:"handled,omitempty"`
	Outputs Values `json:"outputs,omitempty"`
}

// NodeSkipped ends a node that will not run.
type NodeSkipped struct {
	Path string `json:"node"`
}

// NodeNotNeeded ends a node that was never pulled.
type NodeNotNeeded struct {
	Path string `json:"node"`
}

// NodeCancelled ends a node that was running, waiting or ready when the run
// was cancelled or failed.
type NodeCancelled struct {
	Path string `json:"node"`
	// Unknown means that an effect was in flight and its outcome is not known.
	Unknown bool `json:"unknown,omitempty"`
	// Contexts has what is kept in spite of the cancellation: the person's message.
	Contexts []ContextChange `json:"contexts,omitempty"`
}

// EffectStarted is journaled before an effect that must not be repeated blindly.
type EffectStarted struct {
	Key    string `json:"key"` // path/name#ordinal
	Digest string `json:"digest,omitempty"`
	// UnknownStarts counts the earlier starts with an unknown outcome.
	UnknownStarts int `json:"again,omitempty"`
	// Reserve is what a call under a budget may use. It is charged if the outcome stays
	// unknown.
	Reserve *Usage `json:"reserve,omitempty"`
}

// EffectCompleted holds an effect's result.
type EffectCompleted struct {
	Key string `json:"key"`
	// Digest identifies the request. It detects a node that makes a different request under
	// the same key.
	Digest string `json:"digest,omitempty"`
	// Result is the result. Beside an Error it is the rejected answer.
	Result Value  `json:"result,omitempty"`
	Error  *Error `json:"error,omitempty"`
	Usage  *Usage `json:"usage,omitempty"`
	Micros int64  `json:"us,omitempty"`
	// Manifest lists what a model call was given, what was left out, and why.
	Manifest Value `json:"manifest,omitempty"`
	// Superseded marks a rejected answer that ended an earlier attempt: later attempts ask
	// under the next ordinal. It follows from the journal and is set only in a run and its
	// checkpoints.
	Superseded bool `json:"passed,omitempty"`
}

// rejected reports whether the effect is a model's answer that could not be used.
func (e *EffectCompleted) rejected() bool {
	return e != nil && e.Error != nil && e.Error.Code == CodeModelAnswer && e.Result != nil
}

// StepRecorded describes one step inside a node, to explain how its result came about. It
// does not influence decisions.
type StepRecorded struct {
	Path string `json:"node"`
	Step
}

// NoteRecorded is a note about the work by a node or an observer of the run, for readers of
// the journal. It does not influence decisions.
type NoteRecorded struct {
	// Path is the node's; "" for a note of the run, which may also follow the run's end
	// unless the run was cancelled.
	Path string `json:"node,omitempty"`
	// Key distinguishes it from the other notes of the node, or of the run.
	Key   string `json:"key"`
	Value Value  `json:"value"`
	// Usage is the cost of making the note.
	Usage *Usage `json:"usage,omitempty"`
}

// SteeringAdded is a message of a person to a node whose model works, or only the request to
// interrupt the model's answer. The next model call of the node takes it.
type SteeringAdded struct {
	Path string `json:"node"`
	// ID identifies the message in the run; adding it again changes nothing.
	ID string `json:"id"`
	// Text is the message; "" only interrupts.
	Text string `json:"text,omitempty"`
	// Interrupt says that the answer in progress, if there is one, ends where it is.
	Interrupt bool   `json:"interrupt,omitempty"`
	By        string `json:"by,omitempty"`
}

// SteeringTaken says which messages a model call takes. A call that is made again takes the
// same ones.
type SteeringTaken struct {
	// Key is the effect key of the model call, without a number of its try.
	Key string   `json:"key"`
	IDs []string `json:"ids,omitempty"`
}

// InterruptAnswered resolves an interrupt of kind input, event or approval.
type InterruptAnswered struct {
	ID    string `json:"interrupt"`
	Value Value  `json:"value,omitempty"`
	By    string `json:"by,omitempty"`
	// Request is the id of the request that gave the answer, if its sender may repeat it.
	Request string `json:"request,omitempty"`
}

// ChildReported reports the progress of a child run: what it waits for or, with a final
// status, its outcome, which resolves the interrupt.
type ChildReported struct {
	// ID is the interrupt of kind child.
	ID string `json:"interrupt"`
	// Status is the child run's.
	Status Status `json:"status"`
	// Interrupts are what a paused child waits for, with the ids that the child uses.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
	Outputs    Values      `json:"outputs,omitempty"`
	Error      *Error      `json:"error,omitempty"`
	// Answer is the last answer of a model in the child's main context, or else the current
	// output of that context.
	Answer string `json:"answer,omitempty"`
	// Run is the child's id. The child added the messages of its main context from position
	// Began to Length.
	Run    string `json:"run,omitempty"`
	Began  int    `json:"began,omitempty"`
	Length int    `json:"length,omitempty"`
	// Usage is the cumulative usage of the child and its own children. Increases are the
	// increases that people made there to budgets of runs above: Max by "RUN|PATH".
	Usage     Usage     `json:"usage,omitzero"`
	Increases []Account `json:"raised,omitempty"`
}

// RunForked turns a copy of another run's past into a run of its own: the events before it
// belong to the other run. Attempts that were executing start again.
type RunForked struct {
	From string `json:"from"` // run id
	// At is the number of the last shared event, and AtTime the time of its commit in Unix
	// milliseconds. Timers continue with the time that remained then.
	At     int64 `json:"at"`
	AtTime int64 `json:"then,omitempty"`
	// Flow and Fingerprint identify the flow under which the run continues.
	Flow        string            `json:"flow"`
	Fingerprint string            `json:"fingerprint"`
	Pinned      map[string]string `json:"closure,omitempty"`
	Specs       string            `json:"specs,omitempty"`
	// Inputs replace the inputs of the original run; State is added to its state.
	Inputs Values        `json:"inputs,omitempty"`
	State  []StateChange `json:"state,omitempty"`
	// Edited says that inputs or state were changed. A waiting attempt with effects starts
	// again, because its requests may differ now.
	Edited bool     `json:"edited,omitempty"`
	Breaks []string `json:"breaks,omitempty"`
	// Contexts changes the settings of the main context.
	Contexts []ContextChange `json:"contexts,omitempty"`
	Origin   string          `json:"origin,omitempty"`
	By       string          `json:"by,omitempty"`
	// Runner is that of RunStarted, for the fork.
	Runner string `json:"runner,omitempty"`
}

// ChangesAccepted makes a run continue, on request, under other versions of node types and
// tools than it was started with.
type ChangesAccepted struct {
	// Pinned and Specs replace those of the run's start from this event on.
	Pinned map[string]string `json:"closure,omitempty"`
	Specs  string            `json:"specs,omitempty"`
	// Changes lists the differences as text.
	Changes []string `json:"changes,omitempty"`
	By      string   `json:"by,omitempty"`
}

// TimerFired resolves a timer: an interrupt's id, or a node's path for a retry.
type TimerFired struct {
	ID string `json:"timer"`
}

// CancelRequested acknowledges a cancellation: no effect starts after it.
type CancelRequested struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// NodeOverridden is a manual repair of a stuck run.
type NodeOverridden struct {
	Path string `json:"node"`
	// Op is "retry", "skip" or "complete".
	Op      string `json:"op"`
	Outputs Values `json:"outputs,omitempty"` // for "complete"
	By      string `json:"by,omitempty"`
	// Increase is added to a budget, with "retry".
	Increase *BudgetIncrease `json:"raise,omitempty"`
	// Request is the id of the request that repaired the run, if its sender may repeat it.
	Request string `json:"request,omitempty"`
}

// BudgetIncrease is an increase of a budget, which is named by its path: calls, tokens (as
// Input) and cost.
type BudgetIncrease struct {
	Budget string `json:"budget"`
	More   Usage  `json:"more"`
}

// RunCompleted ends a run with its outputs. RunCompleted, RunFailed and RunCancelled end a
// journal; a NodeOverridden makes a failed run continue.
type RunCompleted struct {
	Outputs Values `json:"outputs,omitempty"`
	// Absent are the declared outputs without a value, each with the reason.
	Absent Values `json:"absent,omitempty"`
	// Session are the values that the session of the round receives: those of its keys that
	// the round changed, sorted by key. Empty for a run that is no round.
	Session []SessionChange `json:"session,omitempty"`
	// UserState are the operations that the run applies to the state of its user, nil for none.
	UserState *UserStateWrite `json:"userState,omitempty"`
}

// UserStateRead says which of the values with which a run starts are its user's. Flow is
// the flow whose runs share them, and Versions has the version of each value that was read.
type UserStateRead struct {
	Flow     string        `json:"flow"`
	Versions []UserVersion `json:"versions,omitempty"`
}

// UserVersion is the version of a value: how often it has been changed. Digest is the
// UserDigest of the value, for a key whose writes are refused if it has changed.
type UserVersion struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
	Digest  string `json:"digest,omitempty"`
}

// UserStateWrite applies operations to the state that the runs of a flow share for a user.
type UserStateWrite struct {
	User    string       `json:"user"`
	Flow    string       `json:"flow"`
	Changes []UserChange `json:"changes"`
}

// UserChange is one operation on a key; see ApplyUserChange.
type UserChange struct {
	Key string `json:"key"`
	// Value is combined with the present value by Reducer or, with Replace, takes its place.
	// Initial is the present value of a key without one, nil for none.
	Value   Value  `json:"value,omitempty"`
	Initial Value  `json:"initial,omitempty"`
	Replace bool   `json:"replace,omitempty"`
	Delete  bool   `json:"delete,omitempty"`
	Reducer string `json:"reducer,omitempty"`
	// Expect is the UserDigest of the value that the run has read; the operation is refused if
	// the present value has another. "" applies it to whatever value there is.
	Expect string `json:"expect,omitempty"`
}

// SessionChange gives a key of a session's state another value, or removes its value, so
// that the next round starts with the key's initial value.
type SessionChange struct {
	Key    string `json:"key"`
	Value  Value  `json:"value,omitempty"`
	Delete bool   `json:"delete,omitempty"`
	// Reducer is the ReducerName of the key's declaration; "" with Delete.
	Reducer string `json:"reducer,omitempty"`
}

// RunFailed ends a run with an unhandled error.
type RunFailed struct {
	Error *Error `json:"error"`
	// Repeat has the round repeated, nil for a run that is not.
	Repeat *RoundRepeat `json:"repeat,omitempty"`
}

// RoundRepeat puts the repetition of a round first into the queue of its session.
type RoundRepeat struct {
	// Message is the id of the queued message, and Flow the fingerprint of the round's flow.
	Message string `json:"message"`
	Flow    string `json:"flow"`
	RepeatedRound
}

// RunCancelled is the last event of a cancelled run.
type RunCancelled struct{}

// Kind implements Event.
func (*RunStarted) Kind() string         { return "run.started" }
func (*NodeStarted) Kind() string        { return "node.started" }
func (*NodeResumed) Kind() string        { return "node.resumed" }
func (*NodeWaiting) Kind() string        { return "node.waiting" }
func (*NodePulling) Kind() string        { return "node.pulling" }
func (*NodeExpanded) Kind() string       { return "node.expanded" }
func (*IterationStarted) Kind() string   { return "iteration.started" }
func (*IterationCompleted) Kind() string { return "iteration.completed" }
func (*IterationCancelled) Kind() string { return "iteration.cancelled" }
func (*NodeCompleted) Kind() string      { return "node.completed" }
func (*NodeFailed) Kind() string         { return "node.failed" }
func (*NodeRetrying) Kind() string       { return "node.retrying" }
func (*NodeErrored) Kind() string        { return "node.errored" }
func (*NodeSkipped) Kind() string        { return "node.skipped" }
func (*NodeNotNeeded) Kind() string      { return "node.not_needed" }
func (*NodeCancelled) Kind() string      { return "node.cancelled" }
func (*EffectStarted) Kind() string      { return "effect.started" }
func (*EffectCompleted) Kind() string    { return "effect.completed" }
func (*StepRecorded) Kind() string       { return "step.recorded" }
func (*NoteRecorded) Kind() string       { return "note.recorded" }
func (*SteeringAdded) Kind() string      { return "steering.added" }
func (*SteeringTaken) Kind() string      { return "steering.taken" }
func (*InterruptAnswered) Kind() string  { return "interrupt.answered" }
func (*ChildReported) Kind() string      { return "child.reported" }
func (*RunForked) Kind() string          { return "run.forked" }
func (*ChangesAccepted) Kind() string    { return "changes.accepted" }
func (*TimerFired) Kind() string         { return "timer.fired" }
func (*CancelRequested) Kind() string    { return "cancel.requested" }
func (*NodeOverridden) Kind() string     { return "node.forced" }
func (*RunCompleted) Kind() string       { return "run.completed" }
func (*RunFailed) Kind() string          { return "run.failed" }
func (*RunCancelled) Kind() string       { return "run.cancelled" }
