package llm_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/tool"
)

func TestModelsFindTheirProvider(t *testing.T) {
	t.Parallel()
	two := map[string]llm.Provider{"a": recorded.NewScripted("x"), "b": recorded.NewScripted("x")}
	one := map[string]llm.Provider{"a": recorded.NewScripted("x")}
	for _, c := range []struct {
		name      string
		providers map[string]llm.Provider
		set       convo.Settings
		turn      llm.Turn
		want      string // "provider model", or what the error says
	}{
		{"in the model", two, convo.Settings{Model: "a/m"}, llm.Turn{}, "a m"},
		{"only the first slash counts", two, convo.Settings{Model: "b/meta/llama"}, llm.Turn{}, "b meta/llama"},
		{"beside the model", two, convo.Settings{Provider: "b", Model: "meta/llama"}, llm.Turn{}, "b meta/llama"},
		{"both", two, convo.Settings{Provider: "b", Model: "b/m"}, llm.Turn{}, "b m"},
		{"model overridden", two, convo.Settings{Model: "a/m"}, llm.Turn{Model: "b/n"}, "b n"},
		{"model overridden, provider kept", two, convo.Settings{Provider: "a", Model: "m"}, llm.Turn{Model: "n"}, "a n"},
		{"provider overridden", two, convo.Settings{Provider: "a", Model: "m"}, llm.Turn{Provider: "b"}, "b m"},
		{"the only one", one, convo.Settings{Model: "m"}, llm.Turn{}, "a m"},
		{"unknown", two, convo.Settings{Model: "c/m"}, llm.Turn{}, `no provider is named "c" (configured: a, b)`},
		{"not said", two, convo.Settings{Model: "m"}, llm.Turn{}, `model "m" has no provider`},
		{"nothing said", two, convo.Settings{}, llm.Turn{}, "no model is set: write it as provider/model (configured: a, b)"},
		{"none there", nil, convo.Settings{Model: "a/m"}, llm.Turn{}, `no provider is named "a" (none is configured)`},
	} {
		c.turn.Context = convo.NewManager(convo.Context{ID: "c", Settings: c.set}, true)
		c.turn.Message = said("", "hi")
		h := newAttempt(t.Context())
		_, err := llm.NewService(llm.Options{Providers: c.providers}).Turn(t.Context(), h, c.turn)
		got := ""
		if err == nil {
			got = h.reqs[0].Provider + " " + h.reqs[0].Model
		} else {
			wantCode(t, err, "model_unknown_provider")
			if got = err.Error(); !errors.Is(err, llm.ErrNoProvider) || h.models != 0 || c.turn.Context.Adds() != 0 {
				t.Errorf("%s: %v after %d calls and %d messages", c.name, err, h.models, c.turn.Context.Adds())
			}
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAReplayAnswersForEveryProvider(t *testing.T) {
	t.Parallel()
	s := llm.NewService(llm.Options{Replay: recorded.NewScripted("from the tape")})
	r, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Model: "openai/gpt", Message: said("", "hi")})
	if err != nil || r.Text != "from the tape" {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestATurnOverridesTheSettingsOfItsContext(t *testing.T) {
	t.Parallel()
	cold, warm := 0.0, 0.7
	set := convo.Settings{Model: "p/m", System: "kind", Temperature: &warm, MaxOutput: 100, Reasoning: "low"}
	schema := map[string]any{"type": "object"}
	look := echo("look")
	look.Description, look.Parameters = "looks", schema
	base := llm.Request{Provider: "p", Model: "m", System: "kind", Temperature: &warm, MaxOutput: 100, Reasoning: "low"}
	over := llm.Request{
		Provider: "p", Model: "m", System: "strict", Temperature: &cold, MaxOutput: 5, Reasoning: "high", Schema: schema,
		Tools: []llm.Tool{{Name: "look", Description: "looks", Parameters: schema}},
	}
	for _, c := range []struct {
		turn llm.Turn
		want llm.Request
	}{
		{llm.Turn{}, base},
		{llm.Turn{
			System: "strict", Temperature: &cold, MaxOutput: 5, Reasoning: "high", Schema: schema,
			Tools: []*tool.Tool{look, look},
		}, over},
	} {
		c.turn.Context = convo.NewManager(convo.Context{ID: "c", Settings: set}, true)
		c.turn.Message = said("", "hi")
		h := newAttempt(t.Context())
		if _, err := service(recorded.NewScripted(`{"a":"x"}`)).Turn(t.Context(), h, c.turn); err != nil {
			t.Fatal(err)
		}
		got := llm.Apart(*h.reqs[0])
		got.Messages, got.AnswerPosition = nil, 0
		if c.want.Estimate = got.Estimate; got.Estimate.Input == 0 || got.Estimate.Output == 0 {
			t.Errorf("estimated at %+v", got.Estimate)
		}
		c.want.Unpriced = true
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("asked for %+v, want %+v", got, c.want)
		}
	}
}

func TestTheCanonicalFormIsWhatTheModelIsSent(t *testing.T) {
	t.Parallel()
	r := &llm.Request{
		Key: "run/a#1", Model: "m", System: "<kind>", MaxOutput: 3, Schema: map[string]any{"b": 1, "a": "x"},
		Messages: []convo.Message{{
			ID: "1", Role: convo.User, Text: "hi", Reasoning: "secret", Pinned: true, Priority: 3,
			Metadata: convo.Metadata{"k": 1}, Native: []byte(`{"z":1.0,"a":2}`),
		}},
	}
	got, err := r.Canonical()
	want := `{"model":"m","system":"<kind>","messages":[{"role":"user","text":"hi","native":{"a":2,"z":1}}],"max_output":3,"schema":{"a":"x","b":1}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s\nwant %s\n%v", got, want, err)
	}
	r.Messages = nil
	if got, err = r.Canonical(); err != nil || !strings.Contains(string(got), `"messages":[]`) {
		t.Errorf("no messages are %s, %v", got, err)
	}
	r.Schema = map[string]any{"f": func() {}}
	if _, err = r.Canonical(); err == nil {
		t.Error("a function in a schema was taken")
	}
}
