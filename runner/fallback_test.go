package runner_test

import (
	"context"
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
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
)

// faultyModels answer or fail by the name of the model, and record which models were called
// under which key.
type faultyModels struct {
	mu    sync.Mutex
	calls []string
	// fail returns the failure of a call, nil for an answer; n counts the calls of the model.
	fail func(model string, n int) error
	// answer is the text of an answer; nil means the model's name.
	answer func(model string, n int) string
	hold   chan struct{} // if set, calls of model b wait until it is closed
	begun  chan struct{}
	tools  bool // the first answer of every model calls the tool look
}

// Generate implements weir.Provider.
func (m *faultyModels) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	m.mu.Lock()
	_, key, _ := strings.Cut(req.Key, "/")
	m.calls = append(m.calls, req.Model+" "+key)
	n := 0
	for _, c := range m.calls {
		if strings.HasPrefix(c, req.Model+" ") {
			n++
		}
	}
	m.mu.Unlock()
	emit(llm.Chunk{Text: "half of " + req.Model})
	if m.hold != nil && req.Model == "b" {
		m.begun <- struct{}{}
		select {
		case <-m.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if m.fail != nil {
		if err := m.fail(req.Model, n); err != nil {
			return nil, err
		}
	}
	out := convo.Message{Role: convo.Assistant, Text: req.Model}
	if m.answer != nil {
		out.Text = m.answer(req.Model, n)
	}
	if last := req.Messages[len(req.Messages)-1]; m.tools && last.Role != convo.Tool {
		out = convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "c", Name: "look", Arguments: "{}"}}}
	}
	return &llm.Response{Message: out, Usage: llm.Usage{Input: 10, Output: 5}}, nil
}

func failing(code string, models ...string) func(string, int) error {
	return func(model string, _ int) error {
		if slices.Contains(models, model) {
			return &llm.Error{Code: code, Message: "the test says so", Retry: code == engine.CodeModelOverloaded}
		}
		return nil
	}
}

// The places of the list of models.
const (
	modelsOfNode       = "node"
	modelsOfContext    = "the flow's context"
	modelsOfNewContext = "a new context"
	modelsOfCaller     = "the context of the caller"
)

func modelPlaces() []string {
	return []string{modelsOfNode, modelsOfContext, modelsOfNewContext, modelsOfCaller}
}

// fallbackFlow returns a flow with the models a, b and c in a place. A flow of a caller is named
// child.yaml.
func fallbackFlow(place, with, on, keys string) string {
	models := "models: [fake/a, fake/b, fake/c]"
	if on != "" {
		models += ", on: " + on
	}
	text := "weir: 1\nname: fallback\n"
	if place == modelsOfContext {
		text += "context: {" + models + "}\n"
	}
	text += "nodes:\n"
	if place == modelsOfNewContext {
		text += "  room: {type: newContext, with: {" + models + "}}\n"
		keys += "context: room, "
	}
	settings := strings.TrimPrefix(with, ", ")
	if place == modelsOfNode {
		settings = models + with
	}
	return text + "  ask: {type: llmRequest, in: {message: \"Well?\"}, " + keys + "with: {" + settings + "}}\noutputs: {said: \"{{ ask.text }}\"}\n"
}

// callerFlow returns a flow that runs the flow child.yaml in a context with the models.
func callerFlow(on string) string {
	return strings.Replace(fallbackFlow(modelsOfContext, "", on, ""), `type: llmRequest, in: {message: "Well?"}, with: {}`, "type: flow, with: {flow: ./child.yaml}", 1)
}

// effectsOf lists the effects of a run: key, error code or the model that answered.
func effectsOf(t *testing.T, w *weir.Weir, run string) (out []string) {
	t.Helper()
	v, err := w.Inspect(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if done, ok := e.(*engine.EffectCompleted); ok {
				what := "ok"
				if done.Error != nil {
					what = done.Error.Code
				}
				out = append(out, done.Key+" "+what)
			}
		}
	}
	return out
}

