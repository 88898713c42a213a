package otel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/otel"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/starlark"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// process opens a Weir on a store that several use one after another, and returns how to
// close it, which sends what waits.
func process(t *testing.T, o weir.Options) (*weir.Weir, func()) {
	t.Helper()
	w, err := weir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	end := func() {
		if !closed {
			closed = true
			if err := w.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return w, end
}

// TestARunOfSeveralProcessesIsOneTrace has each question of a run answered in another
// process, for flows that use every kind of event.
func TestARunOfSeveralProcessesIsOneTrace(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(weirkit.ForkFlows())) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t)
			whole := runInProcesses(t, name, r)
			spans := r.received(t)
			checkTrace(t, spans)
			if r.header.Get("X-Key") != "k" {
				t.Errorf("headers %v", r.header)
			}
			sent := make(map[string]bool)
			for _, s := range spans {
				sent[s.SpanID] = true
			}
			for _, s := range whole {
				if !sent[s.ID.String()] {
					t.Errorf("span %s was not sent", s.Name)
				}
			}
			if len(whole) != len(spans) || len(spans) < 6 {
				t.Errorf("%d spans were sent, and the journals have %d", len(spans), len(whole))
			}
		})
	}
}

// runInProcesses runs a flow to its end, each answer in another process, and returns the spans
// of its journals.
func runInProcesses(t *testing.T, name string, r *receiver) []otel.Span {
	t.Helper()
	o := weir.Options{
		Store: weirkit.SharedMemory{Store: memory.New()}, Types: []weir.Type{weirkit.FailsOnceType()}, Parallel: 3,
		Providers: map[string]weir.Provider{"p": &weirkit.EchoModel{}}, Tools: []*weir.Tool{weirkit.NewLookTool(t)},
		Traces: &otel.Config{Endpoint: r.url, Headers: map[string]string{"X-Key": "k"}},
	}
	w, end := process(t, o)
	run, err := w.Start(t.Context(), weirkit.LoadForkFlow(t, w, name), weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	result := weirkit.Wait(t, run)
	for processes := 1; result.Status == engine.Paused && processes < 20; processes++ {
		end()
		for _, s := range r.received(t) {
			if s.Status.Code != 0 && s.Name != "node each/again" { // which fails in its first attempt
				t.Errorf("a pause is the error of span %s: %+v", s.Name, s.Status)
			}
		}
		w, end = process(t, o)
		i := result.Interrupts[0]
		var answer any
		if i.Kind != engine.AwaitBreak {
			answer = "short"
		}
		if run, err = w.Answer(t.Context(), run.ID, i.ID, answer, "ute"); err != nil {
			t.Fatal(err)
		}
		result = weirkit.Wait(t, run)
	}
	if result.Status != engine.Completed {
		t.Fatal(result)
	}
	whole, err := w.Trace(t.Context(), run.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	end()
	return whole
}

// secret is in everything that a person, a model or a tool says.
const secret = "canary-5f1d"

// talker calls the tool once, and then answers.
type talker struct{ tool string }

func (m talker) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	out := &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "said " + secret}, Model: "m-2", ID: "r1", Stop: llm.StopEnd, Usage: llm.Usage{Input: 11, Output: 7}}
	if last := r.Messages[len(r.Messages)-1]; last.Role != convo.Tool && len(r.Tools) > 0 {
		out.Message.Calls = []convo.Call{{ID: "c1", Name: m.tool, Arguments: fmt.Sprintf(`{"text": %q}`, secret)}}
		out.Stop = llm.StopCalls
	}
	return out, nil
}

const mixed = `
weir: 1
name: mixed
context: {model: p/m-1}
inputs: {text: {type: text}}
nodes:
  box: {type: tools, with: {tools: [helper]}}
  ask: {type: userInput, with: {prompt: "Who is canary-5f1d?"}}
  work: {type: llmRequest, in: {message: "{{ run.inputs.text }} {{ ask.text }}", tools: "{{ box.tools }}"}}
  code: {type: action, after: work, with: {language: starlark, code: "context['x'] = 1"}}
  bad: {type: failsOnce, after: work, retry: {attempts: 2, backoff: 1ms}}
outputs: {text: "{{ work.text }}"}
`

const helper = `
weir: 1
name: helper
description: Helps.
inputs: {text: {type: text}}
nodes: {up: {type: template, in: {t: "{{ run.inputs.text }}"}, with: {text: "up {{ inputs.t }}"}}}
outputs: {text: "{{ up.text }}"}
`

// runMixed runs the flow mixed in two processes and returns what was sent.
func runMixed(t *testing.T, contents bool) (*receiver, []span) {
	t.Helper()
	r := newReceiver(t)
	shared := weirkit.SharedMemory{Store: memory.New()}
	failsOnce := weir.Func("failsOnce", func(ctx weir.Ctx, _ struct{}) (struct{ Text string }, error) {
		if ctx.Info().Attempt == 1 {
			return struct{ Text string }{}, errors.New(secret)
		}
		return struct{ Text string }{secret}, nil
	})
	first := weirkit.Open(t, weir.Options{})
	tool := weir.FlowTool{Flow: weirkit.Parse(t, first, helper)}
	o := weir.Options{Store: shared, Types: []weir.Type{failsOnce}, Providers: map[string]weir.Provider{"p": talker{"helper"}}, Flows: []weir.FlowTool{tool}, Executors: []sandbox.Executor{starlark.New(self, starlark.Options{})}, Traces: &otel.Config{Endpoint: r.url, Contents: contents}}
	w, end := process(t, o)
	run, err := w.Start(t.Context(), weirkit.Parse(t, w, mixed), weir.Start{Inputs: map[string]any{"text": secret}, User: "ute"})
	if err != nil {
		t.Fatal(err)
	}
	result := weirkit.Wait(t, run)
	if result.Status != engine.Paused {
		t.Fatal(result)
	}
	end()
	w, end = process(t, o)
	if run, err = w.Answer(t.Context(), run.ID, result.Interrupts[0].ID, secret, "ute"); err != nil {
		t.Fatal(err)
	}
	result = weirkit.Wait(t, run)
	runs, err := w.Runs(t.Context(), store.Filter{})
	if err != nil || len(runs) != 2 {
		t.Error(len(runs), err)
	}
	end()
	return r, r.received(t)
}

