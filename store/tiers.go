package store

import (
	"context"
	"iter"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/memory"
)

// Store is what every store implements: the journal tier. Everything else is declared by
// Capabilities. A Store is safe for concurrent use.
//
// Errors wrap the sentinel errors of this package. Every method fails with ErrClosed after
// Close, and with the error of its context once that has ended.
type Store interface {
	Journal
	Leases
	Inbox
	Flows
	Listings
	// Capabilities returns what the store offers besides the journal tier. It returns the
	// same value during the life of the store.
	Capabilities() Capabilities
	// Close releases what the store holds. Acknowledged commits are durable without it.
	Close() error
}

// Journal keeps runs, their commits and the messages of their contexts.
type Journal interface {
	// Create makes a run without commits of its own. With a Base the run begins with
	// commits of another run: nothing is copied, and the call takes the same time for a
	// long base. ErrExists if the id is taken, ErrNotFound if there is no such base.
	Create(ctx context.Context, n NewRun) error
	// Append makes commits durable, each as a whole or not at all, and returns one error
	// for each. A refused commit does not affect the others, and makes no run. With
	// Append.Start: ErrExists if the run exists or a round has taken the message,
	// ErrNotFound if there is no such base or message, ErrBusy if the session has a round
	// that has not ended, another message waits first or the session has changed,
	// ErrRoundBase for a round with a base. Without it: ErrFenced if the fence is not
	// that of the run, or if Append.Acquire meets a run that has an owner; ErrSequence if
	// the commit does not follow the last one; ErrNotFound if there is no such run. For a
	// round of a session: ErrSessionAdvanced if the run does not hold the session,
	// ErrNotQueued if a consumed message does not wait. A commit with nil is durable when
	// Append returns. The events must not change while Append runs.
	Append(ctx context.Context, as []Append) []error
	// Commits yields the commits of a run with a number above afterSeq, in order, those of
	// its base first, exactly as they were appended. Commits that are appended meanwhile may
	// be missing. ErrNotFound, ErrCorrupt; the iteration ends with the first error.
	Commits(ctx context.Context, run string, afterSeq int64) iter.Seq2[engine.Commit, error]
	// Run returns the row of a run. ErrNotFound.
	Run(ctx context.Context, id string) (Run, error)
	// Messages returns the messages of a context from position from to position to, which
	// is excluded. A context that continues another one begins at the position of the
	// fork; positions before that belong to the other. It reads no journal from its start.
	Messages(ctx context.Context, run, conversation string, from, to int) ([]convo.Message, error)
	// FindMessage returns the highest position below n at which the context has a message
	// with this id, or -1.
	FindMessage(ctx context.Context, run, conversation, message string, n int) (int, error)
}

// Leases records which process executes a run. The store owns the clock: callers pass how
// long a lease lasts, and the store decides when it has expired.
type Leases interface {
	// Acquire gives a run to owner for ttl. The fence grows unless owner has the run
	// already. ErrOwned while another owner has a lease that has not expired; ErrNotFound.
	// If the run was executing under an owner whose lease expired, the run's count of
	// crashes grows by one in the same transaction.
	Acquire(ctx context.Context, run, owner string, ttl time.Duration) (Lease, error)
	// Seize is Acquire from the owner from, whose process is known to be dead: its lease
	// need not have expired. ErrOwned if the run has another owner by now.
	Seize(ctx context.Context, run, from, owner string, ttl time.Duration) (Lease, error)
	// Renew extends leases to ttl from now and returns the ids of the runs whose lease is
	// lost.
	Renew(ctx context.Context, ls []Lease, ttl time.Duration) (lost []string, err error)
	// Release ends a lease and raises the fence, so that a commit under the lease that is
	// still on its way is refused. It does nothing for a lease that is lost.
	Release(ctx context.Context, l Lease) error
}

// Inbox passes messages to runs that other processes own.
type Inbox interface {
	// Post adds a message to the inbox of a run and gives it an ID. ErrNotFound.
	Post(ctx context.Context, p Post) error
	// Inbox returns the messages to a run, oldest first, and removes none.
	Inbox(ctx context.Context, run string) ([]Post, error)
	// PostsForOwner returns the messages to all runs of an owner, oldest first, and removes
	// none. Before them come posts of kind PostLiveText, if the store has LiveTextStore.
	PostsForOwner(ctx context.Context, owner string) ([]Post, error)
	// RemovePosts removes messages. An id that is not there is no error.
	RemovePosts(ctx context.Context, ids []int64) error
}

