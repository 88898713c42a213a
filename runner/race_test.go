package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
)

// racingModels answers by the name of the model: "quick" at once, "stalls" never, "calls"
// with a call of every tool that it is offered, "fails" with an error.
type racingModels struct {
	begun   chan string // the models called, if set
	stopped atomic.Int32
}

// Generate implements weir.Provider.
func (m *racingModels) Generate(ctx context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	if m.begun != nil {
		m.begun <- req.Model
	}
	out := convo.Message{Role: convo.Assistant, Text: "answer of " + req.Model}
	switch req.Model {
	case "stalls":
		<-ctx.Done()
		m.stopped.Add(1)
		return nil, ctx.Err()
	case "fails":
		return nil, &llm.Error{Code: engine.CodeModelRequest, Message: "no such model"}
	case "calls":
		if req.Messages[len(req.Messages)-1].Role != convo.Tool {
			for _, t := range req.Tools {
				out.Calls = append(out.Calls, convo.Call{ID: t.Name, Name: t.Name, Arguments: "{}"})
			}
			out.Text = ""
		}
	}
	return &llm.Response{Message: out, Usage: llm.Usage{Input: 10, Output: 5}}, nil
}

// paying returns a tool that changes something outside.
func paying(calls *atomic.Int32) *weir.Tool {
	return &weir.Tool{
		Name: "pay", Description: "Pays.", Parameters: map[string]any{"type": "object"},
		Call: func(context.Context, tool.Call) (string, error) { calls.Add(1); return "paid", nil },
	}
}

// raceOf returns a flow that races branches; rest is added to it.
func raceOf(allow, rest string, branches ...string) string {
	return "weir: 1\nname: contest\ncontext: {model: fake/quick}\nnodes:\n  try:\n    type: race\n    with:\n" + allow +
		"      branches:\n        " + strings.Join(branches, "\n        ") + "\n" + rest + "outputs: {by: \"{{ try.winner }}\", said: \"{{ try.said }}\"}\n"
}

func asks(name, model string) string {
	return name + `: {nodes: {ask_` + name + `: {type: llmRequest, in: {message: "Well?"}, with: {model: fake/` + model + `}}}, outputs: {said: "{{ ask_` + name + `.text }}"}}`
}

func openRacing(t *testing.T, m weir.Provider, s weir.Store, tools ...*weir.Tool) *weir.Weir {
	t.Helper()
	return weirkit.Open(t, weir.Options{Store: s, Providers: map[string]weir.Provider{"fake": m}, Tools: tools})
}

func TestRaceKeepsOnlyWhatTheWinnerDid(t *testing.T) {
	t.Parallel()
	m := &racingModels{}
	w := openRacing(t, m, memory.New())
	write := `note: {nodes: {note: {type: action, with: {language: starlark, code: "context['k'] = 1"}}, hold: {type: wait, after: note, with: {for: 1h}}}}`
	run := weirkit.StartText(t, w, raceOf("", "", asks("quick", "quick"), asks("slow", "stalls"), write))
	r := weirkit.Wait(t, run)
	if by, _ := r.Outputs.Get("by"); r.Status != engine.Completed || by != "quick" {
		t.Fatalf("%s %v: %v", r.Status, r.Outputs, r.Error)
	}
	if r.Usage.Calls < 1 || r.Usage.Output < 5 {
		t.Errorf("usage is %+v", r.Usage)
	}
	if n := m.stopped.Load(); n > 1 {
		t.Errorf("%d calls of the branch that lost were stopped", n)
	}
	v, err := w.Inspect(t.Context(), "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := v.Run.State().Get("k"); ok {
		t.Error("a branch that lost changed the state")
	}
	var texts []string
	for _, c := range v.Contexts {
		ms, err := c.Messages()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range ms {
			texts = append(texts, c.ID+": "+x.Text)
		}
	}
	if want := []string{"main: Well?", "main: answer of quick"}; !slices.Equal(texts, want) {
		t.Errorf("the contexts hold %q, expected %q", texts, want)
	}
}

