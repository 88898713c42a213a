package runner_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/tool"
)

// askingSettings has, for each type that asks models, its inputs and the settings that it must
// have. needs are the abilities that it always needs.
type askingSettings struct {
	in, with string
	needs    []string
	without  []string // the demands that no setting of the type makes
}

func askingTypes() map[string]askingSettings {
	noTools, noSchema := []string{"tools"}, []string{"schema"}
	return map[string]askingSettings{
		"llmRequest":      {in: "message: hi"},
		"agent":           {in: "message: hi"},
		"categorizer":     {in: "message: hi", with: "categories: [a, b]", needs: noSchema, without: noTools},
		"extract":         {in: "message: hi", with: "schema: {type: object}", needs: noSchema, without: noTools},
		"extractMemories": {needs: noSchema, without: noTools},
		"errorDetection":  {in: "value: hi", with: "ask: Is it an error?", needs: noSchema, without: noTools},
		"redactor":        {in: "value: hi", with: "ask: names", needs: noSchema, without: noTools},
		"summarize":       {in: "text: hi", without: []string{"tools", "schema"}},
		"action":          {with: "prompt: Count to three", without: noSchema},
		"decision":        {with: "prompt: Count to three, branches: [a, b]", without: noSchema},
		"newContext":      {without: []string{"tools", "schema"}},
	}
}

// demandSettings are the settings by which a node, or a context, needs an ability.
func demandSettings() map[string]string {
	return map[string]string{
		"tools": "", "schema": "schema: {type: object}", "temperature": "temperature: 0.2",
		"temperatureWithReasoning": "temperature: 0.2, reasoning: low", "reasoning": "reasoning: high", "thinkingBudget": "thinkingBudget: 4096",
		"maxOutput": "maxOutput: 200",
	}
}

// askingFlow returns a flow with a node that needs an ability, and its model in a place.
func askingFlow(typ string, s askingSettings, demand, where, models string) (yaml, override string) {
	with, context, in := []string{s.with}, []string{}, []string{s.in}
	setting := demandSettings()[demand]
	switch {
	case slices.Contains(s.needs, demand):
	case demand == "tools" && (typ == "action" || typ == "decision"):
		with = append(with, "tools: [look]")
	case demand == "tools":
		in = append(in, "tools: [look]")
	case where == "context":
		context = append(context, setting)
	default:
		with = append(with, setting)
	}
	switch models {
	case "model of the node":
		with = append(with, "model: fake/a")
	case "models of the node":
		with = append(with, "models: [other/b, fake/a]")
	case "model of the context":
		context = append(context, "model: fake/a")
	case "models of the context":
		context = append(context, "models: [other/b, fake/a]")
	case "model of the run":
		context, override = append(context, "model: other/b"), "fake/a"
	}
	list := func(of []string) string {
		return strings.Join(slices.DeleteFunc(of, func(s string) bool { return s == "" }), ", ")
	}
	yaml = fmt.Sprintf("weir: 1\nname: asks\ncontext: {%s}\nnodes:\n  n: {type: %s, in: {%s}, with: {%s}}\n", list(context), typ, list(in), list(with))
	return yaml, override
}

// TestEveryTypeThatAsksModelsIsComparedWithThem enumerates types, demands, places of the
// setting and places of the model.
func TestEveryTypeThatAsksModelsIsComparedWithThem(t *testing.T) {
	t.Parallel()
	types, err := node.NewCatalogue(builtin.Types()...)
	if err != nil {
		t.Fatal(err)
	}
	table := askingTypes()
	for _, spec := range types.Specs() {
		asks := spec.NewContext || spec.AsksModels != nil && (spec.AsksModels(nil) || spec.AsksModels(map[string]any{"ask": "x", "prompt": "x"}))
		if _, listed := table[spec.Name]; asks != listed {
			t.Errorf("%s asks models: %t, listed: %t", spec.Name, asks, listed)
		}
	}
	checked := 0
	for typ, s := range table {
		checked += checkAskingTypeEverywhere(t, types, typ, s)
	}
	if checked < 400 {
		t.Errorf("only %d combinations were checked", checked)
	}
}

