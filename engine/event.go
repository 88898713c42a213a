package engine

// Event is one fact in a run's journal. An event is also the command that made
// it: the runner acts on the events that Decide returns (it starts the node
// that NodeStarted names) once they are durable. Events are immutable once
// applied. Nodes are named by path: "draft", or "refine#2/draft" for the node
// draft in the second iteration of refine.
type Event interface {
	// Kind is the stable name in the journal, for example "node.started".
	Kind() string
}

// RunStarted opens every journal.
type RunStarted struct {
	Flow        string `json:"flow"`
	Fingerprint string `json:"fingerprint"`
	// Inputs are the run's inputs with defaults filled in.
	Inputs Values `json:"inputs,omitempty"`
	// State is the state the run begins with.
	State  Values `json:"state,omitempty"`
	User   string `json:"user,omitempty"`
	Parent string `json:"parent,omitempty"` // run id
	// Caller is what of an agent of Parent began the run: the effect key of a tool
	// call, with the attempt where that was not the first, or the interrupt of an entry
	// of its queues; "" where a node runs the flow.
	Caller string `json:"caller,omitempty"`
	// Depth is how many runs are above this one, 0 for the root of a tree.
	Depth int `json:"depth,omitempty"`
	// Node is the interrupt of Parent that waits for this run, "" where none does.
	Node string `json:"node,omitempty"`
	// Session is the session that the run is a round of, and Round its number,
	// from 1; both are zero for a run that is none.
	Session string `json:"session,omitempty"`
	Round   int    `json:"round,omitempty"`
	// Allowances are budgets from outside the run that bind it too: its
	// session's. Used is what was spent of them before the run.
	Allowances []Account `json:"allowances,omitempty"`
	// Origin says what started the run: "cli", "go", "schedule", ...
	Origin string `json:"origin,omitempty"`
	// Targets limits the run to what these nodes need; empty is all.
	Targets []string `json:"targets,omitempty"`
	// Breaks are nodes that pause the run before they start.
	Breaks []string `json:"breaks,omitempty"`
	// Parallel bounds how many nodes are running at once; at least 1.
	Parallel int `json:"parallel"`
	// Contexts creates the main context.
	Contexts []ContextChange `json:"contexts,omitempty"`
	// Pinned pins what the run runs under: node-type versions and tool hashes.
	Pinned map[string]string `json:"closure,omitempty"`
	// Specs is the digest under which the store keeps what reading the record needs
	// of the node types: see flow.Specs. "" in runs of earlier versions.
	Specs string `json:"specs,omitempty"`
	// Folder is where the flow's file was, for files that its nodes name; "" where
	// they name none.
	Folder string `json:"folder,omitempty"`
	// Agents are the sub-agents of the run's trajectory: paths of nodes, down into
	// child runs as "review>ask", in the order of their numbers from 1. Child runs
	// have none of their own.
	Agents []string `json:"agents,omitempty"`
	// MessagePrefix begins the ids of the messages that the run adds to contexts, so
	// that they are unique in the tree of runs; "" in a run without a parent, and in
	// child runs of journals that were written before the field existed.
	MessagePrefix string `json:"messagePrefix,omitempty"`
}

// NodeStarted begins an attempt.
type NodeStarted struct {
	Path    string `json:"node"`
	Attempt int    `json:"attempt,omitempty"` // from 1; 0 in JSON is 1
	// Grants are the contexts the node may write.
	Grants []string `json:"grants,omitempty"`
	// Forks makes the lane's contexts that the node is the first to use.
	Forks []ContextChange `json:"forks,omitempty"`
}

// NodeResumed re-enters an attempt that was waiting, pulling or expanding: its
// function runs again from the top and is given its recorded effects, answers
// and pulled values.
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

// NodeExpanded suspends a composite until iterations of its body, one an item,
// are done. Items add to those of earlier expansions of the same node.
type NodeExpanded struct {
	Path string `json:"node"`
	// Items are the inputs of the iterations.
	Items []Values `json:"items"`
	// Concurrency bounds how many run at once; 0 and 1 are one after another.
	Concurrency int `json:"concurrency,omitempty"`
	// Fork gives each iteration lanes of its own for contexts and state.
	Fork bool `json:"fork,omitempty"`
	// Fresh, with Fork, has the lanes' contexts begin without messages, and
	// nothing of the lanes come back but the outputs.
	Fresh bool `json:"fresh,omitempty"`
}

// IterationStarted opens a scope; Path is "refine#2", counted from 1.
type IterationStarted struct {
	Path string `json:"scope"`
}

// IterationCompleted closes a scope with the body's outputs.
type IterationCompleted struct {
	Path    string `json:"scope"`
	Outputs Values `json:"outputs,omitempty"`
}

