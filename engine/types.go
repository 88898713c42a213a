package engine

import (
	"encoding/json"
	"fmt"
)

// Commit is a group of events of one run that become durable together.
type Commit struct {
	Run string
	// Seq numbers the run's commits from 1. The first event of a run has number 1, and
	// First is the number of this commit's first event.
	Seq   int64
	First int64
	// At is Unix time in milliseconds, the only clock of the run.
	At     int64
	Events []Event
}

// When returns the time of the commit's event at that index, in Unix milliseconds. Events
// before a RunForked in the same commit happened at the time of the fork point.
func (c *Commit) When(i int) int64 {
	for _, e := range c.Events[i:] {
		if f, ok := e.(*RunForked); ok && e != c.Events[i] {
			return f.AtTime
		}
	}
	return c.At
}

// Usage is the cost of effects.
type Usage struct {
	Calls      int   `json:"calls,omitempty"`
	Input      int   `json:"input,omitempty"`  // tokens
	Cached     int   `json:"cached,omitempty"` // of Input
	Output     int   `json:"output,omitempty"` // tokens
	Reasoning  int   `json:"reasoning,omitempty"`
	CostMicros int64 `json:"cost,omitempty"` // millionths of a US dollar
	// Estimated is how many of Calls were counted by an estimate, because the provider
	// reported no usage.
	Estimated int `json:"estimated,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(o Usage) Usage {
	return Usage{
		u.Calls + o.Calls, u.Input + o.Input, u.Cached + o.Cached,
		u.Output + o.Output, u.Reasoning + o.Reasoning, u.CostMicros + o.CostMicros, u.Estimated + o.Estimated,
	}
}

// Less returns what u has more than o.
func (u Usage) Less(o Usage) Usage {
	return Usage{
		u.Calls - o.Calls, u.Input - o.Input, u.Cached - o.Cached,
		u.Output - o.Output, u.Reasoning - o.Reasoning, u.CostMicros - o.CostMicros, u.Estimated - o.Estimated,
	}
}

// Error is a failure as recorded in the journal. Code is from the table in codes.go.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Node and Attempt are the place; Key names the effect, if one failed.
	Node    string `json:"node,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Key     string `json:"key,omitempty"`
	// Hint is the next thing to do.
	Hint string `json:"hint,omitempty"`
	// Permanent errors are not retried unless `on` names their code.
	Permanent bool `json:"permanent,omitempty"`
	// NoRetry errors are not retried by the policy of the node, even if `on` names their
	// code. A person can still retry the node.
	NoRetry bool `json:"noRetry,omitempty"`
	// Budget is the path of the exhausted budget, with budget_exceeded.
	Budget string `json:"budget,omitempty"`
	// Below is the place in the child runs of Node, as "review>ask", and Run the run in
	// which it failed; both are "" if Node itself failed.
	Below string `json:"below,omitempty"`
	Run   string `json:"run,omitempty"`
	// RetryAfter is how many milliseconds the service that failed asks to wait before the
	// next try; 0 if it asks for none. A retry of the node waits at least as long.
	RetryAfter int64 `json:"retryAfter,omitempty"`
}

// Error returns "place: message (code)".
func (e *Error) Error() string {
	s := e.Message + " (" + e.Code + ")"
	if e.Run != "" && e.Below == "" { // the failure of that run itself
		s = "child run " + e.Run + ": " + s
	}
	if place := e.Place(); place != "" {
		s = place + ": " + s
	}
	return s
}

// Place returns the path of the node that failed, through child runs: "part>review>ask".
func (e *Error) Place() string {
	if e.Node == "" || e.Below == "" {
		return e.Node + e.Below
	}
	return e.Node + ">" + e.Below
}

// InterruptKind is what an interrupt waits for.
type InterruptKind string

// The kinds of interrupt.
const (
	AwaitInput  InterruptKind = "input"  // a person's answer
	AwaitTimer  InterruptKind = "timer"  // Due
	AwaitEvent  InterruptKind = "event"  // an outside event named Event
	AwaitBreak  InterruptKind = "break"  // a person lets the run continue
	AwaitEffect InterruptKind = "effect" // a person decides the outcome of an effect
	// AwaitApproval waits for a person to allow a tool call or, if Event is set, all calls
	// of the run with that Event. AwaitBudget waits for an increase of the budget with the
	// path Event.
	AwaitApproval InterruptKind = "approval"
	AwaitBudget   InterruptKind = "budget"
	// AwaitChild waits for a child run. People are shown the interrupts of the child
	// instead.
	AwaitChild InterruptKind = "child"
)

