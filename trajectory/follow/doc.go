// Package follow records the trajectories of runs. A [Follower] reads the commits of one run, live or later, and
// records the same graph in both cases. It must not know runners, stores or models.
package follow
