package store

import (
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// Session is a conversation over many runs, its rounds. Its history is one context to which the rounds append as they
// commit, one round at a time. A commit of a round that does not hold the session is refused with ErrSessionAdvanced.
type Session struct {
	ID     string `json:"id"`
	User   string `json:"user,omitempty"`
	Flow   string `json:"flow"`
	Thread string `json:"thread"`
	// Parent is the session from which this one was forked, "" for none: the first At messages are the parent's,
	// which had ParentRound rounds then.
	Parent       string    `json:"parent,omitempty"`
	ParentRound  int       `json:"parentRound,omitempty"`
	ParentLength int       `json:"at,omitempty"`
	Created      time.Time `json:"created"`
	Updated      time.Time `json:"updated"`
	// Rounds is the number of started rounds, Length the number of messages.
	Rounds int `json:"rounds"`
	Length int `json:"length"`
	// Fence grows with each round that starts.
	Fence int64 `json:"fence,omitempty"`
	// Holder is the run of the current round, "" if there is none. A round ends, and releases the session, with the
	// commit in whose head the status is final.
	Holder string `json:"holder,omitempty"`
	// Queued is the number of messages that wait for a round.
	Queued int `json:"queued,omitempty"`
	// Usage is the total usage of all rounds.
	Usage engine.Usage `json:"usage"`
	// Carryover is the main context's state after the last round; see Append.Carryover. A session that starts with
	// all messages of its parent has its parent's.
	Carryover []byte `json:"-"`
	// Expires is the time after which Prune may delete the session; zero means never.
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

// NewSession describes a session to create. One with a Parent starts with the first At messages of it; nothing is
// copied, and it becomes the active session only by ActivateSession. The default Thread is the ID.
type NewSession struct {
	ID, User, Flow, Thread string
	Parent                 string
	ParentLength           int
	Expires                time.Time
	Now                    time.Time
	// FirstMessage, if set, is stored with the session as its first message.
	FirstMessage *QueuedMessage
}

// QueuedMessage is a message to a session that waits for a round.
type QueuedMessage struct {
	// ID is chosen by the sender and unique among all sessions: a message that is sent twice is stored once.
	ID      string
	Session string
	Value   engine.Value
	By      string
	At      time.Time
	// TakenBy is the round that took it, "" while it waits.
	TakenBy string
	// OnlyIfIdle makes Enqueue refuse the message unless the session can take it at once: no message waits, and there
	// is no current round, except a paused one.
	OnlyIfIdle bool
}

// SessionMessage is one message of a session's history.
type SessionMessage struct {
	Position int `json:"position"`
	// Run and Round identify the round that added it; Round is 0 for messages of the session's parent. Status is the
	// status of that round: messages of failed and cancelled rounds are kept, and recognised by it.
	Run    string        `json:"run"`
	Round  int           `json:"round"`
	Status engine.Status `json:"status"`
	At     time.Time     `json:"at"`
	// Tokens is the number of tokens of the message; 0 means not counted.
	Tokens  int           `json:"tokens,omitempty"`
	Message convo.Message `json:"message"`
}

// SessionFilter selects sessions, the newest first; zero fields select all.
type SessionFilter struct {
	User, Flow string
	// Prefix is a prefix of the session's id.
	Prefix string
	// Before continues a listing: sessions created before this one.
	Before string
	Limit  int // 0 means 100
}
