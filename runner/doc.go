// Package runner executes flows on this machine. The machine holds one run: it passes events to the engine, evaluates
// inputs of nodes, runs their functions and collects the results into commits. Local drives machines with goroutines,
// timers and a store. Sim drives the same machine from a seed. It must not decide what follows from an event (the
// engine does), know how a store keeps a commit, or know any node type by name.
package runner
