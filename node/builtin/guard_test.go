package builtin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	memorytool "github.com/weir-run/weir/tool/memory"
	"github.com/weir-run/weir/weirtest"
)

// TestErrorDetectionTable has values that report errors in each of the ways that the node knows, and values that look similar.
func TestErrorDetectionTable(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"Error: no such table"`: "pattern error", `"ValueError: bad"`: "pattern error", `"\nfatal: not a git repository"`: "pattern error", `"[panic] failed!"`: "ok",
		`"HTTP 404"`: "pattern status", `"status code: 503"`: "pattern status", `"HTTP 200"`: "ok", `"Room 404 is free."`: "ok",
		`"Traceback (most recent call last):\n  File"`: "pattern traceback", `"   at Object.run (/a/b.js:12:3)"`: "pattern traceback",
		`"The error of measurement is small."`: "ok", `"No errors."`: "ok", `""`: "ok", `5`: "ok", `[]`: "ok",
		`{"error": null, "rows": []}`: "ok", `{"error": "late"}`: "member error", `{"errors": []}`: "ok", `{"errors": [1]}`: "member errors", `{"error": 0}`: "ok", `{"error": 0.5}`: "member error",
		`{"exception": {"a": 1}}`: "member exception", `{"ok": false}`: "member ok", `{"success": true}`: "ok", `{"success": false}`: "member success",
		`{"status": "failed"}`: "member status", `{"status": "done"}`: "ok", `"{\"error\": \"late\"}"`: "member error",
	} {
		r := play(t, weir.Options{}, `
weir: 1
name: f
nodes:
  check: {type: errorDetection, in: {value: `+value+`}}
  bad: {type: template, in: {f: "{{ check.failed }}"}, with: {text: "{{ inputs.f.by }} {{ inputs.f.name }}"}}
  good: {type: template, after: check.ok, with: {text: ok}}
  end: {type: merge, in: {value: ["{{ bad.text }}", "{{ good.text }}"]}}
outputs: {found: "{{ end.value }}"}
`, nil, nil)
		if got, err := weir.Output[string](r, "found"); err != nil || got != want {
			t.Errorf("%s: %q, want %q (%v %v)", value, got, want, err, r.Error)
		}
	}
}

const redactFlow = `
weir: 1
name: hide
inputs: {mail: {type: text}}
nodes:
  hide: {type: redactor, in: {value: "{{ run.inputs.mail }}"}}
  more: {type: redactor, in: {value: "Also bob@example.com, and {{ run.inputs.mail }}", map: "{{ hide.map }}"}}
outputs: {text: "{{ hide.value }}", more: "{{ more.value }}", map: "{{ more.map }}"}
`

const restoreFlow = `
weir: 1
name: show
inputs: {text: {type: text}, map: {type: object}}
nodes:
  show: {type: redactor, in: {value: "{{ run.inputs.text }}", map: "{{ run.inputs.map }}"}, with: {mode: restore}}
outputs: {text: "{{ show.value }}", unknown: "{{ show.unknown }}"}
`

func outputOf(r weir.Result, name string) any {
	v, _ := r.Outputs.Get(name)
	return v
}

// TestPrivateMapIsKeptForItsUserOnly redacts as one user and restores as the same user, as another, as nobody, and after the user's
// run was deleted.
func TestPrivateMapIsKeptForItsUserOnly(t *testing.T) {
	t.Parallel()
	w := open(t, weir.Options{Store: memory.New()})
	start := func(id, user, text string, inputs map[string]any) weir.Result {
		t.Helper()
		f, err := w.Parse("flow.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), f, weir.Start{ID: id, User: user, Inputs: inputs})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	hidden := start("one", "ada", redactFlow, map[string]any{"mail": "ada@example.com"})
	if outputOf(hidden, "more") != "Also [EMAIL_2], and [EMAIL_1]" {
		t.Fatalf("%v %v", hidden.Outputs, hidden.Error)
	}
	if text := fmt.Sprint(outputOf(hidden, "map")); strings.Contains(text, "example.com") {
		t.Errorf("the handle has a private text: %s", text)
	}
	show := map[string]any{"text": "[EMAIL_1] [EMAIL_2] [EMAIL_3]", "map": outputOf(hidden, "map")}
	r := start("two", "ada", restoreFlow, show)
	if outputOf(r, "text") != "ada@example.com bob@example.com [EMAIL_3]" || fmt.Sprint(outputOf(r, "unknown")) != "[[EMAIL_3]]" {
		t.Errorf("restored %v, %v", r.Outputs, r.Error)
	}
	for id, user := range map[string]string{"three": "bert", "four": ""} {
		if r := start(id, user, restoreFlow, show); r.Error == nil || r.Error.Code != engine.CodeRedactionLost {
			t.Errorf("user %q: %v %v", user, r.Outputs, r.Error)
		}
	}
	anonymous := start("five", "", redactFlow, map[string]any{"mail": "ada@example.com"})
	show["map"] = outputOf(anonymous, "map")
	if r := start("six", "", restoreFlow, show); r.Error == nil || r.Error.Code != engine.CodeRedactionLost {
		t.Errorf("another run without user: %v %v", r.Outputs, r.Error)
	}
}

// TestPrivateTextIsNotInTheEffectsOfARedactor reads the events of a run whose input is private: beyond the inputs, only what is
// restored has it.
func TestPrivateTextIsNotInTheEffectsOfARedactor(t *testing.T) {
	t.Parallel()
	w := open(t, weir.Options{Store: memory.New()})
	f, err := w.Parse("flow.yaml", []byte(redactFlow))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run", User: "ada", Inputs: map[string]any{"mail": "ada@example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for item, err := range w.Follow(t.Context(), "run", "") {
		if err != nil {
			t.Fatal(err)
		}
		switch e := item.Event.(type) {
		case *engine.EffectCompleted:
			seen++
			if text := fmt.Sprint(e.Result); strings.Contains(text, "ada@example.com") {
				t.Errorf("the effect %s has %s", e.Key, text)
			}
		case *engine.NodeCompleted:
			if text := fmt.Sprint(e.Outputs); strings.Contains(text, "ada@example.com") {
				t.Errorf("the outputs of %s are %s", e.Path, text)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d effects, want 2", seen)
	}
}

func TestSemanticToolsOfferWhatFitsTheRequest(t *testing.T) {
	t.Parallel()
	about := map[string]string{
		"sendMail": "Sends an e-mail to somebody.", "read_calendar": "Lists appointments of a day.", "createInvoice": "Makes a bill for a customer.",
		"weather": "Temperature and rain of a place.", "search": "Finds pages on the web.",
	}
	var tools []*tool.Tool
	for name, text := range about {
		tools = append(tools, &tool.Tool{
			Name: name, Description: text, ReadOnly: true, Parameters: map[string]any{"type": "object", "properties": map[string]any{"place": map[string]any{"type": "string", "description": "a city"}}},
			Call: func(context.Context, tool.Call) (string, error) { return "", nil },
		})
	}
	all := []string{"createInvoice", "read_calendar", "search", "sendMail", "weather"}
	for _, c := range []struct {
		with string
		want []string
	}{
		{`query: "Will it rain tomorrow? What is the temperature?", limit: 1`, []string{"weather"}},
		{`query: "the APPOINTMENTS of Monday", limit: 2, always: [search]`, []string{"search", "read_calendar"}},
		{`query: "write an invoice", limit: 1`, []string{"createInvoice"}},
		{`query: "qwertz"`, all},
		{`query: "qwertz", noMatch: none`, nil},
		{`query: "qwertz", noMatch: none, always: [search]`, []string{"search"}},
		{`query: "rain", tools: [search, sendMail]`, []string{"search", "sendMail"}},
		{`query: "city", limit: 2`, []string{"createInvoice", "read_calendar"}},
	} {
		r := play(t, weir.Options{Tools: tools}, "weir: 1\nname: f\nnodes:\n  pick: {type: semanticTools, with: {"+c.with+"}}\noutputs: {names: \"{{ pick.toolNames }}\"}\n", nil, nil)
		got, err := weir.Output[[]string](r, "names")
		if c.with == `query: "city", limit: 2` {
			if len(got) != 2 { // all have the term; descriptions of different length decide
				t.Errorf("%s: %v", c.with, got)
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %v, want %v (%v %v)", c.with, got, c.want, err, r.Error)
		}
	}
}

func TestBudgetGuardRefusesModelsWithoutPrice(t *testing.T) {
	t.Parallel()
	child := "weir: 1\nname: child\ncontext: {model: echo/one}\nnodes:\n  ask: {type: llmRequest, in: {message: hi}}\n"
	for nodes, want := range map[string]string{
		"{type: llmRequest, in: {message: hi}}\n  guard: {type: budgetGuard, after: ask, with: {maxCost: 1, maxCalls: 5}}\n": engine.CodeModelUnpriced,
		"{type: flow, with: {flow: child.yaml}}\n  guard: {type: budgetGuard, after: ask, with: {maxCost: 1}}\n":             engine.CodeModelUnpriced,
		"{type: llmRequest, in: {message: hi}}\n  guard: {type: budgetGuard, after: ask, with: {maxCalls: 5}}\n":             "",
		"{type: flow, with: {flow: child.yaml}}\n  guard: {type: budgetGuard, after: ask, with: {maxCalls: 5}}\n":            "",
	} {
		w := open(t, weir.Options{Store: memory.New(), Providers: map[string]llm.Provider{"echo": &weirkit.RepeatingModel{}}})
		f, err := w.ParseIn(flow.MemFiles(map[string]string{"child.yaml": child}), "flow.yaml", []byte("weir: 1\nname: f\ncontext: {model: echo/one}\nnodes:\n  ask: "+nodes+"outputs: {calls: \"{{ guard.used.calls }}\"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && (r.Error != nil || outputOf(r, "calls") != int64(1)) {
			t.Errorf("%s: %v %v", nodes, r.Outputs, r.Error)
		}
		if want != "" && (r.Error == nil || r.Error.Code != want || !strings.Contains(r.Error.Message, "guard")) {
			t.Errorf("%s: %v, want %s", nodes, r.Error, want)
		}
	}
}

// TestExtractMemoriesWritesEachItemOnce fails the node after its first item: the next attempt writes only what is missing.
func TestExtractMemoriesWritesEachItemOnce(t *testing.T) {
	t.Parallel()
	store := memory.New()
	tools, err := memorytool.Tools(store, memorytool.Options{Namespace: "desk"})
	if err != nil {
		t.Fatal(err)
	}
	writes := 0
	for _, tl := range tools {
		if tl.Name != memorytool.Write {
			continue
		}
		write := tl.Call
		tl.Call = func(ctx context.Context, c tool.Call) (string, error) {
			if writes++; writes == 2 {
				return "", fmt.Errorf("down: %w", tool.ErrNotMade)
			}
			return write(ctx, c)
		}
	}
	const answer = `{"items": [{"kind": "fact", "key": "tea", "text": "Drinks tea."}, {"kind": "episode", "key": "none", "text": "Called."}, {"kind": "fact", "text": "Is tall."}]}`
	w := open(t, weir.Options{Store: store, Tools: tools, Replay: recorded.NewScriptedTurns(weirtest.Says(answer, answer), nil)})
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: f
context: {model: script/demo}
nodes:
  learn: {type: extractMemories, in: {text: hi}, with: {kinds: [fact, episode]}, retry: {attempts: 3, backoff: 1ms}}
  find: {type: recall, after: learn}
outputs: {count: "{{ learn.count }}", total: "{{ find.total }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run", User: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || fmt.Sprint(r.Outputs.Map()) != "map[count:3 total:3]" {
		t.Errorf("%v %v %v, %d writes", r.Outputs, r.Error, err, writes)
	}
}
