package llm_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// demandFor has for each ability, by its name in the configuration, a request that needs it.
func demandFor() map[string]llm.Demands {
	cold := 0.2
	return map[string]llm.Demands{
		"tools":                    {Tools: true},
		"schema":                   {Schema: true},
		"images":                   {Images: true},
		"pdf":                      {PDF: true},
		"temperature":              {Temperature: &cold},
		"temperatureWithReasoning": {Temperature: &cold, Reasoning: "low"},
		"reasoning":                {Reasoning: "high"},
		"thinkingBudget":           {Reasoning: "4096"},
	}
}

// abilitiesWith returns abilities of which only the one with that name is known.
func abilitiesWith(t *testing.T, name string, takes bool) *llm.Abilities {
	t.Helper()
	a := reflect.New(reflect.TypeFor[llm.Abilities]()).Elem()
	for i := range a.NumField() {
		if strings.TrimSuffix(a.Type().Field(i).Tag.Get("json"), ",omitempty") == name {
			a.Field(i).Set(reflect.ValueOf(&takes))
			return a.Addr().Interface().(*llm.Abilities)
		}
	}
	t.Fatalf("there is no ability %s", name)
	return nil
}

func TestEachAbilityRefusesTheRequestsThatNeedIt(t *testing.T) {
	t.Parallel()
	demands := demandFor()
	if n := reflect.TypeFor[llm.Abilities]().NumField(); n != len(demands) {
		t.Fatalf("%d abilities and %d requests", n, len(demands))
	}
	for ability := range demands {
		for demand, d := range demands {
			for _, known := range []string{"unknown", "true", "false"} {
				checkRefusal(t, ability, known, demand, d)
			}
		}
	}
}

// checkRefusal compares the refusals of a request by a model of which one ability is known.
func checkRefusal(t *testing.T, ability, known, demand string, d llm.Demands) {
	t.Helper()
	// A request that needs one ability may need others too.
	also := map[string][]string{
		"temperature": {"temperatureWithReasoning"},
		"reasoning":   {"temperatureWithReasoning", "thinkingBudget"},
	}
	m := llm.Model{Name: "p/m"}
	if known != "unknown" {
		m.Takes = abilitiesWith(t, ability, known == "true")
	}
	var got, want []string
	for _, r := range m.Refusals(d) {
		got = append(got, r.Demand)
	}
	if known == "false" && (ability == demand || slices.Contains(also[ability], demand)) {
		want = []string{ability}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s %s, request that needs %s: refused for %v, want %v", ability, known, demand, got, want)
	}
}

func TestRequestsThatNeedNothingAreNotRefused(t *testing.T) {
	t.Parallel()
	no, one := false, 1.0
	m := llm.Model{MaxOutput: 100, Takes: &llm.Abilities{
		Tools: &no, Schema: &no, Images: &no, PDF: &no, Temperature: &no, TemperatureWithReasoning: &no, Reasoning: &no, ThinkingBudget: &no,
	}}
	for _, d := range []llm.Demands{{}, {Temperature: &one}, {Reasoning: "none"}, {Reasoning: "0"}, {MaxOutput: 100}} {
		if r := m.Refusals(d); r != nil {
			t.Errorf("%+v is refused: %v", d, r)
		}
	}
	if r := m.Refusals(llm.Demands{MaxOutput: 101}); len(r) != 1 || r[0].Demand != "maxOutput" {
		t.Errorf("more output than the model has: %v", r)
	}
}

func TestAbilitiesAreOverriddenOneByOne(t *testing.T) {
	t.Parallel()
	for ability := range demandFor() {
		for _, takes := range []bool{true, false} {
			c := llm.NewCatalogue(llm.Model{Name: "openai/o1-mini", Takes: abilitiesWith(t, ability, takes)})
			own, _ := c.Find("openai", "o1-mini")
			table, _ := llm.NewCatalogue().Find("openai", "o1-mini")
			a, b := reflect.ValueOf(*own.Takes), reflect.ValueOf(*table.Takes)
			for i := range a.NumField() {
				name := strings.TrimSuffix(a.Type().Field(i).Tag.Get("json"), ",omitempty")
				switch {
				case name == ability && (a.Field(i).IsNil() || a.Field(i).Elem().Bool() != takes):
					t.Errorf("%s: %t is not set", ability, takes)
				case name != ability && a.Field(i).Interface() != b.Field(i).Interface():
					t.Errorf("%s: %t changes %s", ability, takes, name)
				}
			}
		}
	}
}

