// Package runner runs flows on this machine. The machine holds one run: it
// feeds the engine, evaluates what nodes are given, runs their functions and
// gathers what they did into commits. Local drives machines with goroutines,
// timers and a store; Sim drives the same machine from one seed.
//
// It must not decide what follows from an event (engine does), know how a
// store keeps a commit, or know any node type by name.
package runner
