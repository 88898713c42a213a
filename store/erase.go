package store

import "time"

// DeleteOptions is how something is deleted for good. What shares a past with it, the
// forks of its runs and sessions, goes with it, and so does what the cache holds,
// since that does not name its user and session. Learned code stays where it is of another user
// and was not learned in what is deleted.
type DeleteOptions struct {
	// Now says which leases have not expired; zero is the present time of the store. A run that is under one is owned by a
	// live process, and nothing is deleted then (ErrOwned), unless Force is set: the
	// process finds its run gone with its next commit.
	Now   time.Time
	Force bool
	// DryRun deletes nothing and says what would be.
	DryRun bool
}

// Tree is what is only deleted as a whole, by the id of one of the two: a session
// with its rounds, or a run with its children.
type Tree struct{ Session, Run string }

// PruneOptions says which sessions to delete: those that have expired at Now, and those
// that one of the other fields takes. One that a live process works on, or that
// something shares a past with which is not to be deleted, stays.
type PruneOptions struct {
	// A zero Now is the present time of the store.
	Now time.Time
	// User and Flow narrow it down to the sessions of one user and one flow.
	User, Flow string
	// OlderThan takes sessions that nothing was said in for longer; 0 is none.
	OlderThan time.Duration
	// Keep takes all but the newest Keep of each user and flow, by when something
	// was said in them last; 0 is none.
	Keep int
	// DryRun deletes nothing and says what would be.
	DryRun bool
}

// DeleteResult says what a deletion took away.
type DeleteResult struct {
	Sessions, Runs, Messages int
	// Memories are items of long-term memory: the user's, and those of sessions
	// with nobody in particular.
	Memories int
	// Trajectories are rounds of agents whose trajectories went with them.
	Trajectories int
	// Learned are programs that models wrote: those learned for the user, and those
	// learned in what was deleted.
	Learned int
	// Copies are files that were left beside the database by an upgrade of it:
	// what was deleted may be in them, and they are not touched.
	Copies []string
	// Forks went with what was asked for, since they share its past; Prune takes
	// none.
	Forks []Tree
	// Kept are what Prune has left though its fields take it.
	Kept []KeptSession
}

// KeptSession is a session that Prune left: something that stays shares a past with it,
// or a live process works on it or on a fork of it.
type KeptSession struct {
	Session string
	Forks   []Tree
	Busy    bool
}