// fallbackCase is a flow with the models a, b and c.
type fallbackCase struct {
	name, with, keys string
	on               string // the codes, "" for the default
	m                *faultyModels
	windows          [3]int
	said, code       string
	calls, effects   []string
}

// repeatedFallbacks are cases in which a model is asked again.
func repeatedFallbacks() []fallbackCase {
	return []fallbackCase{
		{
			name: "another attempt begins with the first", keys: "retry: {attempts: 2, backoff: 1s}, ",
			m: &faultyModels{fail: func(model string, n int) error {
				if n == 1 {
					return &llm.Error{Code: engine.CodeModelTimeout, Message: "no", Retry: true, Retried: true}
				}
				return nil
			}},
			said: "a", calls: []string{"a ask/model#1", "b ask/model#1.2", "c ask/model#1.3", "a ask/model#1"},
			effects: []string{"ask/model#1 model_timeout", "ask/model#1.2 model_timeout", "ask/model#1.3 model_timeout", "ask/model#1 ok"},
		},
		{
			name: "an invalid answer escalates", on: "[model_answer_invalid]", with: ", schema: {type: object, required: [n]}",
			m: &faultyModels{answer: func(model string, _ int) string {
				if model == "b" {
					return `{"n": 1}`
				}
				return "no"
			}},
			said: `{"n": 1}`, calls: []string{"a ask/model#1", "a ask/model#2", "b ask/model#3"},
			effects: []string{"ask/model#1 model_answer_invalid", "ask/model#2 model_answer_invalid", "ask/model#3 ok"},
		},
		{
			name: "an invalid answer of a later model is passed over in another attempt", with: ", schema: {type: object, required: [n]}",
			keys: "retry: {attempts: 2, backoff: 1s, on: [model_answer_invalid]}, ",
			m: &faultyModels{
				fail: func(model string, n int) error {
					if model == "a" && n == 1 {
						return &llm.Error{Code: engine.CodeModelTimeout, Message: "no"}
					}
					return nil
				},
				answer: func(model string, _ int) string {
					if model == "a" {
						return `{"n": 2}`
					}
					return "no"
				},
			},
			said: `{"n": 2}`, calls: []string{"a ask/model#1", "b ask/model#1.2", "b ask/model#2", "a ask/model#3"},
			effects: []string{"ask/model#1 model_timeout", "ask/model#1.2 model_answer_invalid", "ask/model#2 model_answer_invalid", "ask/model#3 ok"},
		},
	}
}

