package runnertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
)

// testOneRun is what every subject does.
func testOneRun(t *testing.T, s Subject) {
	t.Run("a node starts after all its parents and outputs come back", func(t *testing.T) { testOrdering(t, s) })
	t.Run("a run pauses for a person and goes on with the answer", func(t *testing.T) { testAnswers(t, s) })
	t.Run("a question without an answer leaves the run paused", func(t *testing.T) { testPauses(t, s) })
	t.Run("a failed attempt is tried again when its time has come", func(t *testing.T) { testRetries(t, s) })
	t.Run("a timer goes off", func(t *testing.T) { testTimers(t, s) })
	t.Run("no effect starts after a cancellation and cancelled is the last event", func(t *testing.T) { testCancel(t, s) })
	t.Run("an unhandled failure fails the run with its place", func(t *testing.T) { testFailures(t, s) })
	t.Run("a failed run goes on when its node is forced", func(t *testing.T) { testOverrides(t, s) })
	t.Run("what succeeded is not asked for again in the next attempt", func(t *testing.T) { testEffects(t, s) })
	t.Run("a node that asks for something else under a known key fails", func(t *testing.T) { testNondeterminism(t, s) })
	t.Run("a panic is a failure of the node", func(t *testing.T) { testPanics(t, s) })
	t.Run("a long chain of nodes that need not be durable ends", func(t *testing.T) { testChains(t, s) })
}

func testOrdering(t *testing.T, s Subject) {
	p := program(t, `
weir: 1
name: diamond
nodes:
  a: {type: do, with: {call: one}}
  b: {type: do, in: {x: "{{ a.value }}"}, with: {call: add}}
  c: {type: do, in: {x: "{{ a.value }}"}, with: {call: add}}
  d: {type: do, in: {x: "{{ b.value }}", y: "{{ c.value }}"}, with: {call: add}}
outputs: {d: "{{ d.value }}"}
`, funcType{"one": completeWith(int64(1)), "add": func(c *node.Ctx) error {
		sum := int64(1)
		for _, v := range c.Inputs() {
			n, _ := v.(int64)
			sum += n
		}
		c.Output("value", sum)
		return nil
	}})
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{})
	if v, _ := r.Outputs.Get("d"); r.Status != engine.Completed || v != int64(5) {
		t.Fatalf("got %+v", r.Result)
	}
	for _, edge := range [][2]string{{"a", "b"}, {"a", "c"}, {"b", "d"}, {"c", "d"}} {
		if done, begun := eventIndex(r.Commits, completed(edge[0])), eventIndex(r.Commits, started(edge[1])); done < 0 || begun < done {
			t.Errorf("%s started at %d, %s completed at %d", edge[1], begun, edge[0], done)
		}
	}
}

const asking = `
weir: 1
name: asking
nodes:
  ask: {type: userInput, with: {prompt: "How many?", schema: {type: integer}}}
  next: {type: transform, in: {n: "{{ ask.value }}"}, with: {expr: inputs.n + 1}}
outputs: {n: "{{ next.value }}"}
`

func testAnswers(t *testing.T, s Subject) {
	p := program(t, asking, nil)
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{Answer: func(i engine.Interrupt) (engine.Value, bool) {
		return int64(41), i.ID == "ask:ask#1" && i.Prompt == "How many?"
	}})
	if v, _ := r.Outputs.Get("n"); r.Status != engine.Completed || v != int64(42) {
		t.Fatalf("got %+v", r.Result)
	}
}

func testPauses(t *testing.T, s Subject) {
	r := s.Run(t, program(t, asking, nil), runner.StartOptions{ID: "r"}, Script{})
	if r.Status != engine.Paused || len(r.Interrupts) != 1 || r.Interrupts[0].ID != "ask:ask#1" {
		t.Fatalf("got %+v", r.Result)
	}
}

