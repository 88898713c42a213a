package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
)

// askingFlow is a round that asks, with a session and a budget of its own.
const askingFlow = `
weir: 1
name: talk
context: {model: echo/m}
budget: {maxCalls: 3}
session: {budget: {maxCalls: 6}}
inputs:
  message: {type: text, required: true}
nodes:
  hear: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
  ask: {type: userInput, after: hear, with: {prompt: "And?", history: true}}
  answer: {type: llmRequest, in: {context: "{{ ask.context }}"}}
outputs: {answer: "{{ answer.text }}"}
`

// heldSession returns all that is kept of a session.
func heldSession(t *testing.T, s *weir.Session) string {
	t.Helper()
	row, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ms, err := s.Messages(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	rounds, err := s.Rounds(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rounds {
		rounds[i].Fence, rounds[i].Until = 0, time.Time{} // they change when a process acquires the run
	}
	b, err := json.Marshal([]any{row, ms, rounds})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mainOf returns what is said in the main context of a run.
func mainOf(t *testing.T, w *weir.Weir, run string) string {
	t.Helper()
	v, err := w.Inspect(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := v.Contexts[engine.MainContext].Messages()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i := range ms {
		texts = append(texts, string(ms[i].Role)+" "+ms[i].Text)
	}
	return strings.Join(texts, "\n")
}

func TestForkOfRoundUsesSessionHistoryWithoutChangingSession(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, askingFlow)
		s := weirkit.OpenSession(t, w, f)
		for _, text := range []string{"one", "yes one", "two"} {
			weirkit.SendAndWait(t, s, text, weir.SendOptions{})
		}
		forkRound(t, w, s, false) // round 2 waits
		weirkit.SendAndWait(t, s, "yes two", weir.SendOptions{})
		forkRound(t, w, s, true) // it has ended
		weirkit.SendAndWait(t, s, "three", weir.SendOptions{})
		forkRound(t, w, s, true) // and the session has continued
		if got := textsOf(t, s); len(got) != 10 || got[8] != "user three" {
			t.Errorf("the session has %q", got)
		}
	})
}

// answered returns what a run comes to whose question, if it waits with one, is answered.
func answered(t *testing.T, w *weir.Weir, run *weir.Run, value string) weir.Result {
	t.Helper()
	r := weirkit.Wait(t, run)
	if r.Status != engine.Paused {
		return r
	}
	run, err := w.Answer(t.Context(), run.ID, r.Interrupts[0].ID, value, "")
	if err != nil {
		t.Fatal(err)
	}
	return weirkit.Wait(t, run)
}

// forkRound forks the second round of a session at each of its events.
func forkRound(t *testing.T, w *weir.Weir, s *weir.Session, over bool) {
	t.Helper()
	rounds, err := s.Rounds(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	round := rounds[len(rounds)-2]
	before := heldSession(t, s)
	want := strings.Join(textsOf(t, s)[:6], "\n") + "\nuser yes two\nassistant 7: yes two"
	if over && mainOf(t, w, round.ID) != want {
		t.Fatalf("the round has\n%s", mainOf(t, w, round.ID))
	}
	for at := int64(1); at <= round.Events; at++ {
		fork, plan, err := w.Fork(t.Context(), round.ID, weir.ForkOptions{At: at})
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		r := answered(t, w, fork, "yes two")
		if got := mainOf(t, w, fork.ID); r.Status != engine.Completed || got != want {
			t.Fatalf("forked at %d of %d it is %s with\n%s\nand not\n%s", plan.At, round.Events, r.Status, got, want)
		}
		if at%3 > 0 {
			continue
		}
		again, _, err := w.Fork(t.Context(), fork.ID, weir.ForkOptions{From: "answer"})
		if err != nil {
			t.Fatal(err)
		}
		if r := weirkit.Wait(t, again); r.Status != engine.Completed || mainOf(t, w, again.ID) != want || r.Usage.Calls != 1 {
			t.Errorf("a fork of the fork is %s after %d calls with\n%s", r.Status, r.Usage.Calls, mainOf(t, w, again.ID))
		}
	}
	if now := heldSession(t, s); now != before {
		t.Errorf("the session was touched:\n%s\nit was\n%s", now, before)
	}
}

// forkUnbound forks a round that its session's budget has failed.
func forkUnbound(t *testing.T, w *weir.Weir, run, from string, calls int) {
	t.Helper()
	fork, _, err := w.Fork(t.Context(), run, weir.ForkOptions{From: from})
	if err != nil {
		t.Fatal(err)
	}
	r := answered(t, w, fork, "yes")
	if r.Status != engine.Completed || r.Usage.Calls != calls {
		t.Errorf("the fork from %s is %s after %d calls: %v", from, r.Status, r.Usage.Calls, r.Error)
	}
	v, err := w.Inspect(t.Context(), fork.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Run.Start.Allowances) > 0 {
		t.Errorf("the fork from %s is bound by %+v", from, v.Run.Start.Allowances)
	}
}

func TestForkOfRoundDoesNotUseSessionBudget(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, strings.Replace(askingFlow, "maxCalls: 6", "maxCalls: 3", 1))
		s := weirkit.OpenSession(t, w, f)
		for _, text := range []string{"one", "yes", "two"} {
			weirkit.SendAndWait(t, s, text, weir.SendOptions{})
		}
		over := weirkit.SendAndWait(t, s, "yes", weir.SendOptions{})
		if over.Status != engine.Failed || over.Error.Code != engine.CodeBudget {
			t.Fatalf("%+v", over)
		}
		for from, calls := range map[string]int{"hear": 2, "answer": 1} { // its beginning is carried over, or shared
			forkUnbound(t, w, over.Run, from, calls)
		}
		if row, err := s.Info(t.Context()); err != nil || row.Usage.Calls != 3 {
			t.Errorf("the session has spent %+v, %v", row.Usage, err)
		}
	})
}

