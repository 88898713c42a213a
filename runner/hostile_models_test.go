package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
)

// hostileModels behave as the name of the model says:
//
//   - stalls: never answers.
//   - late: answers as soon as its call is cancelled. A whole answer within a second after the limit
//     is used; one of a lost branch is not.
//   - deaf: ignores the end of its call, and answers when the test ends.
//   - halves: says half of an answer and stalls.
//   - lies: reports usage that no request has, and fails.
//   - owes: reports negative usage with an answer.
//   - busy: is overloaded.
//   - good: answers.
type hostileModels struct {
	released chan struct{}
	mu       sync.Mutex
	calls    []string
}

func newHostileModels(t *testing.T) *hostileModels {
	t.Helper()
	m := &hostileModels{released: make(chan struct{})}
	t.Cleanup(func() { close(m.released) })
	return m
}

func (m *hostileModels) called() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// Generate implements weir.Provider.
func (m *hostileModels) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	m.mu.Lock()
	m.calls = append(m.calls, req.Model)
	m.mu.Unlock()
	answer := &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "answer of " + req.Model}, Usage: llm.Usage{Input: 10, Output: 5}}
	switch req.Model {
	case "stalls":
		<-ctx.Done()
		return nil, ctx.Err()
	case "late":
		<-ctx.Done()
	case "deaf":
		<-m.released
	case "halves":
		emit(llm.Chunk{Text: "half of halves"})
		<-ctx.Done()
		return nil, ctx.Err()
	case "lies":
		emit(llm.Chunk{Usage: &llm.Usage{Input: 1 << 40, Output: -7}})
		return nil, &llm.Error{Code: engine.CodeModelOverloaded, Message: "busy"}
	case "owes":
		answer.Usage = llm.Usage{Input: -1 << 40, Output: -5, Cached: -3}
	case "busy":
		return nil, &llm.Error{Code: engine.CodeModelOverloaded, Message: "busy"}
	}
	return answer, nil
}

// openHostile opens Weir with a provider "bad", whose calls have short limits, and "fine".
func openHostile(t *testing.T, m *hostileModels, s weir.Store, tools ...*weir.Tool) *weir.Weir {
	t.Helper()
	short := 50 * time.Millisecond
	return weirkit.Open(t, weir.Options{
		Store: s, Providers: map[string]weir.Provider{"bad": m, "fine": m}, Tools: tools,
		Timeouts: map[string]llm.Timeouts{"bad": {First: short, Idle: short, Total: short}},
	})
}

func TestFallbackFromModelsThatStallLieOrAnswerLate(t *testing.T) {
	t.Parallel()
	causes := map[string]string{
		"stalls": engine.CodeModelTimeout, "late": "ok", "deaf": engine.CodeModelTimeout, "halves": engine.CodeModelTimeout,
		"lies": engine.CodeModelOverloaded, "busy": engine.CodeModelOverloaded, "owes": "ok",
	}
	for model, cause := range causes {
		for _, budget := range []string{"", "budget: {maxTokens: 1000000}\n"} {
			t.Run(model+" "+budget, func(t *testing.T) {
				t.Parallel()
				m := newHostileModels(t)
				w := openHostile(t, m, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "weir.db")))
				provider := "fine" // a call that ends by itself must not meet a limit on a busy machine
				if cause == engine.CodeModelTimeout || model == "late" {
					provider = "bad"
				}
				run := weirkit.StartText(t, w, fmt.Sprintf(`
weir: 1
name: hostile
%snodes:
  ask: {type: llmRequest, in: {message: "Well?"}, with: {models: [%s/%s, fine/good], on: [model_timeout, model_overloaded]}}
outputs: {said: "{{ ask.text }}"}
`, budget, provider, model))
				checkHostileFallback(t, w, m, weirkit.Wait(t, run), model, cause, budget != "")
			})
		}
	}
}

func checkHostileFallback(t *testing.T, w *weir.Weir, m *hostileModels, r weir.Result, model, cause string, budget bool) {
	t.Helper()
	want, effects := "answer of good", []string{"ask/model#1 " + cause, "ask/model#1.2 ok"}
	if cause == "ok" {
		want, effects = "answer of "+model, effects[:1]
	}
	if model == "lies" && budget { // what the vendor reports counts, and leaves nothing for another call
		if r.Status != engine.Failed || r.Error.Code != engine.CodeBudget || !slices.Equal(m.called(), []string{"lies"}) {
			t.Errorf("%s %v after the calls %q", r.Status, r.Error, m.called())
		}
		return
	}
	if said, _ := r.Outputs.Get("said"); r.Status != engine.Completed || said != want {
		t.Fatalf("%s %v: %v", r.Status, r.Outputs, r.Error)
	}
	if got := effectsOf(t, w, "run"); !slices.Equal(got, effects) {
		t.Errorf("the effects are %q, want %q", got, effects)
	}
	if u := r.Usage; u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.CostMicros < 0 {
		t.Errorf("the usage is %+v", u)
	}
	if cause != "ok" {
		checkNothingSaidBy(t, w, model)
	}
}

// checkNothingSaidBy fails if an answer of a model is in the history of the run.
func checkNothingSaidBy(t *testing.T, w *weir.Weir, model string) {
	t.Helper()
	v, err := w.Inspect(t.Context(), "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	list, err := v.Contexts["main"].Messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if strings.Contains(x.Text, "of "+model) {
			t.Errorf("the history has %q", x.Text)
		}
	}
}