// checkAskingTypeEverywhere checks all combinations of one type, and returns their number.
func checkAskingTypeEverywhere(t *testing.T, types *node.Catalogue, typ string, s askingSettings) (checked int) {
	t.Helper()
	for demand := range demandSettings() {
		for _, where := range []string{"node", "context"} {
			for _, models := range []string{"model of the node", "models of the node", "model of the context", "models of the context", "model of the run"} {
				if checkAskingType(t, types, typ, s, demand, where, models) {
					checked++
				}
			}
		}
	}
	return checked
}

// checkAskingType checks one combination, and reports whether it exists.
func checkAskingType(t *testing.T, types *node.Catalogue, typ string, s askingSettings, demand, where, models string) bool {
	t.Helper()
	inContext := demand != "tools" && demand != "schema" && demand != "thinkingBudget"
	if slices.Contains(s.without, demand) || where == "context" && !inContext {
		return false
	}
	code := typ == "action" || typ == "decision"
	if code && models == "models of the node" {
		return false // models are those of their agents
	}
	text, override := askingFlow(typ, s, demand, where, models)
	name := strings.Join([]string{typ, demand, where, models}, ", ")
	f, err := flow.Source{}.Parse("flow.yaml", []byte(text), types)
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
		return false
	}
	for _, takes := range []bool{false, true} {
		m := llm.Model{Name: "fake/a", MaxOutput: 100}
		switch {
		case demand != "maxOutput":
			m.MaxOutput, m.Takes = 0, abilityNamed(demand, takes)
		case takes:
			m.MaxOutput = 200
		}
		err := runner.CheckModels(f, types, llm.NewCatalogue(m), override)
		invalid, _ := errors.AsType[*flow.Invalid](err)
		switch {
		case takes && err != nil:
			t.Errorf("%s: refused by a model that takes it: %v", name, err)
		case !takes && (invalid == nil || len(invalid.Problems) != 1 || invalid.Problems[0].Code != engine.CodeModelUnsupported):
			t.Errorf("%s: not refused: %v\n%s", name, err, text)
		case !takes && (invalid.Problems[0].Pos.Line == 0 || !strings.Contains(err.Error(), "fake/a")):
			t.Errorf("%s: the problem has no place or no model: %v", name, err)
		}
	}
	return true
}

func abilityNamed(name string, takes bool) *llm.Abilities {
	return map[string]*llm.Abilities{
		"tools": {Tools: &takes}, "schema": {Schema: &takes}, "temperature": {Temperature: &takes},
		"temperatureWithReasoning": {TemperatureWithReasoning: &takes}, "reasoning": {Reasoning: &takes}, "thinkingBudget": {ThinkingBudget: &takes},
	}[name]
}