// stuckOnce does not answer its first call before it is let.
type stuckOnce struct {
	weirkit.RepeatingModel
	calls        atomic.Int64
	called, open chan struct{}
}

func (g *stuckOnce) Generate(ctx context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if g.calls.Add(1) == 1 {
		close(g.called)
		select {
		case <-g.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return g.RepeatingModel.Generate(ctx, r, emit)
}

func TestRunningRoundCanBeForkedByAnyProcess(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		g := &stuckOnce{called: make(chan struct{}), open: make(chan struct{})}
		w, f := weirkit.OpenTalk(t, path, g, askingFlow)
		by := []*weir.Weir{w}
		if path != "" {
			other, _ := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, askingFlow)
			by = append(by, other)
		}
		s := weirkit.OpenSession(t, w, f)
		turn := send(t, s, "one", weir.SendOptions{})
		<-g.called
		before := heldSession(t, s)
		for _, w := range by {
			v, err := w.Inspect(t.Context(), turn.Run(), 0)
			if err != nil {
				t.Fatal(err)
			}
			forkLive(t, w, turn.Run(), weir.ForkOptions{At: v.Run.Events()}, runner.NodeRestarts)
			forkLive(t, w, turn.Run(), weir.ForkOptions{Inputs: map[string]any{"message": "another"}}, runner.NodeRestarts)
		}
		if now := heldSession(t, s); now != before {
			t.Errorf("the session was touched:\n%s\nit was\n%s", now, before)
		}
		close(g.open)
		if state := await(t, turn); state.Status != engine.Paused {
			t.Errorf("the round is %s: %v", state.Status, state.Error)
		}
		if got := strings.Join(textsOf(t, s), "|"); got != "user one|assistant 1: one" {
			t.Errorf("the session has %q", got)
		}
	})
}

// forkLive forks a round whose node hear is at work; the fork's own comes to the
// question while that of the round waits.
func forkLive(t *testing.T, w *weir.Weir, run string, o weir.ForkOptions, hear runner.Reuse) {
	t.Helper()
	fork, plan, err := w.Fork(t.Context(), run, o)
	if err != nil {
		t.Fatal(err)
	}
	if n := plan.Nodes[0]; n.Path != "hear" || n.Reuse != hear {
		t.Errorf("%s is said to be %s, %s", n.Path, n.Reuse, n.Reason)
	}
	said := "one"
	if o.Inputs != nil {
		said = "another"
	}
	r := weirkit.Wait(t, fork)
	if r.Status != engine.Paused || r.Usage.Calls != 1 || mainOf(t, w, fork.ID) != "user "+said+"\nassistant 1: "+said {
		t.Errorf("the fork is %s after %d calls with\n%s", r.Status, r.Usage.Calls, mainOf(t, w, fork.ID))
	}
}
