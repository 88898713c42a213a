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

// The errors that callers distinguish.
var (
	// ErrNotFound: there is no such run, flow or entry.
	ErrNotFound = errors.New("not found")
	// ErrExists: there is a run with that id already.
	ErrExists = errors.New("already exists")
	// ErrFenced: the lease under which the commit was made is no longer the run's; another process owns the run.
	// Nothing of the commit was stored.
	ErrFenced = errors.New("the run belongs to another process now")
	// ErrOwned: the run is owned by a live process.
	ErrOwned = errors.New("the run is owned by another process")
	// ErrBusy: the session has a round that has not ended, or messages wait before this one.
	ErrBusy = errors.New("the session is busy")
	// ErrSessionAdvanced: the session has advanced since the round ended, so that the round cannot continue.
	ErrSessionAdvanced = errors.New("the session has continued since")
	// ErrNotQueued: a message is no longer in the queue: a round has taken it, or its sender has withdrawn it.
	ErrNotQueued = errors.New("the message is no longer in the queue")
	// ErrNotRoot: the run is a round of a session, or a child of another run, and can only be deleted with it.
	ErrNotRoot = errors.New("part of something larger")
	// ErrRoundBase: a round must not have a base, because it continues its session.
	ErrRoundBase = errors.New("a round has no base")
	// ErrSequence: the commit does not follow the last one.
	ErrSequence = errors.New("commit out of sequence")
	// ErrNewerVersion: the database was written by a newer version of Weir.
	ErrNewerVersion = errors.New("the database is of a newer version")
	// ErrCorrupt: what is stored cannot be read back.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrNotWeir: the file is readable, but it is not a database of Weir.
	ErrNotWeir = errors.New("it is not a Weir database")
	// ErrNotCanonical: stored JSON differs from the form that Weir writes, so that two readers may read it
	// differently.
	ErrNotCanonical = fmt.Errorf("%w: not written as Weir writes it", ErrCorrupt)
	// ErrBackup: the database is a backup, which can be read, and is restored before it is written.
	ErrBackup = errors.New("the database is a backup")
	// ErrForeignSchema: the database has objects of other programs that would change what Weir reads or writes.
	ErrForeignSchema = errors.New("the database was changed by another program")
	// ErrReadOnly: the database cannot be written.
	ErrReadOnly = errors.New("the database cannot be written: this user may not write it or the folder it is in")
	// ErrFull: the disk is full.
	ErrFull = errors.New("the disk is full")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Lease is the right to write one run. Fence grows each time the owner changes; a commit under an older fence is
// refused inside the transaction.
type Lease struct {
	Run   string
	Owner string // "host:pid:random"
	Fence int64
	// Until is the time, by the store's clock, after which others may acquire the run unless the lease is renewed.
	// The store sets it.
	Until time.Time
	// TTL is the duration of a lease that a commit acquires; see Append.Acquire.
	TTL time.Duration
	// Crashes is the number of consecutive processes that ended while they executed the run, without a commit
	// between; Acquire and Seize count them.
	Crashes int
	// TakenOver says that Acquire or Seize took an executing run from an owner that had not released it.
	TakenOver bool
}

// Append is a commit with its lease and the run's row in listings after it.
type Append struct {
	Commit engine.Commit
	Fence  int64
	Head   Head
	// Start, where it is set, makes the run with this commit, its first, so that a run that
	// is there has a commit. Acquire is set then, and Fence is 1.
	Start *RunStart
	// Carryover is the state of a round's main context besides messages, with which the next round starts; nil if it
	// is unchanged. Its content belongs to the runner.
	Carryover []byte
	// Acquire, if set, makes this commit acquire a run without an owner, which saves a commit of its own: the fence
	// of the Append must be one more than the run's, otherwise the error is ErrFenced. The lease ends Acquire.TTL
	// after the store's present time.
	Acquire *Lease
	// Release releases the run with this commit, as Release does after it.
	Release bool
	// ConsumedMessages are messages with which the commit answers questions: the round that holds their session takes
	// them. If one of them no longer waits, the commit is refused with ErrNotQueued, so that no message answers twice
	// or after its sender has withdrawn it.
	ConsumedMessages []string
	// ConsumedPosts are inbox messages that the commit has processed; they are removed.
	ConsumedPosts []int64
	// NearBudgets are the budgets of the run whose use has come near their limits with the commit, as
	// engine.Run.TakeNearBudgets has them. A store with documents leaves a notice of them.
	NearBudgets []string
	// AnnouncesOnly means that the commit only announces effects: it is no progress, and does not change the run's
	// count of crashes. Any other commit resets the count.
	AnnouncesOnly bool
}

// Head is the row of a run in listings. It is stored with each commit, so that a listing reads no journal.
type Head struct {
	Status engine.Status `json:"status"`
	// Activity describes what a run of status Running does.
	Activity engine.Activity `json:"-"`
	// Waiting lists open questions, "[]" if there are none.
	Waiting []engine.Interrupt `json:"waiting,omitempty"`
	// Due is the earliest timer, Unix milliseconds, 0 for none.
	Due   int64         `json:"due,omitempty"`
	Usage engine.Usage  `json:"usage"`
	Error *engine.Error `json:"error,omitempty"`
}

// Run is the row of a run in listings.
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
	// Commits and Events are the sizes of the journal.
	Commits int64 `json:"commits"`
	Events  int64 `json:"events"`
	// Owner is the holder of the lease, "" for none.
	Owner string    `json:"owner,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Expired says that the lease of the owner has expired, by the store's clock.
	Expired bool `json:"-"`
	// Fence is that of the newest lease; it grows once more when the run is released.
	Fence int64 `json:"fence,omitempty"`
	// Base is the past that the run shares with another, nil for none. Commits and Events include it.
	Base *Base `json:"base,omitempty"`
	// Session is the session of which the run is a round, Round its number.
	Session string `json:"session,omitempty"`
	Round   int    `json:"round,omitempty"`
	// Crashes is the number of consecutive processes that ended while they executed the run, without a commit
	// between.
	Crashes int `json:"crashes,omitempty"`
}

// Unfinished is a run that a process should be executing: nodes or child runs were active at its last commit, its
// timer is due, or messages wait in its inbox.
type Unfinished struct {
	// Number orders runs by their creation.
	Number int64
	Run    string
	Parent string
	// Session is the session of which the run is a round.
	Session string
	Status  engine.Status
	// Activity describes what a run of status Running does.
	Activity engine.Activity
	// Due is the earliest timer, Unix milliseconds, 0 for none.
	Due int64
	// Posts reports whether messages wait in its inbox.
	Posts bool
	// Owner is the holder of the lease, "" for none; Expired means that it has expired, by the store's clock.
	Owner   string
	Expired bool
	Crashes int
}

// Base means that a run's first Seq commits are those of another run; with Seq 0 it was forked from that run before
// its first complete commit.
type Base struct {
	Run string `json:"run"`
	Seq int64  `json:"seq"`
}

// NewRun is the argument of Create; the run's first commit is added by Append. With a Base, that commit follows the
// base's: reading the run returns the base's commits first, under the run's own id, and a context that the run does
// not create itself is the base's up to there. Nothing is copied.
type NewRun struct {
	ID, Flow, Fingerprint, User, Parent, Origin string
	At                                          time.Time
	Base                                        *Base
	// StateChanges, in a round, is Session.StateChanges as its starter has read it with the
	// session's state; nil if it has not.
	StateChanges *int64
}

// RunStart is a run that is made with its first commit.
type RunStart struct {
	NewRun
	// Message, for a round of a session, is the message that waits first there: the run
	// takes it and holds the session. "" is a run that is no round.
	Message string
	// SessionFence is Session.Fence as the caller read it. Where it is another by now, so
	// that the round would begin with an outdated state, the error is ErrBusy.
	SessionFence int64
}

// Filter selects runs, the newest first; zero fields select all.
type Filter struct {
	Flow, User, Parent string
	// Session selects the rounds of one session.
	Session string
	// Roots selects runs without a parent.
	Roots  bool
	Status []engine.Status
	// Before continues a listing: runs created before this run id.
	Before string
	Limit  int // 0 means 100
}

// Post is a message to a run from a process that does not own it: a cancellation, an answer, an outside event. The
// owner reads it from the inbox.
type Post struct {
	ID   int64
	Run  string
	Kind string // "cancel", "answer", "queued", "event", "steer"
	Name string // interrupt id, event name or node
	// Value is the content. That of a cancellation is its reason as text, or nil.
	Value engine.Value
	By    string
	At    time.Time
}

// Checkpoint is a snapshot of a run after a commit. It can be deleted without losing data.
type Checkpoint struct {
	Run  string
	Seq  int64  // of the last commit that it includes
	Body []byte // encoded by the runner
}
