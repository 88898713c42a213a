// Package weir runs LLM workflows written as graphs, and keeps the record of
// what each model call saw, who changed it, what it cost and what happened.
//
// A flow is a file (or a Definition in Go) of nodes and edges; a node is one
// step of a node type. Open a Weir with a store, node types, tools and model
// providers of your choice; Start runs a flow, and Run follows it:
//
//	w, err := weir.Open(weir.Options{Types: []weir.Type{weir.Func("shout", shout)}})
//	f, err := w.Load("hello.yaml")
//	run, err := w.Start(ctx, f, weir.Start{Inputs: map[string]any{"name": "Ada"}})
//	result, err := run.Wait(ctx)
//
// This package is the face of the library. It must not link a vendor's SDK or a
// database: providers and stores are handed in by Options.
package weir