// TestTheTableOfAbilities has one case of each source of the table.
func TestTheTableOfAbilities(t *testing.T) {
	t.Parallel()
	demands := demandFor()
	c := llm.NewCatalogue()
	c.Vendors = map[string]string{"work": "anthropic"}
	for model, want := range map[string]string{
		"openai/o1-mini":                     "images pdf reasoning schema temperature temperatureWithReasoning thinkingBudget tools",
		"openai/o3-mini-2025-01-31":          "images pdf temperature temperatureWithReasoning thinkingBudget",
		"openai/gpt-5-mini-2025-08-07":       "temperature temperatureWithReasoning thinkingBudget",
		"openai/gpt-5.2":                     "temperatureWithReasoning thinkingBudget",
		"openai/gpt-4.1":                     "reasoning temperatureWithReasoning thinkingBudget",
		"openai/gpt-4-vision-preview":        "reasoning schema temperatureWithReasoning thinkingBudget",
		"anthropic/claude-opus-4-8":          "temperature temperatureWithReasoning",
		"work/claude-sonnet-4-5-20250929":    "temperatureWithReasoning",
		"anthropic/claude-3-haiku-20240307":  "reasoning temperatureWithReasoning thinkingBudget",
		"gemini/gemini-2.0-flash-001":        "reasoning temperatureWithReasoning thinkingBudget",
		"gemini/gemini-2.5-pro":              "",
		"local/gpt-5":                        "",
		"openai/a-model-that-nobody-knows":   "",
		"script/anything":                    "",
		"openai/gpt-4o-2024-05-13":           "reasoning schema temperatureWithReasoning thinkingBudget",
		"openai/gpt-5.5-pro":                 "schema thinkingBudget",
		"anthropic/claude-fable-5-1-preview": "temperature temperatureWithReasoning",
	} {
		provider, name := llm.SplitModel(model)
		m, _ := c.Find(provider, name)
		var got []string
		for demand, d := range demands {
			if m.Refusals(d) != nil {
				got = append(got, demand)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s refuses %v, want %s", model, got, want)
		}
	}
}

// filePart returns a part of a message for an ability.
func filePart(ability string) convo.Part {
	if ability == "images" {
		return convo.Part{Kind: "image", MIME: "image/png", Data: []byte("png")}
	}
	return convo.Part{Kind: "file", MIME: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")}
}

// demandingTurn returns a turn that needs an ability.
func demandingTurn(ability string) llm.Turn {
	d := demandFor()[ability]
	turn := llm.Turn{Model: "p/a", Temperature: d.Temperature, Reasoning: d.Reasoning, Message: said("", "hi")}
	if d.Tools {
		turn.Tools = append(turn.Tools, echo("look"))
	}
	if d.Schema {
		turn.Schema = map[string]any{"type": "object"}
	}
	if d.Images || d.PDF {
		turn.Message.Parts = []convo.Part{filePart(ability)}
	}
	return turn
}

func TestACallThatAModelDoesNotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	for ability := range demandFor() {
		for _, place := range []string{"turn", "context", "fallback", "none of the models", "replay", "history"} {
			p := &countingProvider{text: `{}`}
			o := llm.Options{Providers: map[string]llm.Provider{"p": p}, Models: llm.NewCatalogue(
				llm.Model{Name: "p/a", Takes: abilitiesWith(t, ability, false)},
				llm.Model{Name: "p/b", Takes: abilitiesWith(t, ability, place != "none of the models")},
			)}
			turn, want := demandingTurn(ability), ""
			switch place {
			case "context":
				turn.Context = convo.NewManager(convo.Context{ID: "c", Settings: convo.Settings{Model: "p/a", Temperature: turn.Temperature, Reasoning: turn.Reasoning}}, true)
				turn.Model, turn.Temperature, turn.Reasoning = "", nil, ""
			case "fallback":
				turn.Model, turn.Fallback, want = "", &llm.Fallback{Models: []string{"p/a", "p/b"}, On: []string{"model_filtered"}}, "b"
			case "none of the models":
				turn.Model, turn.Fallback = "", &llm.Fallback{Models: []string{"p/a", "p/b"}}
			case "replay":
				o.Replay, want = p, "a"
			case "history":
				turn.Context = convo.NewManager(convo.Context{ID: "c"}, true)
				if _, err := turn.Context.Add(*turn.Message); err != nil {
					t.Fatal(err)
				}
				turn.Message = nil
			}
			_, err := llm.NewService(o).Turn(t.Context(), newAttempt(t.Context()), turn)
			if got := strings.Join(p.asked(), " "); got != want || (err == nil) != (want != "") {
				t.Errorf("%s, %s: asked %q, want %q: %v", ability, place, got, want, err)
			}
			if want == "" {
				wantCode(t, err, "model_unsupported")
			}
		}
	}
}

// countingProvider answers with a text and records which models were asked.
type countingProvider struct {
	text string
	mu   sync.Mutex
	got  []string
}

func (p *countingProvider) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// Generate implements llm.Provider.
func (p *countingProvider) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, req.Model)
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: p.text}}, nil
}