func TestModelFallback(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("water ", 900)
	for _, c := range append(repeatedFallbacks(), []fallbackCase{
		{name: "the first model answers", m: &faultyModels{}, said: "a", calls: []string{"a ask/model#1"}, effects: []string{"ask/model#1 ok"}},
		{
			name: "overload", m: &faultyModels{fail: failing(engine.CodeModelOverloaded, "a")}, said: "b",
			calls: []string{"a ask/model#1", "b ask/model#1.2"}, effects: []string{"ask/model#1 model_overloaded", "ask/model#1.2 ok"},
		},
		{
			name: "timeout, twice", m: &faultyModels{fail: failing(engine.CodeModelTimeout, "a", "b")}, said: "c",
			calls:   []string{"a ask/model#1", "b ask/model#1.2", "c ask/model#1.3"},
			effects: []string{"ask/model#1 model_timeout", "ask/model#1.2 model_timeout", "ask/model#1.3 ok"},
		},
		{
			name: "a refusal is not in the default", m: &faultyModels{fail: failing(engine.CodeModelFiltered, "a")}, code: engine.CodeModelFiltered,
			calls: []string{"a ask/model#1"}, effects: []string{"ask/model#1 model_filtered"},
		},
		{
			name: "a refusal that is listed", on: "[model_filtered]", m: &faultyModels{fail: failing(engine.CodeModelFiltered, "a")}, said: "b",
			calls: []string{"a ask/model#1", "b ask/model#1.2"}, effects: []string{"ask/model#1 model_filtered", "ask/model#1.2 ok"},
		},
		{
			name: "what is not listed", on: "[model_filtered]", m: &faultyModels{fail: failing(engine.CodeModelTimeout, "a")}, code: engine.CodeModelTimeout,
			calls: []string{"a ask/model#1"}, effects: []string{"ask/model#1 model_timeout"},
		},
		{
			name: "a full window, known before", with: ", system: " + long, m: &faultyModels{}, windows: [3]int{600, 500, 4000}, said: "c",
			calls: []string{"c ask/model#1"}, effects: []string{"ask/model#1 ok"},
		},
		{name: "a full window and none larger", with: ", system: " + long, m: &faultyModels{}, windows: [3]int{600, 500, 600}, code: engine.CodeModelContextLength},
		{
			name: "it stays on the model", with: "", keys: "", m: &faultyModels{tools: true, fail: failing(engine.CodeModelOverloaded, "a")}, said: "b",
			calls:   []string{"a ask/model#1", "b ask/model#1.2", "b ask/model#2"},
			effects: []string{"ask/model#1 model_overloaded", "ask/model#1.2 ok", "ask/tool#1 ok", "ask/model#2 ok"},
		},
	}...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, place := range modelPlaces() {
				m := &faultyModels{fail: c.m.fail, answer: c.m.answer, tools: c.m.tools}
				c.check(t, place, m)
			}
		})
	}
}

func (c *fallbackCase) check(t *testing.T, place string, m *faultyModels) {
	t.Helper()
	var models []llm.Model
	for i, w := range c.windows {
		models = append(models, llm.Model{Name: "fake/" + string(rune('a'+i)), Window: w})
	}
	look := &weir.Tool{
		Name: "look", Description: "Looks.", Parameters: map[string]any{"type": "object"}, ReadOnly: true,
		Call: func(context.Context, tool.Call) (string, error) { return "seen", nil },
	}
	w := weirkit.Open(t, weir.Options{
		Store: memory.New(), Providers: map[string]weir.Provider{"fake": m}, Models: llm.NewCatalogue(models...), Tools: []*weir.Tool{look},
	})
	text := fallbackFlow(place, c.with, c.on, c.keys)
	if place == modelsOfCaller {
		text = fallbackFlow("", c.with, "", c.keys)
	}
	if m.tools {
		text = strings.Replace(text, `"Well?"`, `"Well?", tools: [look]`, 1)
	}
	files := flow.MemFiles{"child.yaml": text}
	if place == modelsOfCaller {
		text = callerFlow(c.on)
		text = strings.Replace(text, "{{ ask.text }}", "{{ ask.said }}", 1)
	}
	f, err := w.ParseIn(files, "flow.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v\n%s", place, err, text)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	said, _ := r.Outputs.Get("said")
	code := ""
	if r.Error != nil {
		code = r.Error.Code
	}
	if code != c.code || c.code == "" && fmt.Sprint(said) != c.said {
		t.Errorf("%s: said %v, %v", place, said, r.Error)
	}
	if !slices.Equal(m.calls, c.calls) {
		t.Errorf("%s: the calls were %q, expected %q", place, m.calls, c.calls)
	}
	if place == modelsOfCaller {
		return // the effects are those of the child run
	}
	if got := effectsOf(t, w, "run"); !slices.Equal(got, c.effects) {
		t.Errorf("%s: the effects are %q, expected %q", place, got, c.effects)
	}
}

