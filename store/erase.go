package store

import "time"

// DeleteOptions describe a permanent deletion. Records that share their past with the deleted one, the forks of its
// runs and sessions, are deleted too, and so are cache entries, which do not name a session. Learned code is kept if
// it belongs to another user and was not learned in a deleted run.
type DeleteOptions struct {
	// Now decides which leases have expired; zero means the store's clock. A run with a lease is owned by a live
	// process, and nothing is deleted then (ErrOwned), unless Force is set: the process detects the deletion with its
	// next commit.
	Now   time.Time
	Force bool
	// DryRun deletes nothing and returns what would be deleted.
	DryRun bool
	// DeferCompaction leaves out the compaction that follows a deletion, whose cost depends
	// on the size of the whole database: parts of what was deleted may remain in unused
	// space of its files until the next deletion without this option, or until Compact.
	DeferCompaction bool
}

// Tree identifies what is only deleted as a whole, by one of two ids: a session with its rounds, or a run with its
// children.
type Tree struct{ Session, Run string }

// PruneOptions select the sessions to delete: those that have expired at Now, and those that one of the other fields
// selects. A session is kept if a live process executes it, or if a record that is kept shares its past.
type PruneOptions struct {
	// A zero Now means the store's clock.
	Now time.Time
	// User and Flow restrict it to the sessions of one user and one flow.
	User, Flow string
	// OlderThan selects sessions without messages for longer than that; 0 selects none. It selects none whose round waits for an
	// answer or a timer.
	OlderThan time.Duration
	// Keep selects all sessions but the newest Keep of each user and flow, by the time of their last message; 0
	// selects none. It selects none whose round waits for an answer or a timer.
	Keep int
	// DryRun deletes nothing and returns what would be deleted.
	DryRun bool
	// DeferCompaction is as in DeleteOptions.
	DeferCompaction bool
}

// DeleteResult describes what a deletion removed.
type DeleteResult struct {
	Sessions, Runs, Messages int
	// RootRuns are the ids of those runs that no other run has started: single runs, forks and rounds of sessions.
	RootRuns []string
	// Memories are items of long-term memory: the user's, and those of sessions without a user.
	Memories int
	// UserValues are values of state keys with the scope user, which go only with the user.
	UserValues int
	// Trajectories is the number of deleted rounds of trajectories.
	Trajectories int
	// Learned is the number of deleted programs: those learned for the user, and those learned in deleted runs.
	Learned int
	// Traces reports that parts of what was deleted may remain in unused space of the
	// database's files until Compact, because compaction was deferred.
	Traces bool
	// Remains says where parts of what was deleted remain that the store cannot reach, such as
	// the log of a server; "" if nowhere.
	Remains string
	// Copies are backup files of upgrades beside the database. They may contain the deleted data and were not
	// changed.
	Copies []string
	// Forks were deleted because they share the past of the requested records; Prune deletes none.
	Forks []Tree
	// Kept are sessions that Prune kept although its options select them.
	Kept []KeptSession
}

// KeptSession is a session that Prune kept, because a kept record shares its past, or because a live process executes
// it or a fork of it.
type KeptSession struct {
	Session string
	Forks   []Tree
	Busy    bool
}
