package store

import (
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// Session is a conversation over many runs, its rounds. Its history is one
// context: rounds append to it as they commit, one round at a time. A commit of
// a run that is a round of the session but does not hold it is refused with
// ErrMoved.
type Session struct {
	ID     string `json:"id"`
	User   string `json:"user,omitempty"`
	Flow   string `json:"flow"`
	Thread string `json:"thread"`
	// Parent is the session this one was forked from, "" for none: the first At
	// messages are the parent's, which had ParentRound rounds then.
	Parent       string    `json:"parent,omitempty"`
	ParentRound  int       `json:"parentRound,omitempty"`
	ParentLength int       `json:"at,omitempty"`
	Created      time.Time `json:"created"`
	Updated      time.Time `json:"updated"`
	// Rounds is how many were started, Length how many messages there are.
	Rounds int `json:"rounds"`
	Length int `json:"length"`
	// Fence grows with each round that begins.
	Fence int64 `json:"fence,omitempty"`
	// Holder is the run that is the current round, "" where none is going on. A
	// round ends, and gives the session back, with the commit whose head has a
	// status that is an end.
	Holder string `json:"holder,omitempty"`
	// Queued is how many messages wait for a round.
	Queued int `json:"queued,omitempty"`
	// Usage is what all rounds have cost.
	Usage engine.Usage `json:"usage"`
	// Carryover is what the last round left of its main context; see Append.Carryover. A
	// session that begins with all messages of its parent has its parent's.
	Carryover []byte `json:"-"`
	// Expires is when Prune may delete the session; zero is never.
	Expires time.Time `json:"expires,omitzero"`
	// StateChanges is how many changes of its state the session has kept. It grows with
	// each.
	StateChanges int64 `json:"stateChanges,omitempty"`
}

// StateValue is the value that a session keeps under a key of its state.
type StateValue struct {
	Key   string
	Value engine.Value
	// Reducer is the engine.ReducerName of the declaration under which a round wrote the
	// value; "" if the value was set by hand.
	Reducer string
	// Round is the number of the round after which the value holds: that of the round that
	// wrote it, of the last round before it was set by hand, or 0 if it comes from the
	// session's parent. Run is the round that wrote it, "" if none of this session did.
	Round int
	Run   string
	// By is who set it by hand.
	By string
	At time.Time
}

// StateEdit changes the state of a session by hand.
type StateEdit struct {
	Session string
	Changes []engine.SessionChange
	By      string
	At      time.Time
}

// NewSession makes a session. One with a Parent begins with the first At
// messages of it; nothing is copied, and it becomes the active session only when
// ActivateSession says so. A Thread that is not given is the ID.
type NewSession struct {
	ID, User, Flow, Thread string
	Parent                 string
	ParentLength           int
	Expires                time.Time
	Now                    time.Time
	// FirstMessage, where set, is kept with the session as its first message.
	FirstMessage *QueuedMessage
}

// QueuedMessage is a message to a session that no round has taken yet.
type QueuedMessage struct {
	// ID is chosen by the sender: sending it twice is sending it once. No two
	// messages have the same, whatever their sessions.
	ID      string
	Session string
	Value   engine.Value
	By      string
	At      time.Time
	// TakenBy is the round that took it, "" while it waits.
	TakenBy string
	// OnlyIfIdle is for Enqueue: keep the message only where the session can take it at
	// once, that is, no message waits and no round goes on but one that is paused.
	OnlyIfIdle bool
}

// SessionMessage is one message of a session's history.
type SessionMessage struct {
	Position int `json:"position"`
	// Run and Round say which round said it; Round is 0 for what came with the
	// session's parent. Status is that round's: what a failed or cancelled round
	// said stays, and is told apart by it.
	Run    string        `json:"run"`
	Round  int           `json:"round"`
	Status engine.Status `json:"status"`
	At     time.Time     `json:"at"`
	// Tokens is how many the message has; 0 is not counted.
	Tokens  int           `json:"tokens,omitempty"`
	Message convo.Message `json:"message"`
}

// SessionFilter narrows a listing; zero is everything, the newest first.
type SessionFilter struct {
	User, Flow string
	// Prefix is what the session's id begins with.
	Prefix string
	// Before continues a listing: sessions created before this one.
	Before string
	Limit  int // 0 is 100
}
