// Package codegen runs the code of nodes, and lets models write it: one execution of
// the code in a flow, or the six agents that turn a prompt into code that passed their
// checks.
//
// It must not know the catalogue or how runs are executed: everything goes through
// node.Ctx. Model calls and executions are effects, and each agent's work is a
// recorded step, so re-entry repeats no call and a replay runs nothing.
package codegen