// Flows keeps documents by digest, each once: flow definitions and descriptions of node
// types.
type Flows interface {
	// PutFlow keeps a document. Keeping it again changes nothing.
	PutFlow(ctx context.Context, fingerprint string, normal []byte) error
	// Flow returns a document. ErrNotFound.
	Flow(ctx context.Context, fingerprint string) ([]byte, error)
}

// Listings finds runs without reading journals.
type Listings interface {
	// Runs returns the runs that the filter selects, newest first. ErrNotFound if
	// Filter.Before names no run.
	Runs(ctx context.Context, f Filter) ([]Run, error)
	// FindRunIDs returns at most 100 ids that begin with prefix, sorted.
	FindRunIDs(ctx context.Context, prefix string) ([]string, error)
}

// CheckpointStore keeps snapshots of runs. They may be lost at any time.
type CheckpointStore interface {
	// SaveCheckpoint keeps a snapshot in place of the run's earlier one.
	SaveCheckpoint(ctx context.Context, c Checkpoint) error
	// Checkpoint returns the snapshot of a run. ErrNotFound.
	Checkpoint(ctx context.Context, run string) (Checkpoint, error)
}

// RecoveryStore finds what no process continues.
type RecoveryStore interface {
	// NextDue returns in how long the next timer is due among the runs that have no owner or
	// an expired lease, by the store's clock. Timers that are due already do not count.
	// False if there is no such timer.
	NextDue(ctx context.Context) (time.Duration, bool, error)
	// Unfinished returns at most limit runs that a process should be executing and that
	// except does not own, with a number above after, in the order of their numbers.
	Unfinished(ctx context.Context, except string, after int64, limit int) ([]Unfinished, error)
}

// SessionStore keeps conversations over many runs.
type SessionStore interface {
	// CreateSession makes a session and, unless it has a parent, makes it the active one of
	// its user and flow. With a parent nothing is copied. ErrExists if the id, the thread
	// of that user and flow, or the id of the first message is taken; ErrNotFound if there
	// is no such parent or it has fewer messages than ParentLength.
	CreateSession(ctx context.Context, n NewSession) error
	// Session returns a session. ErrNotFound.
	Session(ctx context.Context, id string) (Session, error)
	// FindSession returns the session of a thread or, without a thread, the active one of
	// the user and flow. ErrNotFound.
	FindSession(ctx context.Context, user, flow, thread string) (Session, error)
	// Sessions returns the sessions that the filter selects, newest first.
	Sessions(ctx context.Context, f SessionFilter) ([]Session, error)
	// SessionMessages returns the messages of the history from position from to position
	// to, which is excluded. The cost depends on their number, not on the history's length.
	SessionMessages(ctx context.Context, id string, from, to int) ([]SessionMessage, error)
	// SessionHistory returns the same messages without the rounds that added them.
	SessionHistory(ctx context.Context, id string, from, to int) ([]convo.Message, error)
	// ActivateSession makes a session the active one of its user and flow. ErrNotFound.
	ActivateSession(ctx context.Context, id string) error
	// SessionState returns the values that the session keeps between rounds, sorted by key.
	// A commit with a RunCompleted of a round changes them in its transaction. A session
	// with a parent has those that the parent had at the last end of a round that is not
	// behind ParentLength, and keeps its own from then on. ErrNotFound.
	SessionState(ctx context.Context, id string) ([]StateValue, error)
	// SetSessionState changes the values by hand, all or none. ErrNotFound; ErrBusy if the
	// session has a round that has not ended. A failed round that is continued after it is
	// refused with ErrSessionAdvanced.
	SetSessionState(ctx context.Context, e StateEdit) error
	// ExpireSession sets when PruneSessions may delete a session; zero is never.
	ExpireSession(ctx context.Context, id string, at time.Time) error
	// PendingSessions returns at most limit ids above after, sorted, of sessions in which a
	// message waits.
	PendingSessions(ctx context.Context, after string, limit int) ([]string, error)

	// Enqueue keeps a message until a round takes it. A message with a known ID is not kept
	// again: the first one is returned, with TakenBy. ErrNotFound if there is no such
	// session, ErrExists if the ID belongs to another session, ErrBusy if OnlyIfIdle is set
	// and the session is not idle.
	Enqueue(ctx context.Context, q QueuedMessage) (QueuedMessage, error)
	// Queue returns the messages that wait, in order.
	Queue(ctx context.Context, session string) ([]QueuedMessage, error)
	// NextQueued returns the first message that waits. ErrNotFound.
	NextQueued(ctx context.Context, session string) (QueuedMessage, error)
	// FindQueued returns a message that waits or was taken. ErrNotFound.
	FindQueued(ctx context.Context, id string) (QueuedMessage, error)
	// NotQueued returns those of the ids whose messages do not wait.
	NotQueued(ctx context.Context, ids []string) ([]string, error)
	// RemoveQueued deletes a message that waits. ErrNotFound.
	RemoveQueued(ctx context.Context, id string) error
	// RefuseQueued deletes a message that waits if holder still holds the session and has
	// this number of commits. ErrSessionAdvanced if not, ErrNotQueued if it does not wait.
	RefuseQueued(ctx context.Context, id, holder string, commits int64) error

	// RoundMessage returns the message that started a round, without its value, which the
	// journal has. ErrNotFound if the run is no round.
	RoundMessage(ctx context.Context, run string) (QueuedMessage, error)
}

