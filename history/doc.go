// Package history says what happened in runs, read from their journals: what became of
// each node (Timeline), the tree of child runs (ChildTree), the chain of work, the
// differences between two runs, what each model call was sent, and the trajectories of
// agents. Commands, servers and pages show the same history because they read it here.
//
// It must not know how history is printed. It changes no journal; of trajectories it
// stores copies that can be derived from the journal again.
package history