func testRetries(t *testing.T, s Subject) {
	p := program(t, `
weir: 1
name: flaky
nodes:
  a: {type: do, with: {call: flaky}, retry: {attempts: 3, backoff: 20ms}}
outputs: {n: "{{ a.value }}"}
`, funcType{"flaky": func(c *node.Ctx) error {
		if c.Info().Attempt < 3 {
			return errors.New("not yet")
		}
		c.Output("value", int64(c.Info().Attempt))
		return nil
	}})
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{})
	if v, _ := r.Outputs.Get("n"); r.Status != engine.Completed || v != int64(3) {
		t.Fatalf("got %+v", r.Result)
	}
	var due int64
	for _, c := range r.Commits {
		for _, e := range c.Events {
			switch e := e.(type) {
			case *engine.NodeRetrying:
				due = e.Due
			case *engine.TimerFired:
				if c.At < due {
					t.Errorf("tried again at %d, due at %d", c.At, due)
				}
			}
		}
	}
}

func testTimers(t *testing.T, s Subject) {
	var due time.Time
	p := program(t, `
weir: 1
name: nap
nodes:
  a: {type: do, with: {call: nap}}
outputs: {v: "{{ a.value }}"}
`, funcType{"nap": func(c *node.Ctx) error {
		due = c.Now().Add(30 * time.Millisecond)
		_, given, err := c.Wait("nap", engine.Interrupt{Kind: engine.AwaitTimer, Due: due.UnixMilli()})
		if err != nil {
			return err
		}
		c.Output("value", given)
		return nil
	}})
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{})
	if v, _ := r.Outputs.Get("v"); r.Status != engine.Completed || v != false {
		t.Fatalf("got %+v", r.Result)
	}
	if end := r.Commits[len(r.Commits)-1].At; end < due.UnixMilli() {
		t.Errorf("the run ended at %d, the timer was due at %d", end, due.UnixMilli())
	}
}

func testCancel(t *testing.T, s Subject) {
	commands := make(chan runner.Command, 100)
	var l effectLog
	p := program(t, `
weir: 1
name: endless
nodes:
  a: {type: do, with: {call: endless}}
  b: {type: do, in: {x: "{{ a.value }}"}, with: {call: never}}
  c: {type: userInput, with: {prompt: "?"}}
outputs: {v: "{{ b.value }}"}
`, funcType{"never": completeWith(1), "endless": func(c *node.Ctx) error {
		for i := 0; ; i++ {
			if _, err := l.runEffect(c, "ask"); err != nil {
				return err
			}
			if i == 3 {
				select {
				case commands <- runner.Cancel("somebody", "enough"):
				default:
				}
			}
		}
	}})
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{Commands: commands})
	if _, ok := lastEvent(r.Commits).(*engine.RunCancelled); !ok || r.Status != engine.Cancelled {
		t.Fatalf("got %+v, the last event is %T", r.Result, lastEvent(r.Commits))
	}
	at := eventIndex(r.Commits, func(e engine.Event) bool { _, ok := e.(*engine.CancelRequested); return ok })
	after := 0
	for i, e := range allEvents(r.Commits)[at:] {
		switch e.(type) {
		case *engine.NodeStarted, *engine.NodeResumed, *engine.EffectStarted:
			t.Errorf("event %d after the cancellation is %s", i, e.Kind())
		case *engine.EffectCompleted:
			after++
		}
	}
	if after > 1 {
		t.Errorf("%d effects ended after the cancellation, one was in flight", after)
	}
	if eventIndex(r.Commits, started("b")) >= 0 {
		t.Error("b started")
	}
}

func allEvents(commits []engine.Commit) (out []engine.Event) {
	for _, c := range commits {
		out = append(out, c.Events...)
	}
	return out
}

func testFailures(t *testing.T, s Subject) {
	p := program(t, `
weir: 1
name: failing
nodes:
  a: {type: do, with: {call: bad}}
  b: {type: userInput, with: {prompt: "?"}}
outputs: {v: "{{ b.text }}"}
`, funcType{"bad": func(*node.Ctx) error { return errors.New("out of paper") }})
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{})
	if r.Status != engine.Failed || r.Error == nil || r.Error.Node != "a" || r.Error.Message != "out of paper" ||
		r.Error.Code != engine.CodeNodeFailed {
		t.Fatalf("got %+v, %v", r.Result, r.Error)
	}
	if len(r.Interrupts) > 0 {
		t.Errorf("a failed run still asks %v", r.Interrupts)
	}
}

