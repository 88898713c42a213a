package builtin_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/weirtest"
)

// faultyExecutor is an executor of a program whose methods end by a fault.
type faultyExecutor struct {
	f  functionFault
	at string // the method
}

func (faultyExecutor) Name() string     { return "own" }
func (faultyExecutor) Language() string { return "python" }

func (e faultyExecutor) Probe(context.Context) error {
	if e.at != "Probe" {
		return nil
	}
	_, err := e.f.do()
	return err
}

func (e faultyExecutor) Check(context.Context, *sandbox.Job) ([]sandbox.Problem, error) {
	if e.at != "Check" {
		return nil, nil
	}
	_, err := e.f.do()
	return nil, err
}

func (e faultyExecutor) Run(_ context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	if e.at != "Run" {
		return &sandbox.Result{}, nil
	}
	v, err := e.f.do()
	if err != nil || v == nil {
		return nil, err // without an error this is a fault of its own
	}
	return &sandbox.Result{Set: map[string]any{"k": v}}, nil
}

// faultyHTTP is an HTTP client of a program.
type faultyHTTP struct{ f functionFault }

func (h faultyHTTP) Do(*http.Request) (*http.Response, error) {
	_, err := h.f.do()
	return nil, err
}

// hostFaultSites are the places where code of the program, beside functions of nodes, is called for a node.
func hostFaultSites() map[string]func(f functionFault) (flow string, c weirtest.Case) {
	executor := func(node, at string) func(f functionFault) (string, weirtest.Case) {
		return func(f functionFault) (string, weirtest.Case) {
			return node, weirtest.Case{Executors: []sandbox.Executor{faultyExecutor{f, at}}}
		}
	}
	const (
		action   = `{type: action, with: {code: "x"}}`
		decision = `{type: decision, with: {branches: [a, b], code: "x"}}`
	)
	return map[string]func(f functionFault) (string, weirtest.Case){
		"an executor's Run, of an action":  executor(action, "Run"),
		"an executor's Run, of a decision": executor(decision, "Run"),
		"an HTTP client": func(f functionFault) (string, weirtest.Case) {
			return `{type: httpRequest, with: {url: "https://example.com/"}}`, weirtest.Case{HTTP: faultyHTTP{f}}
		},
	}
}

// A fault in what a program has given to Weir fails the node that uses it, and nothing else.
func TestFaultyHostFailsTheNodeThatUsesIt(t *testing.T) {
	t.Parallel()
	for place, site := range hostFaultSites() {
		for _, f := range functionFaults() {
			t.Run(place+": "+f.name, func(t *testing.T) {
				node, c := site(f)
				r := weirtest.Flow(t, "weir: 1\nname: f\nnodes:\n  n: "+node+"\n", c)
				if f.harmless && f.name != "nothing" && place == "an executor's Run, of an action" {
					if r.Status != engine.Completed {
						t.Errorf("the run %s: %v", r.Status, r.Error)
					}
					return
				}
				if r.Status != engine.Failed || r.Error.Node != "n" || r.Error.Message == "" {
					t.Errorf("the run %s: %+v", r.Status, r.Error)
				}
			})
		}
	}
}
