// Package codegen runs the code of nodes and has models generate it: either one execution
// of the code in a flow, or six agents that turn a prompt into code that passed their
// checks.
//
// It must not know the catalogue or how runs are executed: everything goes through
// node.Ctx. Model calls and executions are effects, and each agent's work is a recorded
// step, so that re-entry repeats no call and a replay runs nothing.
package codegen
