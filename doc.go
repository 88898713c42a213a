// Package weir runs LLM workflows that are written as graphs. It selects the messages
// that each model call sees, and journals every call, its cost and its result.
//
// A flow is a file, or a [Definition] in Go, of nodes and edges. A node is one step;
// its node type defines what it does. Open a [Weir] with a store, node types, tools
// and model providers. Start runs a flow, and the returned [Run] follows it:
//
//	w, err := weir.Open(weir.Options{Types: []weir.Type{weir.Func("shout", shout)}})
//	f, err := w.Load("hello.yaml")
//	run, err := w.Start(ctx, f, weir.Start{Inputs: map[string]any{"name": "Ada"}})
//	result, err := run.Wait(ctx)
//
// The examples below show flows, sessions, streaming, tools, questions, providers, budgets,
// replay and forks. Examples of a store, a server and tests are in packages store, server
// and weirtest.
//
// This package is the public API of the library. It must not link a vendor's SDK or a
// database: Options takes providers and stores.
package weir
