package otel_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/otel"
	"github.com/weir-run/weir/store/memory"
)

// TestEachAttemptHasItsOwnChildRun has a node start a second child after the first has failed.
func TestEachAttemptHasItsOwnChildRun(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w, end := process(t, weir.Options{Store: weirkit.SharedMemory{Store: memory.New()}, Traces: &otel.Config{Endpoint: r.url}})
	inner := weirkit.Parse(t, w, "weir: 1\nname: inner\nnodes: {no: {type: fail, with: {message: no}}}\n")
	f, err := w.Parse("outer", []byte("weir: 1\nname: outer\nnodes: {down: {type: flow, with: {flow: inner}, retry: {attempts: 2, backoff: 1ms, on: [failed]}}}\n"), inner)
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if result := weirkit.Wait(t, run); result.Status != engine.Failed {
		t.Fatal(result)
	}
	end()
	spans := r.received(t)
	checkTrace(t, spans)
	attempts := make(map[string]string)
	for _, s := range spans {
		if s.Name == "node down" {
			attempts[s.SpanID] = s.attr("weir.node.attempt")
		}
	}
	var above []string
	for _, s := range spans {
		if s.Name == "invoke_workflow inner" {
			above = append(above, attempts[s.ParentSpanID])
			if s.Status.Code != 2 || s.attr("error.type") != engine.CodeFailed {
				t.Errorf("the failure of the child: %+v", s.Status)
			}
		}
	}
	if len(above) != 2 || !strings.Contains("1,2 2,1", strings.Join(above, ",")) {
		t.Errorf("the child runs are below the attempts %v", above)
	}
}

// TestAForkIsATraceOfItsOwn forks a run that has ended.
func TestAForkIsATraceOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w, end := process(t, weir.Options{
		Store: weirkit.SharedMemory{Store: memory.New()}, Providers: map[string]weir.Provider{"p": &weirkit.EchoModel{}}, Traces: &otel.Config{Endpoint: r.url},
	})
	run, err := w.Start(t.Context(), weirkit.LoadForkFlow(t, w, "chain"), weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.Wait(t, run)
	fork, _, err := w.Fork(t.Context(), run.ID, weir.ForkOptions{From: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if result := weirkit.Wait(t, fork); result.Status != engine.Completed {
		t.Fatal(result)
	}
	end()
	traces := make(map[string][]span)
	for _, s := range r.received(t) {
		traces[s.TraceID] = append(traces[s.TraceID], s)
	}
	for _, spans := range traces {
		checkTrace(t, spans)
	}
	first, second := traces[otel.TraceOf(run.ID).String()], traces[otel.TraceOf(fork.ID).String()]
	if len(traces) != 2 || len(first) != 7 || len(second) != 3 { // the run, the node b and its call
		t.Errorf("%d traces, of %d and %d spans", len(traces), len(first), len(second))
	}
	if root := second[len(second)-1]; len(root.Links) != 1 || root.Links[0].TraceID != otel.TraceOf(run.ID).String() {
		t.Errorf("the links of the fork: %+v", root.Links)
	}
}
