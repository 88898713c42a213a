// Package store defines what a store keeps, and the errors that it returns. The stores
// are store/memory and store/sqlite; storetest is their conformance suite.
//
// It must not decide anything about runs: a store keeps commits, returns them
// unchanged, and refuses what would corrupt them. The packages that use stores
// (runner, weir) declare the interfaces.
package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
)

// What a caller branches on.
var (
	// ErrNotFound: no such run, flow or entry.
	ErrNotFound = errors.New("not found")
	// ErrExists: a run with that id is there already.
	ErrExists = errors.New("already exists")
	// ErrFenced: the lease this commit was made under is no longer the run's;
	// another process owns the run. Nothing of the commit was kept.
	ErrFenced = errors.New("the run belongs to another process now")
	// ErrOwned: the run is owned by a live process.
	ErrOwned = errors.New("the run is owned by another process")
	// ErrBusy: the session has a round that has not ended, or messages wait
	// before this one.
	ErrBusy = errors.New("the session is busy")
	// ErrSessionAdvanced: the session has gone on since the round ended, so that the round
	// cannot go on.
	ErrSessionAdvanced = errors.New("the session has gone on")
	// ErrNotQueued: a message does not wait any more: a round has taken it, or its
	// sender has taken it back.
	ErrNotQueued = errors.New("the message does not wait any more")
	// ErrNotRoot: the run is a round of a session, or a child of another run, and can
	// only be deleted with that.
	ErrNotRoot = errors.New("part of something larger")
	// ErrRoundBase: a round was to have a base: it goes on with its session, and with no
	// other run's past.
	ErrRoundBase = errors.New("a round has no base")
	// ErrSequence: the commit does not follow the last one.
	ErrSequence = errors.New("commit out of sequence")
	// ErrNewerVersion: the database was written by a newer version of Weir.
	ErrNewerVersion = errors.New("the database is of a newer version")
	// ErrCorrupt: what is stored cannot be read back.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrNotCanonical: what is stored is not written as Weir writes it, so that two
	// readers may read different things.
	ErrNotCanonical = fmt.Errorf("%w: not written as Weir writes it", ErrCorrupt)
	// ErrForeignSchema: the database has objects of another's that would change what Weir
	// reads or writes.
	ErrForeignSchema = errors.New("the database was changed by another program")
	// ErrReadOnly: the database cannot be written.
	ErrReadOnly = errors.New("the database cannot be written: this user may not write it or the folder it is in")
	// ErrFull: no room on the disk.
	ErrFull = errors.New("the disk is full")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Lease is the right to write one run. Fence grows each time the run changes
// hands; a commit under an older one is refused inside the transaction.
type Lease struct {
	Run   string
	Owner string // "host:pid:random"
	Fence int64
	// Until is when others may take the run unless the lease is renewed, by the store's
	// clock. The store sets it.
	Until time.Time
	// TTL is how long the lease lasts that a commit takes; see Append.Acquire.
	TTL time.Duration
	// Crashes is how many processes have ended while they executed the run, one
	// after the other without a commit between; Acquire and Seize count.
	Crashes int
}

// Append is a commit with the lease it is made under and what listings should
// say of the run after it.
type Append struct {
	Commit engine.Commit
	Fence  int64
	Head   Head
	// Carryover is what a round leaves of its main context beside messages, for the
	// next round to begin with; nil where it is as it was. The runner's.
	Carryover []byte
	// Acquire, where it is set, has this commit take a run that nobody owns, so that
	// no commit of its own is needed for that: its Fence is that of the Append and
	// one more than the run's. Where the run's is another it is ErrFenced. The lease ends
	// Acquire.TTL after the store's present time.
	Acquire *Lease
	// Release gives the run back with this commit, as Release does after it.
	Release bool
	// ConsumedMessages are messages that the commit answers questions with: the round that
	// holds their session takes them. One that no longer waits refuses the commit
	// with ErrTaken, so that no message answers twice and none answers that its
	// sender has taken back.
	ConsumedMessages []string
	// ConsumedPosts are messages of inboxes that the commit acts on; they are removed.
	ConsumedPosts []int64
	// AnnouncesOnly says that the commit only announces effects: it is no progress, and
	// the run's count of crashes stays. Any other commit sets the count to zero.
	AnnouncesOnly bool
}

// Head is the row of a run in listings, kept with each commit so that a
// listing reads no journal.
type Head struct {
	Status engine.Status `json:"status"`
	// Activity says what a run of status Running does.
	Activity engine.Activity `json:"-"`
	// Waiting lists open questions, "[]" where there are none.
	Waiting []engine.Interrupt `json:"waiting,omitempty"`
	// Due is the earliest timer, Unix milliseconds, 0 for none.
	Due   int64         `json:"due,omitempty"`
	Usage engine.Usage  `json:"usage"`
	Error *engine.Error `json:"error,omitempty"`
}

// Run is a run as listings show it.
type Run struct {
	ID          string    `json:"id"`
	Flow        string    `json:"flow"`
	Fingerprint string    `json:"fingerprint"`
	User        string    `json:"user,omitempty"`
	Parent      string    `json:"parent,omitempty"`
	Origin      string    `json:"origin,omitempty"`
	Head        Head      `json:"head"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
	// Commits and Events are how many the journal holds.
	Commits int64 `json:"commits"`
	Events  int64 `json:"events"`
	// Owner is who holds the lease, "" for nobody.
	Owner string    `json:"owner,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Expired says that the lease of the owner has expired, by the store's clock.
	Expired bool `json:"-"`
	// Fence is that of the newest lease; it grows once more when the run is given
	// back.
	Fence int64 `json:"fence,omitempty"`
	// Base is the past that the run shares with another, nil for none. Commits
	// and Events count it too.
	Base *Base `json:"base,omitempty"`
	// Session is the session that the run is a round of, Round its number.
	Session string `json:"session,omitempty"`
	Round   int    `json:"round,omitempty"`
	// Crashes is how many processes have ended while they executed the run, without
	// a commit between.
	Crashes int `json:"crashes,omitempty"`
}

// Unfinished is a run that some process should be executing: nodes or child runs were
// at work when it was last written, its timer is due, or messages wait in its inbox.
type Unfinished struct {
	// Number orders runs by when they were created.
	Number int64
	Run    string
	Parent string
	// Session is the session that the run is a round of.
	Session string
	Status  engine.Status
	// Activity says what a run of status Running does.
	Activity engine.Activity
	// Due is the earliest timer, Unix milliseconds, 0 for none.
	Due int64
	// Posts says that messages wait in its inbox.
	Posts bool
	// Owner has the lease, "" for none; Expired says that it has expired, by the store's
	// clock.
	Owner   string
	Expired bool
	Crashes int
}

// Base says that a run's first Seq commits are those of another run; with 0 it
// comes from that run and shares no commit as a whole.
type Base struct {
	Run string `json:"run"`
	Seq int64  `json:"seq"`
}

// NewRun is what Create is given; the run's first commit comes by Append. With
// a Base, that commit follows the base's: reading the run gives the base's
// commits first, under the run's own id, and a context that the run does not
// make itself is the base's up to there. Nothing is copied.
type NewRun struct {
	ID, Flow, Fingerprint, User, Parent, Origin string
	At                                          time.Time
	Base                                        *Base
	// StateChanges, in a round, is Session.StateChanges as its starter has read it with the
	// session's state; nil if it has not. See SessionStore.StartRound.
	StateChanges *int64
}

// Filter narrows a listing; zero is everything, newest first.
type Filter struct {
	Flow, User, Parent string
	// Session lists the rounds of one session.
	Session string
	// Roots leaves out runs that have a parent.
	Roots  bool
	Status []engine.Status
	// Before continues a listing: runs created before this run id.
	Before string
	Limit  int // 0 is 100
}

// Post is a message to a run from a process that does not own it: a
// cancellation, an answer, an outside event. The owner takes it from the inbox.
type Post struct {
	ID    int64
	Run   string
	Kind  string // "cancel", "answer", "event"
	Name  string // interrupt id or event name
	Value engine.Value
	By    string
	At    time.Time
}

// Checkpoint is a discardable snapshot of a run after a commit; losing it
// costs time and nothing else.
type Checkpoint struct {
	Run  string
	Seq  int64  // of the commit it includes
	Body []byte // the runner's
}
