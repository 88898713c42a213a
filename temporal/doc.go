// Package temporal has the runs of Weir scheduled by a Temporal cluster. Each run is a workflow with the id of the run:
// Client, a runner.Scheduler, starts and updates it, and a Worker executes its activities. The journal in the store is the
// truth. The history of the workflow holds ids, numbers and codes and never a message, an input, an output or the text of
// an error.
//
// It must not decide what a run does (the engine does) and must not read or write a store except through package weir.
package temporal