func TestARaceIgnoresModelsThatAnswerAfterTheyLost(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"stalls", "late", "halves"} {
		m := newHostileModels(t)
		w := openHostile(t, m, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "weir.db")))
		loser := fmt.Sprintf(`slow: {nodes: {ask_slow: {type: llmRequest, in: {message: "Well?"}, with: {models: [fine/%s, fine/good], on: [model_timeout, model_overloaded, model_unavailable]}}}, outputs: {said: "{{ ask_slow.text }}"}}`, model)
		winner := `person: {nodes: {decide: {type: userInput}}, outputs: {said: "{{ decide.text }}"}}`
		run := weirkit.StartText(t, w, raceOf("", "", loser, winner))
		eventually(t, func() bool {
			v, err := w.Inspect(t.Context(), "run", 0)
			return err == nil && len(v.Run.Interrupts()) == 1 && len(m.called()) == 1
		})
		run, err := w.Answer(t.Context(), run.ID, "try#1/decide:ask#1", "yes", "ada")
		if err != nil {
			t.Fatal(err)
		}
		r := weirkit.Wait(t, run)
		if by, _ := r.Outputs.Get("by"); r.Status != engine.Completed || by != "person" {
			t.Errorf("%s: %s %v: %v", model, r.Status, r.Outputs, r.Error)
		}
		if got := m.called(); !slices.Equal(got, []string{model}) {
			t.Errorf("%s: the calls are %q: a cancelled branch asks no other model", model, got)
		}
		checkNothingSaidBy(t, w, model)
	}
}

// dyingStore takes so many commits and no more, as if the process had died.
type dyingStore struct {
	*sqlite.Store
	mu        sync.Mutex
	remaining int
}

func (d *dyingStore) Append(ctx context.Context, appends []store.Append) []error {
	d.mu.Lock()
	d.remaining--
	dead := d.remaining < 0
	d.mu.Unlock()
	if dead {
		return slices.Repeat([]error{weirkit.ErrDied}, len(appends))
	}
	return d.Store.Append(ctx, appends)
}

// TestFallbackInARaceSurvivesAProcessThatDiesAtAnyCommit has a branch whose first model is
// overloaded, a branch that waits, and after the race a tool that acts outside.
func TestFallbackInARaceSurvivesAProcessThatDiesAtAnyCommit(t *testing.T) {
	t.Parallel()
	text := raceOf("", "  pay: {type: tool, after: try, in: {for: \"{{ try.said }}\"}, with: {tool: pay, onUnknown: retry}}\n",
		`one: {nodes: {ask_one: {type: llmRequest, in: {message: "Well?"}, with: {models: [fine/busy, fine/good]}}}, outputs: {said: "{{ ask_one.text }}"}}`,
		`two: {nodes: {hold: {type: wait, with: {for: 1000h}}}}`)
	died := 0
	for ; ; died++ {
		file := filepath.Join(t.TempDir(), "weir.db")
		paid := &payments{}
		dead := hostileRaceDies(t, file, text, paid, died+1)
		if !dead {
			break
		}
		w := openHostile(t, newHostileModels(t), weirkit.OpenSQLite(t, file), paid.tool())
		run, err := w.Resume(t.Context(), "run")
		if errors.Is(err, store.ErrNotFound) {
			continue // it died before the run existed
		}
		if err != nil {
			t.Fatalf("after %d commits: %v", died+1, err)
		}
		checkRaceAfterDeath(t, w, run, paid, died+1)
	}
	if died < 3 {
		t.Errorf("a process may die in %d commits of the run, expected more", died)
	}
}

// checkRaceAfterDeath waits for the run that another process left after so many commits.
func checkRaceAfterDeath(t *testing.T, w *weir.Weir, run *weir.Run, paid *payments, commits int) {
	t.Helper()
	r := weirkit.Wait(t, run)
	if by, _ := r.Outputs.Get("by"); r.Status != engine.Completed || by != "one" {
		t.Errorf("after %d commits: %s %v: %v", commits, r.Status, r.Outputs, r.Error)
	}
	if keys := paid.keys(); len(keys) != 1 {
		t.Errorf("after %d commits it was paid under the keys %q", commits, keys)
	}
	answers := 0
	effects := effectsOf(t, w, run.ID)
	for _, e := range effects {
		if strings.Contains(e, "ask_one/model#") && strings.HasSuffix(e, " ok") {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("after %d commits %d answers are recorded: %q", commits, answers, effects)
	}
}

// hostileRaceDies runs the flow in a process that takes so many commits, and reports whether it
// died.
func hostileRaceDies(t *testing.T, file, text string, paid *payments, left int) (dead bool) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := newHostileModels(t)
	w, err := weir.Open(weir.Options{
		Store: &dyingStore{Store: s, remaining: left}, Providers: map[string]weir.Provider{"bad": m, "fine": m}, Tools: []*weir.Tool{paid.tool()},
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err == nil {
		_, err = run.Wait(t.Context())
	}
	_ = w.Close(t.Context()) // the store may be dead
	return err != nil
}

// payments records the keys of the calls of a tool that acts outside.
type payments struct {
	mu  sync.Mutex
	got map[string]bool
}

func (p *payments) keys() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.got {
		out = append(out, k)
	}
	return out
}

func (p *payments) tool() *weir.Tool {
	var parameters map[string]any
	_ = json.Unmarshal([]byte(`{"type":"object","properties":{"for":{"type":"string"}}}`), &parameters)
	return &weir.Tool{
		Name: "pay", Description: "Pays.", Parameters: parameters,
		Call: func(_ context.Context, c tool.Call) (string, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.got == nil {
				p.got = make(map[string]bool)
			}
			p.got[c.Key] = true
			return "paid", nil
		},
	}
}