func TestRaceClosesQuestionsAndChildrenOfLosers(t *testing.T) {
	t.Parallel()
	w := openRacing(t, &racingModels{}, memory.New())
	child, err := w.Parse("child.yaml", []byte("weir: 1\nname: child\nnodes: {ask: {type: userInput}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := raceOf("", "", `asks: {nodes: {ask: {type: userInput}}}`, `child: {nodes: {below: {type: flow, with: {flow: child}}}}`,
		`person: {nodes: {decide: {type: userInput}}, outputs: {said: "{{ decide.text }}"}}`)
	f, err := w.Parse("flow.yaml", []byte(text), child)
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	if len(r.Interrupts) != 3 {
		t.Fatalf("%s with the questions %v", r.Status, r.Interrupts)
	}
	again, err := w.Answer(t.Context(), "run", "try#3/decide:ask#1", "me", "ada")
	if err != nil {
		t.Fatal(err)
	}
	if r = weirkit.Wait(t, again); r.Status != engine.Completed || len(r.Interrupts) != 0 {
		t.Fatalf("%s %v: %v", r.Status, r.Interrupts, r.Error)
	}
	for _, late := range []string{"try#1/ask:ask#1", "try#2/below>ask:ask#1"} {
		if _, err := w.Answer(t.Context(), "run", late, "late", "ada"); err == nil {
			t.Errorf("%s can still be answered", late)
		}
	}
	below, err := w.Runs(t.Context(), store.Filter{Parent: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if len(below) != 1 || below[0].Head.Status != engine.Cancelled {
		t.Errorf("the child runs are %+v", below)
	}
}

func TestRaceRefusesToolsThatAct(t *testing.T) {
	t.Parallel()
	calling := func(tools string) string {
		return `act: {nodes: {call: {type: llmRequest, in: {message: "Pay.", tools: ` + tools + `}, with: {model: fake/calls}}}, outputs: {said: "{{ call.text }}"}}`
	}
	broken := asks("other", "fails")
	pick := "  pick: {type: tools}\n"
	byValue := strings.Replace(raceOf("", pick, calling(`"{{ inputs.tools }}"`), broken), "type: race", "type: race\n    in: {tools: \"{{ pick.tools }}\"}", 1)
	for _, c := range []struct {
		name, text string
		refused    bool // at the start
		code       string
		paid       int32
	}{
		{"named", raceOf("", "", calling("[pay]"), broken), true, "", 0},
		{"by a value", byValue, false, engine.CodeRaceFailed, 0},
		{"allowed", raceOf("      allowEffects: true\n", "", calling("[pay]"), broken), false, "", 1},
	} {
		var paid atomic.Int32
		w := openRacing(t, &racingModels{}, memory.New(), paying(&paid))
		f, err := w.Parse("flow.yaml", []byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
		var bad *flow.Invalid
		if errors.As(err, &bad) != c.refused || c.refused && bad.Problems[0].Code != flow.CodeRaceEffect {
			t.Errorf("%s: starting gives %v", c.name, err)
		}
		if c.refused || err != nil {
			continue
		}
		r := weirkit.Wait(t, run)
		if got := r.Error; (got == nil) != (c.code == "") || got != nil && (got.Code != c.code || !strings.Contains(got.Message, "race_effect")) {
			t.Errorf("%s: %s %v", c.name, r.Status, got)
		}
		if paid.Load() != c.paid {
			t.Errorf("%s: paid %d times, expected %d", c.name, paid.Load(), c.paid)
		}
	}
}

func TestRaceSpendsTheBudgetOfLosersToo(t *testing.T) {
	t.Parallel()
	m := &racingModels{}
	w := openRacing(t, m, memory.New())
	text := raceOf("", "  next: {type: llmRequest, after: try, in: {message: more}, with: {model: fake/quick}}\n", asks("quick", "quick"), asks("wrong", "fails"),
		`both: {nodes: {one: {type: llmRequest, in: {message: a}}, hold: {type: wait, after: one, with: {for: 1h}}}}`)
	r := weirkit.Wait(t, weirkit.StartText(t, w, strings.Replace(text, "nodes:", "budget: {maxCalls: 2}\nnodes:", 1)))
	if r.Status == engine.Completed && r.Usage.Calls > 2 || r.Usage.Calls > 2 {
		t.Errorf("%s after %d of 2 calls", r.Status, r.Usage.Calls)
	}
}

func TestRaceContinuesAfterACrashAndInAFork(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.db")
	m := &racingModels{begun: make(chan string, 8)}
	w := openRacing(t, m, weirkit.OpenSQLite(t, file))
	text := raceOf("", "", asks("one", "stalls"), `two: {nodes: {decide: {type: userInput}}, outputs: {said: "{{ decide.text }}"}}`)
	weirkit.StartText(t, w, text)
	<-m.begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	_ = w.Close(ctx)
	cancel()

	m = &racingModels{begun: make(chan string, 8)}
	w = openRacing(t, m, weirkit.OpenSQLite(t, file))
	if _, err := w.Resume(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	<-m.begun // the call with an unknown outcome is made again
	v, err := w.Inspect(t.Context(), "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	forked, _, err := w.Fork(t.Context(), "run", weir.ForkOptions{ID: "copy", At: v.Run.Events()})
	if err != nil {
		t.Fatal(err)
	}
	<-m.begun
	for _, id := range []string{"run", forked.ID} {
		again, err := w.Answer(t.Context(), id, "try#2/decide:ask#1", "person", "ada")
		if err != nil {
			t.Fatal(err)
		}
		r := weirkit.Wait(t, again)
		if by, _ := r.Outputs.Get("by"); r.Status != engine.Completed || by != "two" {
			t.Errorf("%s: %s %v: %v", id, r.Status, r.Outputs, r.Error)
		}
	}
}
