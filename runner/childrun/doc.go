// Package childrun is the protocol between a run and the child runs that its nodes start.
// It is a pure state machine: a driver passes events to it and carries out the actions
// that it returns. Link is the child's side, Children the parent's side, and the functions
// of report.go decide what a parent does with a message from a child.
//
// The protocol has these rules:
//
//   - A child launches nothing before its parent is executed by the same process and has
//     its newest report. The parent then is attached to its own parent.
//   - The child reports to its parent when what it asks changes, when people increase
//     budgets of runs above it, and when its execution ends. Reports are cumulative.
//   - After a restart the parent joins every open child that may have more to report.
//   - A parent cancels a child only while it is not joining it. A cancellation is
//     acknowledged once it is durable in all open children.
//
// The package must not know stores, leases, goroutines, time or how a run is executed.
package childrun