// Interrupt is a reason a run waits. Its id is stable: path:name#ordinal.
type Interrupt struct {
	ID     string        `json:"id"`
	Kind   InterruptKind `json:"kind"`
	Prompt string        `json:"prompt,omitempty"`
	// Schema is the JSON Schema of the answer; nil is text.
	Schema map[string]any `json:"schema,omitempty"`
	Event  string         `json:"event,omitempty"`
	// Due is Unix time in milliseconds: when a timer fires, or when the wait for an answer
	// or event ends without one; 0 means never.
	Due int64 `json:"due,omitempty"`
	// Child is what an interrupt of kind child starts.
	Child *ChildStart `json:"child,omitempty"`
}

// ChildStart is the start of a child run as recorded in its parent's journal, so that a
// crash between the two journals loses nothing.
type ChildStart struct {
	// Run is the child's id. It is derived from the parent, the node and the attempt, so
	// that repeating the start is harmless.
	Run         string `json:"run"`
	Fingerprint string `json:"fingerprint"` // of the flow it runs
	Inputs      Values `json:"inputs,omitempty"`
	State       Values `json:"state,omitempty"`
	// Isolation is "fresh", "fork" or "share".
	Isolation string `json:"isolation,omitempty"`
	// Main creates the child's main context, either empty or from a context of the parent.
	Main ContextChange `json:"main"`
}

// StateChange is one write to the state.
type StateChange struct {
	Key    string `json:"key"`
	Value  Value  `json:"value,omitempty"`
	Delete bool   `json:"delete,omitempty"`
}

// ContextChange is one change to a context. The engine tracks ids and positions; Body (a
// convo.Change) is opaque to it.
type ContextChange struct {
	ID string `json:"context"`
	// Adds is the number of messages that the change appends.
	Adds int `json:"adds,omitempty"`
	// Create says that the change creates the context. Parent and At are the context and
	// position that it is forked from; "" for none.
	Create bool   `json:"create,omitempty"`
	Parent string `json:"parent,omitempty"`
	At     int    `json:"at,omitempty"`
	// Run is the run of the context Parent, "" for this run. Session is the session that
	// the context continues, from position At: messages appended to it are also appended to
	// the session. At most one of the three groups (Parent, Parent with Run, Session) is
	// set.
	Run     string `json:"run,omitempty"`
	Session string `json:"session,omitempty"`
	// Body is a convo.Change in memory, and raw JSON after decoding.
	Body any `json:"body,omitempty"`
}

// Status is the status of a node or a run.
type Status uint8

// The statuses. Paused is for runs; Waiting, Skipped and NotNeeded for nodes.
const (
	Pending Status = iota
	Running
	Waiting
	Paused
	Completed
	Failed
	Skipped
	Cancelled
	NotNeeded
)

// String returns the status as files, API and UI spell it.
func (s Status) String() string {
	return [...]string{
		"pending", "running", "waiting", "paused", "completed",
		"failed", "skipped", "cancelled", "not_needed",
	}[s]
}

// StatusNamed returns the status with that name.
func StatusNamed(name string) (s Status, ok bool) {
	for s = Pending; s <= NotNeeded; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return Pending, false
}

// MarshalJSON writes the status as String spells it.
func (s Status) MarshalJSON() ([]byte, error) {
	if s > NotNeeded {
		return nil, fmt.Errorf("there is no status %d", uint8(s))
	}
	return AppendString(nil, s.String()), nil
}

// UnmarshalJSON reads a status as MarshalJSON writes it, or its number.
func (s *Status) UnmarshalJSON(data []byte) error {
	var n uint8
	if json.Unmarshal(data, &n) == nil && Status(n) <= NotNeeded {
		*s = Status(n)
		return nil
	}
	var name string
	if err := json.Unmarshal(data, &name); err != nil {
		return fmt.Errorf("a status is a text: %w", err)
	}
	st, ok := StatusNamed(name)
	if !ok {
		return fmt.Errorf("there is no status %q", name)
	}
	*s = st
	return nil
}

// Ended reports whether a node or run with this status is done.
func (s Status) Ended() bool { return s >= Completed }
