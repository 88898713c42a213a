package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/llmtest"
)

// interleaved returns an answer that thinks, speaks, calls, thinks and calls again.
func interleaved() llmtest.Turn {
	thinkOn := func(index string) string {
		return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"thinking","thinking":"","signature":""}}`
	}
	delta := func(index, kind, field, text string) string {
		return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"` + kind + `","` + field + `":"` + text + `"}}`
	}
	off := func(index string) string { return `{"type":"content_block_stop","index":` + index + `}` }
	return raw(
		start,
		thinkOn("0"), delta("0", "thinking_delta", "thinking", "First <this>"), delta("0", "signature_delta", "signature", "sig+1"), off("0"),
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"sealed=="}}`, off("1"),
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":null}}`, delta("2", "text_delta", "text", "So."), off("2"),
		toolOn("3", "a", "{}"), blockFields("3", `{\"z\": 1, \"a\": 2}`), off("3"),
		thinkOn("4"), delta("4", "thinking_delta", "thinking", "Then that."), delta("4", "signature_delta", "signature", "sig+2"), off("4"),
		toolOn("5", "b", "{}"), off("5"),
		ending("tool_use"), stopped,
	)
}

func TestInterleavedThoughtComesBackInItsOrder(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, interleaved())
	p := anthropic.New(anthropic.Options{BaseURL: s.Root})
	tools := []llm.Tool{{Name: "ping"}}
	res, err := p.Generate(t.Context(), &llm.Request{Model: sonnet, Messages: []convo.Message{user("a")}, Tools: tools, Reasoning: "low"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := res.Message
	if m.Provider != "anthropic" || m.Reasoning != "First <this>\n\nThen that." || len(m.Calls) != 2 {
		t.Fatalf("the answer is %+v", m)
	}
	next := func(m convo.Message, model string) string {
		body, err := p.Body(&llm.Request{
			Model: model, Tools: tools, Reasoning: "low",
			Messages: []convo.Message{user("a"), m, result("a", "1"), result("b", "2")},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range llmtest.CheckAnthropic(body) {
			t.Errorf("%s: %s", problem, body)
		}
		var w sentRequest
		if err := json.Unmarshal(body, &w); err != nil {
			t.Fatal(err)
		}
		if first := w.Messages[1].Content[0]; first.Type == "thinking" && (first.Thinking != "First <this>" || first.Signature != "sig+1") {
			t.Errorf("the thought came back as %+v", first)
		}
		return w.shape()
	}
	whole := "user: a | assistant: thinking, redacted_thinking, So., call a, thinking, call b | user: result a, result b"
	plain := "user: a | assistant: So., call a, call b | user: result a, result b"
	journaled := m
	var decoded any
	if err := json.Unmarshal(m.Native, &decoded); err != nil {
		t.Fatal(err)
	}
	if journaled.Native, err = json.Marshal(decoded); err != nil { // its keys in another order
		t.Fatal(err)
	}
	changed, cut, foreign, broken := m, m, m, m
	changed.Text = "Otherwise."
	cut.Calls = []convo.Call{m.Calls[1], m.Calls[0]}
	foreign.Provider = "openai"
	broken.Native = json.RawMessage(`{"host":`)
	for name, c := range map[string]struct {
		message convo.Message
		model   string
		want    string
	}{
		"as it came":               {m, sonnet, whole},
		"out of a journal":         {journaled, sonnet, whole},
		"changed":                  {changed, sonnet, strings.Replace(plain, "So.", "Otherwise.", 1)},
		"its calls in other order": {cut, sonnet, strings.Replace(plain, "call a, call b", "call b, call a", 1)},
		"of another provider":      {foreign, sonnet, plain},
		"for another model":        {m, opus, plain},
		"broken":                   {broken, sonnet, plain},
	} {
		if got := next(c.message, c.model); got != c.want {
			t.Errorf("%s it is sent as %q, want %q", name, got, c.want)
		}
	}
}

func TestThoughtsThatNothingFollowsAreDropped(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, raw(start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm","signature":"s"}}`, blockOff, ending("max_tokens"), stopped))
	p := anthropic.New(anthropic.Options{BaseURL: s.Root})
	res, err := p.Generate(t.Context(), ask(sonnet, user("a")), nil)
	if err != nil || res.Stop != "length" || res.Message.Reasoning != "Hm" {
		t.Fatalf("%v, %+v", err, res)
	}
	s.Script(llmtest.Text("Yes."))
	if _, err := p.Generate(t.Context(), ask(sonnet, user("a"), res.Message, user("b")), nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Last().Messages; len(got) != 2 || got[1].Text != "b" {
		t.Errorf("the messages are %+v", got)
	}
}

func TestCitationsComeBack(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, raw(
		start, textOn, textHe,
		`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}}`,
		blockOff, ended, stopped,
	), llmtest.Text("Yes."))
	p := anthropic.New(anthropic.Options{BaseURL: s.Root})
	res, err := p.Generate(t.Context(), ask(sonnet, user("a")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Generate(t.Context(), ask(sonnet, user("a"), res.Message, user("b")), nil); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Last().Body); !strings.Contains(body, `"cited_text":"x"`) {
		t.Errorf("the citation is not sent back: %s", body)
	}
}