func testOverrides(t *testing.T, s Subject) {
	if s.Store == nil {
		t.Skip("ability: several processes share a store")
	}
	p := program(t, `
weir: 1
name: forced
nodes:
  a: {type: do, with: {call: bad}}
  b: {type: do, in: {x: "{{ a.value }}"}, with: {call: echo}}
outputs: {v: "{{ b.value }}"}
`, funcType{"bad": func(*node.Ctx) error { return errors.New("no") }, "echo": func(c *node.Ctx) error {
		c.Output("value", c.Text("x"))
		return nil
	}})
	l := Open(t, s.Store(t))
	x, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if r := drive(t, l, p, x, Script{}); r.Status != engine.Failed {
		t.Fatalf("got %+v", r)
	}
	if _, err := l.Do(t.Context(), p, "r", runner.OverrideNode("retry", "b", nil, "somebody")); !errors.Is(err, runner.ErrStatus) {
		t.Errorf("forcing a node that is not stuck: %v", err)
	}
	x, err = l.Do(t.Context(), p, "r", runner.OverrideNode("complete", "a", engine.Values{{Name: "value", Value: "by hand"}}, "somebody"))
	if err != nil {
		t.Fatal(err)
	}
	r := drive(t, l, p, x, Script{})
	if v, _ := r.Outputs.Get("v"); r.Status != engine.Completed || v != "by hand" {
		t.Fatalf("got %+v", r)
	}
}

func testEffects(t *testing.T, s Subject) {
	var l effectLog
	tries := 0
	p := program(t, `
weir: 1
name: effects
nodes:
  a: {type: do, with: {call: pay}, retry: {attempts: 2, backoff: 10ms}}
outputs: {v: "{{ a.value }}"}
`, funcType{"pay": func(c *node.Ctx) error {
		v, err := l.runEffect(c, "pay")
		if err != nil {
			return err
		}
		if _, err := l.runEffect(c, "note"); err != nil { // pay is durable before this one leaves
			return err
		}
		if tries++; c.Info().Attempt == 1 {
			return errors.New("after paying")
		}
		c.Output("value", v)
		return nil
	}})
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{})
	if v, _ := r.Outputs.Get("v"); r.Status != engine.Completed || v != "r/a/pay#1" {
		t.Fatalf("got %+v, %v", r.Result, r.Error)
	}
	n := 0
	for _, e := range allEvents(r.Commits) {
		if d, ok := e.(*engine.EffectCompleted); ok && d.Key == "a/pay#1" {
			n++
		}
	}
	if n != 1 || s.Store != nil && l.count("r/a/pay#1") != 1 {
		t.Errorf("paid %d times, journaled %d times", l.count("r/a/pay#1"), n)
	}
}

func testPanics(t *testing.T, s Subject) {
	p := program(t, `
weir: 1
name: panic
nodes:
  a: {type: do, with: {call: boom}}
outputs: {v: "{{ a.value }}"}
`, funcType{"boom": func(*node.Ctx) error { panic("boom") }})
	r := s.Run(t, p, runner.StartOptions{ID: "r"}, Script{})
	if r.Status != engine.Failed || r.Error.Code != engine.CodeNodePanic {
		t.Fatalf("got %+v", r.Result)
	}
}

func testChains(t *testing.T, s Subject) {
	// More events than a commit may gather, all from nodes that need not be
	// durable before they run.
	nodes := 1500
	if testing.Short() {
		nodes = 1010
	}
	var b strings.Builder
	b.WriteString("weir: 1\nname: chain\nnodes:\n  n0: {type: transform, with: {expr: \"0\"}}\n")
	for i := 1; i <= nodes; i++ {
		fmt.Fprintf(&b, "  n%d: {type: transform, in: {n: \"{{ n%d.value }}\"}, with: {expr: inputs.n + 1}}\n", i, i-1)
	}
	fmt.Fprintf(&b, "outputs: {n: \"{{ n%d.value }}\"}\n", nodes)
	r := s.Run(t, program(t, b.String(), nil), runner.StartOptions{ID: "r"}, Script{})
	if v, _ := r.Outputs.Get("n"); r.Status != engine.Completed || v != int64(nodes) {
		t.Fatalf("got %+v, %v", r.Status, r.Error)
	}
}