// NodeCompleted commits a leaf's transaction, or ends a composite.
type NodeCompleted struct {
	Path string `json:"node"`
	// Outputs by port; an edge from a port that is not here is skipped.
	Outputs  Values          `json:"outputs,omitempty"`
	State    []StateChange   `json:"state,omitempty"`
	Contexts []ContextChange `json:"contexts,omitempty"`
	// Metadata is free: token usage, anything a node reports.
	Metadata Values `json:"metadata,omitempty"`
	// Micros is the time the attempt's function ran, in microseconds.
	Micros int64 `json:"us,omitempty"`
	// Cached marks outputs that came from the cache.
	Cached bool `json:"cached,omitempty"`
}

// NodeFailed ends an attempt with an error. What follows (a retry, the error
// port, a value, the run's failure) is a command of its own.
type NodeFailed struct {
	Path     string `json:"node"`
	Error    *Error `json:"error"`
	Micros   int64  `json:"us,omitempty"`
	Metadata Values `json:"metadata,omitempty"`
	// Contexts keeps what must outlive the failure: what the person said.
	Contexts []ContextChange `json:"contexts,omitempty"`
}

// NodeRetrying says that a failed node will be tried again at Due.
type NodeRetrying struct {
	Path string `json:"node"`
	// Due is Unix time in milliseconds.
	Due int64 `json:"due"`
}

// NodeErrored says that the failure is final and how it is handled.
type NodeErrored struct {
	Path string `json:"node"`
	// Handled is "port" (its error port is wired), "value" (onError gives a
	// value, now its output) or "" (the run fails).
	Handled string `json:"handled,omitempty"`
	Outputs Values `json:"outputs,omitempty"`
}

// NodeSkipped says that the node will not run.
type NodeSkipped struct {
	Path string `json:"node"`
}

// NodeNotNeeded says that a node nobody asked for did not run.
type NodeNotNeeded struct {
	Path string `json:"node"`
}

// NodeCancelled ends a node that was running, waiting or ready when the run
// was cancelled or failed.
type NodeCancelled struct {
	Path string `json:"node"`
	// Unknown: an effect was in flight and its outcome is not known.
	Unknown bool `json:"unknown,omitempty"`
	// Contexts keeps what must outlive it: what the person said.
	Contexts []ContextChange `json:"contexts,omitempty"`
}

// EffectStarted is journaled before an effect that must not be repeated blindly.
type EffectStarted struct {
	Key    string `json:"key"` // path/name#ordinal
	Digest string `json:"digest,omitempty"`
	// UnknownStarts counts the earlier starts whose outcome nobody knows.
	UnknownStarts int `json:"again,omitempty"`
	// Reserve is what a call under a budget may take. It is spent where the
	// outcome stays unknown.
	Reserve *Usage `json:"reserve,omitempty"`
}

// EffectCompleted holds an effect's result.
type EffectCompleted struct {
	Key string `json:"key"`
	// Digest identifies the request, to catch a node that asks for something
	// else under the same key.
	Digest string `json:"digest,omitempty"`
	// Result is what it gave. Beside an Error it is what was rejected.
	Result Value  `json:"result,omitempty"`
	Error  *Error `json:"error,omitempty"`
	Usage  *Usage `json:"usage,omitempty"`
	Micros int64  `json:"us,omitempty"`
	// Manifest says what a model call was given and what not, and why.
	Manifest Value `json:"manifest,omitempty"`
	// Superseded says that the effect is a rejected answer which ended an earlier attempt:
	// attempts from then on ask under the next ordinal. It follows from the journal and
	// is set in a run and its checkpoints alone.
	Superseded bool `json:"passed,omitempty"`
}

// rejected reports whether the effect is an answer of a model that could not be used.
func (e *EffectCompleted) rejected() bool {
	return e != nil && e.Error != nil && e.Error.Code == CodeModelAnswer && e.Result != nil
}

// StepRecorded says what one step inside a node did, for those who ask how its
// result came about. Nothing is decided by it.
type StepRecorded struct {
	Path string `json:"node"`
	Step
}

// NoteRecorded is what a node, or what watches the run, says of the work for
// whoever reads the journal. Nothing is decided by it.
type NoteRecorded struct {
	// Path is the node's, "" for a note of the run; that may also come after the
	// run's end, where the run was not cancelled.
	Path string `json:"node,omitempty"`
	// Key tells it from the other notes of the node, or of the run.
	Key   string `json:"key"`
	Value Value  `json:"value"`
	// Usage is what it took to make.
	Usage *Usage `json:"usage,omitempty"`
}

// InterruptAnswered resolves an interrupt of kind input, event or approval.
type InterruptAnswered struct {
	ID    string `json:"interrupt"`
	Value Value  `json:"value,omitempty"`
	By    string `json:"by,omitempty"`
}

