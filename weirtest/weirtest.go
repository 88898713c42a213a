// Package weirtest runs one node or one flow in a Go test. It uses the library itself
// with a store in memory. The model is scripted, answers of people are given in
// advance, and the test provides the tools.
//
// It must not know how runs are executed: it starts them and reads their journals
// through the public API.
package weirtest

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/sandbox"
)

// Case describes how to run a node or flow. The zero value sets nothing.
type Case struct {
	// With has the settings of the node; not for flows.
	With map[string]any
	// In has the node's inputs by port, or the flow's inputs by name. A port with many edges gets one value.
	In map[string]any
	// State is the initial state.
	State map[string]any
	// System and Messages are the initial content of a node's main context; a flow has its own.
	System   string
	Messages []convo.Message
	// Answers are the answers to questions and outside events by the path of the waiting node ("ask", "talk#2/ask")
	// or by the interrupt's id. A run that waits for something else stays paused.
	Answers map[string]any
	// Script has the model's answers in the order of its calls, for every model name. A call after the last answer
	// fails.
	Script []Turn
	// Model answers instead of the script.
	Model weir.Provider
	// Types are node types in addition to the built-in ones and the one under test.
	Types []weir.Type
	Tools []*weir.Tool
	// Executors run the code of action and decision nodes.
	Executors []sandbox.Executor
	// Secrets resolves secrets.NAME; HTTP performs requests. Without HTTP private addresses are refused, as always.
	Secrets map[string]string
	HTTP    node.HTTPDoer
	User    string
	// Files are the files that the flow uses, by path relative to its folder.
	Files map[string]string
	// Timeout limits the run; 0 means 20 seconds. Exceeding it fails the test.
	Timeout time.Duration
}

// Result is the outcome of a run.
type Result struct {
	// Status is Completed, Failed, Cancelled, or Paused if an interrupt in Waiting was not answered.
	Status  weir.Status
	Waiting []engine.Interrupt
	// Outputs are the outputs of the node by port, or of the flow by name.
	Outputs map[string]any
	// State is the final state.
	State map[string]any
	// Messages are those of the newest epoch of the main context.
	Messages []convo.Message
	// Contexts are all conversation contexts by id.
	Contexts map[string]convo.Context
	// Effects are the effects of the run, in the order of the journal.
	Effects []Effect
	// Requests are the requests to the model, in order.
	Requests []*llm.Request
	// Error is the failure of the run or node; nil if there is none.
	Error *weir.Error
	Usage engine.Usage
	// Events is the whole journal.
	Events []engine.Event
}

// Effect is one recorded effect.
type Effect struct {
	Key    string // "node/tool#1"
	Result any
	Error  *weir.Error
}

// Output returns an output as a T; the test fails if it is missing or has another type.
func Output[T any](tb testing.TB, r Result, name string) T {
	tb.Helper()
	var out T
	v, ok := r.Outputs[name]
	if !ok {
		tb.Fatalf("there is no output %q: the run is %s with %v, %v", name, r.Status, r.Outputs, r.Error)
	}
	if direct, ok := v.(T); ok {
		return direct
	}
	b, err := engine.AppendValue(nil, v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		tb.Fatalf("output %s: %v", name, err)
	}
	return out
}

// The id of the node under test, and of the node that fills its context.
const (
	nodeID     = "node"
	seedNodeID = "before"
)

// Node runs one node of a type, built-in or not, as the node "node" of a flow of its own.
func Node(tb testing.TB, typ weir.Type, c Case) Result {
	tb.Helper()
	spec := typ.Spec()
	switch known := builtin.Catalogue().Lookup(spec.Name); {
	case known == nil:
		c.Types = append([]weir.Type{typ}, c.Types...)
	case reflect.TypeOf(builtin.Catalogue().Type(spec.Name)) != reflect.TypeOf(typ):
		tb.Fatalf("the name %s is that of a built-in node type", spec.Name)
	}
	d := weir.Definition{
		Name: spec.Name, Context: map[string]any{"model": "script/test", "system": c.System},
		Inputs: map[string]any{}, Nodes: map[string]weir.NodeSpec{},
	}
	n := weir.NodeSpec{Type: spec.Name, With: c.With, In: map[string]any{}}
	for port := range c.In {
		d.Inputs[port] = map[string]any{"type": "any"}
		n.In[port] = "{{ " + expr.Join("run", "inputs", port) + " }}"
	}
	d.Nodes[nodeID] = n
	if len(c.Messages) > 0 {
		c.Types = append(c.Types, seedHistory(c.Messages))
		d.Nodes[seedNodeID] = weir.NodeSpec{Type: seedNodeID}
		n.After = []string{seedNodeID}
		d.Nodes[nodeID] = n
	}
	p := newCaseRunner(tb, c)
	defer p.close()
	f, err := p.w.Define(d)
	if err != nil {
		tb.Fatal(err)
	}
	return p.run(f, true)
}

// Flow runs a flow from the text of a flow file.
func Flow(tb testing.TB, text string, c Case) Result {
	tb.Helper()
	p := newCaseRunner(tb, c)
	defer p.close()
	f, err := p.w.ParseIn(flow.MemFiles(c.Files), "flow.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return p.run(f, false)
}

// File runs a flow file, including the files that it uses.
func File(tb testing.TB, path string, c Case) Result {
	tb.Helper()
	p := newCaseRunner(tb, c)
	defer p.close()
	f, err := p.w.Load(path)
	if err != nil {
		tb.Fatal(err)
	}
	return p.run(f, false)
}