func TestModelFallbackContinuesAfterACrash(t *testing.T) {
	t.Parallel()
	for _, place := range []string{modelsOfNode, modelsOfContext, modelsOfNewContext} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "weir.db")
			m := &faultyModels{fail: failing(engine.CodeModelOverloaded, "a"), hold: make(chan struct{}), begun: make(chan struct{}, 1)}
			w := weirkit.Open(t, weir.Options{Store: weirkit.OpenSQLite(t, file), Providers: map[string]weir.Provider{"fake": m}})
			weirkit.StartText(t, w, fallbackFlow(place, "", "", ""))
			<-m.begun
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_ = w.Close(ctx)
			cancel()
			m = &faultyModels{}
			w = weirkit.Open(t, weir.Options{Store: weirkit.OpenSQLite(t, file), Providers: map[string]weir.Provider{"fake": m}})
			run, err := w.Resume(t.Context(), "run")
			if err != nil {
				t.Fatal(err)
			}
			r := weirkit.Wait(t, run)
			if said, _ := r.Outputs.Get("said"); said != "b" || !slices.Equal(m.calls, []string{"b ask/model#1.2"}) {
				t.Errorf("said %v after the calls %q: %v", said, m.calls, r.Error)
			}
		})
	}
}

// A model that is given when a run starts replaces the flow's models, unless it is the first of
// them; a fork and a rerun under another model do so too.
func TestAModelGivenAtTheStartReplacesTheModelsOfTheContext(t *testing.T) {
	t.Parallel()
	for model, want := range map[string][]string{
		"":       {"a ask/model#1", "b ask/model#1.2"},
		"fake/a": {"a ask/model#1", "b ask/model#1.2"},
		"fake/c": {"c ask/model#1"},
	} {
		m := &faultyModels{fail: failing(engine.CodeModelFiltered, "a")}
		w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"fake": m}})
		f := weirkit.Parse(t, w, fallbackFlow(modelsOfContext, "", "[model_filtered]", ""))
		run, err := w.Start(t.Context(), f, weir.Start{Model: model})
		if err != nil {
			t.Fatal(err)
		}
		r := weirkit.Wait(t, run)
		if r.Status != weir.Completed || !slices.Equal(m.calls, want) {
			t.Errorf("with --model %q the calls are %q, %v; want %q", model, m.calls, r.Error, want)
		}
		m.calls = nil
		fork, _, err := w.Fork(t.Context(), run.ID, weir.ForkOptions{From: "ask", Model: "fake/a"})
		if err != nil {
			t.Fatal(err)
		}
		if r := weirkit.Wait(t, fork); r.Status != weir.Failed || !slices.Equal(m.calls, []string{"a ask/model#1"}) {
			t.Errorf("a fork with another model: %s after the calls %q", r.Status, m.calls)
		}
		m.calls, m.fail = nil, failing(engine.CodeModelFiltered, "a", "c")
		for given, want := range map[string][]string{"fake/c": {"c ask/model#1"}, "fake/a": {"a ask/model#1", "b ask/model#1.2"}} {
			m.calls = nil
			again, err := w.Rerun(t.Context(), run.ID, weir.Start{Model: given})
			if err != nil {
				t.Fatal(err)
			}
			if weirkit.Wait(t, again); !slices.Equal(m.calls, want) {
				t.Errorf("a rerun of %q with %s makes the calls %q, want %q", model, given, m.calls, want)
			}
		}
	}
}

func TestModelFallbackRetractsText(t *testing.T) {
	t.Parallel()
	m := &faultyModels{fail: failing(engine.CodeModelOverloaded, "a"), hold: make(chan struct{}), begun: make(chan struct{}, 1)}
	w := weirkit.Open(t, weir.Options{Store: memory.New(), Providers: map[string]weir.Provider{"fake": m}})
	run := weirkit.StartText(t, w, fallbackFlow(modelsOfNode, "", "", ""))
	seen := map[string]string{}
	released := false
	for item, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case item.Retracted:
			delete(seen, item.Effect)
		case item.Chunk != nil && item.Chunk.Text != "":
			seen[item.Effect] += item.Chunk.Text
		}
		if len(m.begun) > 0 && !released {
			close(m.hold)
			released = true
		}
	}
	for effect, text := range seen {
		if strings.Contains(text, "half of a") {
			t.Errorf("the text of the model that failed was not retracted: %s %q", effect, text)
		}
	}
}