// CacheStore keeps values across runs, and the code that models wrote (keys that begin
// with LearnedCodePrefix).
type CacheStore interface {
	// CacheGet returns the value of a key that has not expired.
	CacheGet(ctx context.Context, key string, now time.Time) (engine.Value, bool, error)
	// CachePut sets the value of a key until expires; zero is forever.
	CachePut(ctx context.Context, key string, v engine.Value, expires time.Time) error
	// CacheUpdate calls change with the value of a key, and sets, without expiry, what it
	// returns with true. Nothing else changes the key meanwhile.
	CacheUpdate(ctx context.Context, key string, now time.Time, change func(engine.Value, bool) (engine.Value, bool)) error
	// CacheList returns the entries whose keys begin with prefix, sorted by key.
	CacheList(ctx context.Context, prefix string, now time.Time) ([]CacheEntry, error)
	// CacheDelete deletes entries and returns how many there were.
	CacheDelete(ctx context.Context, keys []string) (int, error)
	// CacheDeleteExpired deletes expired entries and returns how many there were.
	CacheDeleteExpired(ctx context.Context, now time.Time) (int64, error)
}

// DeletionStore deletes permanently. What shares its past with the deleted record is
// deleted too.
type DeletionStore interface {
	// DeleteSession deletes a session with its rounds. ErrNotFound; ErrOwned while a
	// process executes any of it.
	DeleteSession(ctx context.Context, id string, o DeleteOptions) (DeleteResult, error)
	// DeleteRun deletes a run with its children. ErrNotRoot for a round or a child;
	// ErrNotFound and ErrOwned as above.
	DeleteRun(ctx context.Context, id string, o DeleteOptions) (DeleteResult, error)
	// DeleteUser deletes the sessions, runs, trajectories and memory of a user. A user who
	// has none is no error. ErrOwned as above.
	DeleteUser(ctx context.Context, user string, o DeleteOptions) (DeleteResult, error)
	// PruneSessions deletes the sessions that the options select.
	PruneSessions(ctx context.Context, p PruneOptions) (DeleteResult, error)
	// Compact removes the parts of deleted data that deletions with DeferCompaction have
	// left in the store's files, and reports whether there were any. Its cost depends on
	// the size of the whole database.
	Compact(ctx context.Context) (bool, error)
}

// ChainStore chains the commits of each run by digest, so that later changes are found.
type ChainStore interface {
	// Chain returns the chain of a run. ErrNotFound.
	Chain(ctx context.Context, run string) (Chain, error)
	// Chains returns the chains of all runs, erased ones included, in the order in which
	// the runs were created.
	Chains(ctx context.Context) ([]Chain, error)
	// Links yields the links of a chain in order. A link that cannot be read has Err set,
	// and the iteration continues.
	Links(ctx context.Context, c Chain) iter.Seq2[ChainLink, error]
}

