// Package codegen runs the code of nodes and has models write it: one execution
// of code that stands in a flow, or the six agents that come from a prompt to
// code that did what was asked.
//
// It must not know the catalogue, nor how runs are driven: everything is done
// through node.Ctx, model calls and executions as effects and each agent's work
// as a recorded step, so that an attempt which is entered again asks nobody
// twice and a replay runs nothing.
package codegen