func TestSpansFollowTheConventions(t *testing.T) {
	t.Parallel()
	_, spans := runMixed(t, false)
	checkTrace(t, spans)
	byName := make(map[string]*span)
	for i := range spans {
		s := &spans[i]
		name := s.Name + " " + s.attr("gen_ai.response.finish_reasons")
		if s.Status.Code != 0 {
			name = s.Name + " failed"
		}
		byName[name] = s
	}
	attributes := func(name string, want map[string]string) {
		t.Helper()
		s := byName[name+" "+want["gen_ai.response.finish_reasons"]]
		if s == nil {
			t.Errorf("no span %s among %v", name, slices.Sorted(maps.Keys(byName)))
			return
		}
		for key, v := range want {
			if got := s.attr(key); got != v {
				t.Errorf("%s: %s is %q, want %q", name, key, got, v)
			}
		}
	}
	attributes("chat m-1", map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "p", "gen_ai.request.model": "m-1", "gen_ai.response.model": "m-2", "gen_ai.response.id": "r1",
		"gen_ai.response.finish_reasons": "tool_call", "gen_ai.usage.input_tokens": "11", "gen_ai.usage.output_tokens": "7", "weir.effect.key": "work/model#1",
	})
	attributes("chat m-1", map[string]string{"gen_ai.response.finish_reasons": "stop", "weir.effect.key": "work/model#2"})
	attributes("execute_tool helper", map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "helper", "gen_ai.tool.call.id": "c1", "weir.effect.key": "work/tool#1"})
	attributes("execute_tool code", map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "code"})
	attributes("invoke_workflow helper", map[string]string{"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "helper"})
	attributes("node bad", map[string]string{"weir.node.attempt": "2", "weir.status": "completed", "error.type": ""})
	child, call := byName["invoke_workflow helper "], byName["execute_tool helper "]
	if child == nil || call == nil || child.ParentSpanID != call.ParentSpanID {
		t.Error("the run of the tool is not below the node that calls it")
	}
	if bad := byName["node bad failed"]; bad == nil || bad.Status.Code != 2 || bad.attr("weir.node.attempt") != "1" || bad.attr("error.type") == "" || bad.Status.Message != bad.attr("error.type") {
		t.Errorf("the failed attempt: %+v", bad)
	}
	ask := byName["node ask "]
	if ask == nil || ask.Status.Code != 0 || len(ask.Events) == 0 || ask.Events[0].Name != "waiting" {
		t.Errorf("the pause: %+v", ask)
	}
}

func TestContentsAreSentOnlyWhereConfigured(t *testing.T) {
	t.Parallel()
	r, _ := runMixed(t, false)
	if strings.Contains(r.bodies.String(), secret) {
		t.Errorf("contents are off, and the spans have\n%s", r.bodies.String())
	}
	r, spans := runMixed(t, true)
	for _, key := range []string{"gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "weir.run.inputs", "weir.run.outputs"} {
		if !slices.ContainsFunc(spans, func(s span) bool { return strings.Contains(s.attr(key), secret) }) {
			t.Errorf("contents are on, and no span has %s\n%s", key, r.bodies.String())
		}
	}
	for _, s := range spans {
		if text := s.attr("gen_ai.output.messages"); text != "" && !json.Valid([]byte(text)) {
			t.Errorf("%s: %s", s.Name, text)
		}
	}
}

// TestTheProcessThatTakesOverSendsTheWholeRun stops a process while a node executes: it has
// sent nothing, and the next one sends all.
func TestTheProcessThatTakesOverSendsTheWholeRun(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	entered := make(chan struct{}, 2)
	blocks := true
	block := weir.Func("block", func(ctx weir.Ctx, _ struct{}) (struct{ Text string }, error) {
		entered <- struct{}{}
		if blocks {
			<-ctx.Done()
			return struct{ Text string }{}, context.Cause(ctx)
		}
		return struct{ Text string }{"done"}, nil
	})
	o := weir.Options{
		Store: weirkit.SharedMemory{Store: memory.New()}, Types: []weir.Type{block},
		Providers: map[string]weir.Provider{"p": talker{}}, Traces: &otel.Config{Endpoint: r.url},
	}
	w, end := process(t, o)
	run := weirkit.StartText(t, w, `
weir: 1
name: stopped
context: {model: p/m}
nodes:
  say: {type: llmRequest, in: {message: "Go."}}
  wait: {type: block, after: say}
`)
	<-entered
	end()
	if spans := r.received(t); len(spans) != 0 {
		t.Errorf("a run that has not rested has sent %d spans", len(spans))
	}
	blocks = false
	w, end = process(t, o)
	again, err := w.Continue(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if result := weirkit.Wait(t, again); result.Status != engine.Completed {
		t.Fatal(result)
	}
	end()
	spans := r.received(t)
	checkTrace(t, spans)
	if len(spans) != 4 { // the run, two nodes, the call of the model
		t.Errorf("%d spans", len(spans))
	}
}