// TestAFlowThatItsModelsDoNotTakeIsRefusedEverywhere opens Weir, where flows are loaded, started
// and used by sessions.
func TestAFlowThatItsModelsDoNotTakeIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	no := false
	models := &faultyModels{}
	open := func(o weir.Options) *weir.Weir {
		o.Providers = map[string]weir.Provider{"fake": models}
		w, err := weir.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close(t.Context()) })
		return w
	}
	w := open(weir.Options{Models: llm.NewCatalogue(llm.Model{Name: "fake/a", Takes: &llm.Abilities{Temperature: &no}})})
	const text = "weir: 1\nname: cold\ncontext: {temperature: 0.2%s}\ninputs: {message: {type: text, default: hi}}\nnodes:\n  n: {type: llmRequest, in: {message: \"{{ run.inputs.message }}\"}}\noutputs: {text: \"{{ n.text }}\"}\n"
	cold := []byte(fmt.Sprintf(text, ", model: fake/a"))
	wantUnsupported := func(where string, err error) {
		t.Helper()
		if invalid, ok := errors.AsType[*flow.Invalid](err); !ok || invalid.Problems[0].Code != engine.CodeModelUnsupported {
			t.Errorf("%s: %v", where, err)
		}
	}
	_, err := w.Parse("cold.yaml", cold)
	wantUnsupported("load", err)
	loaded, err := open(weir.Options{}).Parse("cold.yaml", cold)
	if err != nil {
		t.Fatalf("a model of which nothing is known: %v", err)
	}
	_, err = w.Start(t.Context(), loaded, weir.Start{})
	wantUnsupported("start", err)
	_, err = w.Session(t.Context(), loaded, weir.SessionOptions{User: "ann"})
	wantUnsupported("session", err)
	free, err := w.Parse("free.yaml", []byte(fmt.Sprintf(text, "")))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Start(t.Context(), free, weir.Start{Model: "fake/a"})
	wantUnsupported("start with a model", err)
	// The model of one message is known only when its round asks it.
	s, err := w.Session(t.Context(), free, weir.SessionOptions{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := s.Send(t.Context(), "hi", weir.SendOptions{Model: "fake/a"})
	if err != nil {
		t.Fatal(err)
	}
	state, err := reply.Wait(t.Context())
	if err != nil || state.Error == nil || state.Error.Code != engine.CodeModelUnsupported {
		t.Errorf("a round: %+v, %v", state, err)
	}
	if len(models.calls) != 0 {
		t.Errorf("models were asked: %v", models.calls)
	}
}

// TestAModelThatDoesNotTakeToolsIsPassedOver has tools that come by a value, and a process that
// dies while the next model answers. The process that continues has another table: what the
// journal says holds.
func TestAModelThatDoesNotTakeToolsIsPassedOver(t *testing.T) {
	t.Parallel()
	no := false
	const text = `
weir: 1
name: passed-over
budget: {maxTokens: 100000}
inputs: {tools: {type: list, default: [look]}}
nodes:
  ask: {type: llmRequest, in: {message: hi, tools: "{{ run.inputs.tools }}"}, with: {models: [fake/a, fake/b]}}
outputs: {said: "{{ ask.text }}"}
`
	look := &weir.Tool{
		Name: "look", Description: "Looks.", Parameters: map[string]any{"type": "object"}, ReadOnly: true,
		Call: func(context.Context, tool.Call) (string, error) { return "seen", nil },
	}
	file := filepath.Join(t.TempDir(), "weir.db")
	open := func(m *faultyModels, models ...llm.Model) *weir.Weir {
		return weirkit.Open(t, weir.Options{
			Store: weirkit.OpenSQLite(t, file), Providers: map[string]weir.Provider{"fake": m}, Models: llm.NewCatalogue(models...), Tools: []*weir.Tool{look},
		})
	}
	m := &faultyModels{hold: make(chan struct{}), begun: make(chan struct{}, 1)}
	w := open(m, llm.Model{Name: "fake/a", Takes: &llm.Abilities{Tools: &no}})
	weirkit.StartText(t, w, text)
	<-m.begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	_ = w.Close(ctx)
	cancel()
	if want := []string{"b ask/model#1.2"}; !slices.Equal(m.calls, want) {
		t.Errorf("the calls were %q, want %q", m.calls, want)
	}
	m = &faultyModels{}
	w = open(m)
	run, err := w.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	if said, _ := r.Outputs.Get("said"); said != "b" || !slices.Equal(m.calls, []string{"b ask/model#1.2"}) {
		t.Errorf("said %v after the calls %q: %v", said, m.calls, r.Error)
	}
	if want := []string{"ask/model#1 model_unsupported", "ask/model#1.2 ok"}; !slices.Equal(effectsOf(t, w, "run"), want) {
		t.Errorf("the effects are %q, want %q", effectsOf(t, w, "run"), want)
	}
	if r.Usage.Calls > 2 { // the answer, and the call in flight when the process died
		t.Errorf("a call that was not sent is charged: %+v", r.Usage)
	}
}