// ChildReported says how far a child run has come: what it waits for, or, with
// a status that is an end, what became of it, which resolves the interrupt.
type ChildReported struct {
	// ID is the interrupt of kind child.
	ID string `json:"interrupt"`
	// Status is the child run's.
	Status Status `json:"status"`
	// Interrupts are what a paused child waits for, as the child names them.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
	Outputs    Values      `json:"outputs,omitempty"`
	Error      *Error      `json:"error,omitempty"`
	// Answer is what a model said last in the child's main context, else what its
	// last node left there to be said.
	Answer string `json:"answer,omitempty"`
	// Run is the child's id. Of the messages of its main context, it said those
	// from position Began to Length.
	Run    string `json:"run,omitempty"`
	Began  int    `json:"began,omitempty"`
	Length int    `json:"length,omitempty"`
	// Usage is what the child and its own children have spent so far, all told,
	// and Raised by how much people, whom they asked, raised budgets of runs above:
	// Max of "RUN|PATH".
	Usage     Usage     `json:"usage,omitzero"`
	Increases []Account `json:"raised,omitempty"`
}

// RunForked makes a run that shares the past of another one of its own: what was
// before it is the other run's. Attempts that were executing begin anew.
type RunForked struct {
	From string `json:"from"` // run id
	// At is the number of the last event that is shared, and Then the time of its
	// commit in Unix milliseconds: timers go on with what was left of them then.
	At     int64 `json:"at"`
	AtTime int64 `json:"then,omitempty"`
	// Flow and Fingerprint say what the run goes on under.
	Flow        string            `json:"flow"`
	Fingerprint string            `json:"fingerprint"`
	Pinned      map[string]string `json:"closure,omitempty"`
	Specs       string            `json:"specs,omitempty"`
	// Inputs replace those of the run it is forked from, State adds to its state.
	Inputs Values        `json:"inputs,omitempty"`
	State  []StateChange `json:"state,omitempty"`
	// Edited says that inputs or state are not what they were: an attempt that
	// waits begins anew where it has effects behind it, since it may ask for
	// something else now.
	Edited bool     `json:"edited,omitempty"`
	Breaks []string `json:"breaks,omitempty"`
	// Contexts changes the settings of the main context.
	Contexts []ContextChange `json:"contexts,omitempty"`
	Origin   string          `json:"origin,omitempty"`
	By       string          `json:"by,omitempty"`
}

// ChangesAccepted has a run continue under other versions of node types and tools
// than it was started with, since somebody asked for it.
type ChangesAccepted struct {
	// Pinned and Specs replace those of the run's beginning, from here on.
	Pinned map[string]string `json:"closure,omitempty"`
	Specs  string            `json:"specs,omitempty"`
	// Changes are what is different, for people.
	Changes []string `json:"changes,omitempty"`
	By      string   `json:"by,omitempty"`
}

// TimerFired resolves a timer: an interrupt's id, or a node's path for a retry.
type TimerFired struct {
	ID string `json:"timer"`
}

// CancelRequested is the acknowledgement of a cancellation: no effect starts
// after it.
type CancelRequested struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// NodeOverridden is a person's way out of a stuck run.
type NodeOverridden struct {
	Path string `json:"node"`
	// Op is "retry", "skip" or "complete".
	Op      string `json:"op"`
	Outputs Values `json:"outputs,omitempty"` // of complete
	By      string `json:"by,omitempty"`
	// Increase is what is added to a budget, with retry.
	Increase *BudgetIncrease `json:"raise,omitempty"`
}

// BudgetIncrease is what is added to a budget, by its path: calls, tokens (as Input) and
// cost.
type BudgetIncrease struct {
	Budget string `json:"budget"`
	More   Usage  `json:"more"`
}

// RunCompleted, RunFailed and RunCancelled end a journal; a failed run goes on
// after a NodeForced.
type RunCompleted struct {
	Outputs Values `json:"outputs,omitempty"`
	// Absent are the declared outputs that have no value, each with the reason.
	Absent Values `json:"absent,omitempty"`
}

// RunFailed ends a run whose error nothing handled.
type RunFailed struct {
	Error *Error `json:"error"`
}

// RunCancelled is the last event of a cancelled run.
type RunCancelled struct{}

// Kind methods give each event its name in the journal.
func (*RunStarted) Kind() string         { return "run.started" }
func (*NodeStarted) Kind() string        { return "node.started" }
func (*NodeResumed) Kind() string        { return "node.resumed" }
func (*NodeWaiting) Kind() string        { return "node.waiting" }
func (*NodePulling) Kind() string        { return "node.pulling" }
func (*NodeExpanded) Kind() string       { return "node.expanded" }
func (*IterationStarted) Kind() string   { return "iteration.started" }
func (*IterationCompleted) Kind() string { return "iteration.completed" }
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
