// Package follow fills trajectories from what runs do. A [Follower] reads the
// commits of one run as they become durable, or all of them later, and writes the
// same into its recorders either way: a trajectory follows from the journal.
//
// It must not know runners, stores or models.
package follow