// ArchiveStore exports and imports runs. It needs ChainStore.
type ArchiveStore interface {
	// Archive returns the rows that an export of a run holds, in the order of creation: its
	// tree, the runs whose past they share, and, for a round, the rounds before it.
	// ErrNotFound.
	Archive(ctx context.Context, run string) ([]ArchivedRun, []ArchivedSession, error)
	// ArchiveSession returns a session, whose rounds must be restored before it, and those that it was forked from, directly
	// or not, as they were without rounds. ErrNotFound.
	ArchiveSession(ctx context.Context, session string) ([]ArchivedSession, error)
	// Restore creates sessions and runs of an export, all or none. It leaves sessions that exist as they are, apart from
	// restored rounds and changes of their state that they lack. ErrExists if a run
	// exists, ErrSessionAdvanced if a session has other rounds than those before the
	// restored one.
	Restore(ctx context.Context, sessions []ArchivedSession, runs []RunToRestore) error
	// RestoreErased keeps chains of runs that were erased in another store, all or none, and
	// returns how many it had not kept before. ErrUnchained for one with a commit from before
	// chains existed, or one that could not be read, where the store cannot keep these.
	RestoreErased(ctx context.Context, chains []ErasedChain) (int, error)
}

// AuditStore compares what it stores outside the chains with the journals. It needs
// ChainStore.
type AuditStore interface {
	// Audit compares the row, the contexts and the messages of a run with its journal.
	Audit(ctx context.Context, c Chain, f *JournalFacts) ([]Finding, error)
	// AuditAll finds what belongs to no run.
	AuditAll(ctx context.Context) ([]Finding, error)
	// Fingerprints returns the digests of all documents that Flows keeps.
	Fingerprints(ctx context.Context) ([]string, error)
}

// RowStore checks the rows of runs and the schema that they are stored in. It needs
// ChainStore.
type RowStore interface {
	// RowHash identifies what the rows of a run and its session say besides the journal;
	// see the function RowHash. It is zero for an erased run.
	RowHash(ctx context.Context, c Chain) (Hash, error)
	// AuditSchema compares the schema of the database with the expected one and checks the
	// types of the columns: of all rows or of a few. A store without a schema returns nil.
	AuditSchema(ctx context.Context, all bool) ([]Finding, error)
}

// MemoryStore keeps long-term memory and lets an operator inspect it.
type MemoryStore interface {
	memory.Store
	// Memories returns items of all scopes, those written last first, and those of one
	// millisecond in the reverse order of their first writes.
	Memories(ctx context.Context, f memory.Filter) ([]memory.Item, error)
	// MemoryOwners returns the scopes that the filter selects, with the number of their
	// items, sorted; the filter's Limit and Behind are ignored.
	MemoryOwners(ctx context.Context, f memory.Filter) ([]memory.Owner, error)
	// MemoryVersions returns the versions of an item, oldest first. ErrNotFound.
	MemoryVersions(ctx context.Context, id string) ([]memory.Version, error)
	// ForgetMemories deletes the items that the filter selects, with all versions; the
	// filter's Limit and Behind are ignored.
	ForgetMemories(ctx context.Context, f memory.Filter) (DeleteResult, error)
}

// AccessStore keeps what a server knows of its clients: their tokens, and which requests
// they have sent.
type AccessStore interface {
	// PutToken keeps a token. ErrExists if its id or digest is taken.
	PutToken(ctx context.Context, t Token) error
	// TokenByHash returns the token with a digest, also one that is no longer valid.
	// ErrNotFound.
	TokenByHash(ctx context.Context, hash []byte) (Token, error)
	// Tokens returns the tokens of a user, all if user is "", oldest first.
	Tokens(ctx context.Context, user string) ([]Token, error)
	// RevokeToken makes a token invalid from at on. Revoking it again changes nothing.
	// ErrNotFound.
	RevokeToken(ctx context.Context, id string, at time.Time) error
	// AccessKey returns the secret with a name. The first call keeps fresh as that secret, in
	// one step: all processes on the store get the same one.
	AccessKey(ctx context.Context, name string, fresh []byte) ([]byte, error)
	// AccessKeys returns all secrets of AccessKey, by name.
	AccessKeys(ctx context.Context) (map[string][]byte, error)
	// BeginRequest keeps a request until ttl from now, and returns it. If a request with that
	// key is kept already and has not expired, it returns that one, with Repeated, and changes nothing.
	// Expired requests of all users are deleted.
	BeginRequest(ctx context.Context, r ClientRequest, ttl time.Duration) (ClientRequest, error)
	// FinishRequest records what a request made. A key that is not there is no error.
	FinishRequest(ctx context.Context, key []byte, result string) error
}
