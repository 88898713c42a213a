package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
)

func TestThinkingIsAskedForAsTheModelTakesIt(t *testing.T) {
	t.Parallel()
	hi := []convo.Message{user("hi")}
	midway := []convo.Message{user("hi"), said("", call("x")), result("x", "1")}
	for _, c := range []struct {
		name, model, reasoning string
		limit                  int
		choice                 string
		messages               []convo.Message
		want                   string
	}{
		{"nothing", sonnet, "", 0, "", hi, "map[] "},
		{"none", opus, "none", 0, "", hi, "map[] "},
		{"no tokens", sonnet, "0", 0, "", hi, "map[] "},
		{"a word", sonnet, "low", 0, "", hi, "map[budget_tokens:4096 type:enabled] "},
		{"a number", sonnet, "2000", 0, "", hi, "map[budget_tokens:2000 type:enabled] "},
		{"too small a number", sonnet, "7", 0, "", hi, "map[budget_tokens:1024 type:enabled] "},
		{"more than the limit has room for", sonnet, "max", 8000, "", hi, "map[budget_tokens:6000 type:enabled] "},
		{"a narrow limit", sonnet, "high", 1100, "", hi, "map[budget_tokens:1024 type:enabled] "},
		{"no room", sonnet, "high", 1024, "", hi, "map[] "},
		{"a forced tool", sonnet, "high", 0, "required", hi, "map[] "},
		{"a named tool", opus, "high", 0, "ping", hi, "map[] "},
		{"midway in a turn", sonnet, "high", 0, "", midway, "map[] "},
		{"adaptive midway", opus, "high", 0, "", midway, "map[display:summarized type:adaptive] high"},
		{"an effort", opus, "minimal", 0, "", hi, "map[display:summarized type:adaptive] low"},
		{"an effort by number", opus, "6000", 0, "", hi, "map[display:summarized type:adaptive] medium"},
		{"the most", opus, "xhigh", 0, "", hi, "map[display:summarized type:adaptive] xhigh"},
		{"the most of an older one", "claude-opus-4-6", "xhigh", 0, "", hi, "map[display:summarized type:adaptive] high"},
		{"all of an older one", "claude-opus-4-6", "max", 0, "", hi, "map[display:summarized type:adaptive] max"},
		{"all of a smaller one", "claude-sonnet-4-6", "max", 0, "", hi, "map[display:summarized type:adaptive] high"},
		{"somebody else's model", "deepseek-chat", "low", 0, "", hi, "map[budget_tokens:4096 type:enabled] "},
		{"a family without a number", "claude-mythos-preview", "low", 0, "", hi, "map[display:summarized type:adaptive] low"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			warm := 0.3
			req := ask(c.model, c.messages...)
			req.Reasoning, req.MaxOutput, req.ToolChoice, req.Temperature = c.reasoning, c.limit, c.choice, &warm
			w := built(t, req)
			if got := fmt.Sprint(w.Thinking, " ", w.Output.Effort); got != c.want {
				t.Errorf("thinking is %s, want %s", got, c.want)
			}
			heat := len(w.Thinking) == 0 && !strings.Contains(c.model, "4-8") && !strings.Contains(c.model, "mythos")
			if (w.Temperature != nil) != heat {
				t.Errorf("the temperature is %v", w.Temperature)
			}
		})
	}
	req := ask(sonnet, hi...)
	req.Reasoning = "a lot"
	_, err := anthropic.New(anthropic.Options{BaseURL: "http://127.0.0.1:1"}).Body(req)
	wantError(t, err, "model_invalid_request", "a lot", false)
}

func TestTheLimitIsAlwaysSent(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]int{
		sonnet: 16384, opus: 16384, "claude-3-5-haiku-latest": 8192, "claude-3-opus-20240229": 4096, "local": 16384,
	} {
		if got := built(t, ask(model, user("hi"))).MaxTokens; got != want {
			t.Errorf("%s may say %d tokens, want %d", model, got, want)
		}
	}
	hot := 1.7
	req := ask(sonnet, user("hi"))
	req.MaxOutput, req.Temperature = 7, &hot
	if w := built(t, req); w.MaxTokens != 7 || *w.Temperature != 1 {
		t.Errorf("max_tokens %d, temperature %v", w.MaxTokens, *w.Temperature)
	}
}

// marked returns the places of the marks of a body.
func (w sentRequest) marked() string {
	var out []string
	for _, t := range w.Tools {
		if t.Mark != nil {
			out = append(out, "tool "+t.Name)
		}
	}
	for n, s := range w.System {
		if s.Mark != nil {
			out = append(out, fmt.Sprint("system ", n))
		}
	}
	for n, m := range w.Messages {
		for k, c := range m.Content {
			if c.Mark != nil {
				out = append(out, fmt.Sprintf("message %d.%d", n, k))
			}
		}
	}
	return strings.Join(out, ", ")
}

func TestCacheMarksFollowTheStablePrefix(t *testing.T) {
	t.Parallel()
	history := []convo.Message{
		user("a"), said("b"), user("c"), said("", call("x"), call("y")), result("x", "1"), result("y", "2"), user("d"),
	}
	for _, c := range []struct {
		stable int
		want   string
	}{
		{0, "tool pong, system 0, message 4.2"},
		{1, "tool pong, system 0, message 0.0, message 4.2"},
		{3, "tool pong, system 0, message 2.0, message 4.2"},
		{5, "tool pong, system 0, message 4.0, message 4.2"},
		{6, "tool pong, system 0, message 4.1, message 4.2"},
		{7, "tool pong, system 0, message 4.2"},
		{99, "tool pong, system 0, message 4.2"},
	} {
		req := ask(opus, history...)
		req.System, req.StablePrefix = "Be brief.", c.stable
		req.Tools = append(req.Tools, llm.Tool{Name: "pong"})
		if got := built(t, req).marked(); got != c.want {
			t.Errorf("with %d that stay the marks are at %s, want %s", c.stable, got, c.want)
		}
	}
	body, err := anthropic.New(anthropic.Options{BaseURL: "http://127.0.0.1:1", NoCache: true}).Body(ask(opus, history...))
	if err != nil || strings.Contains(string(body), "cache_control") {
		t.Errorf("%v: %s", err, body)
	}
}

func TestTheSameRequestIsTheSameBytes(t *testing.T) {
	t.Parallel()
	p := anthropic.New(anthropic.Options{BaseURL: "http://127.0.0.1:1"})
	req := ask(sonnet, user("a"), said("b", call("x")), result("x", "1"))
	req.Tools[0].Parameters = map[string]any{"type": "object", "properties": map[string]any{"c": true, "a": true, "b": true}}
	first, err := p.Body(req)
	for range 20 {
		again, errAgain := p.Body(req)
		if err != nil || errAgain != nil || string(first) != string(again) {
			t.Fatalf("%v, %v:\n%s\n%s", err, errAgain, first, again)
		}
	}
}

func TestUnsupportedSchemaPartsAreInThePrompt(t *testing.T) {
	t.Parallel()
	text := map[string]any{"type": "string", "minLength": 2, "format": "email", "description": "A name."}
	address := map[string]any{"type": "object", "properties": map[string]any{"street": text}}
	held := map[string]map[string]any{
		"an open one":    {"type": "object", "properties": map[string]any{"name": text}},
		"a list":         {"type": "object", "properties": map[string]any{"l": map[string]any{"type": "array", "minItems": 3, "items": text}}},
		"a choice":       {"type": "object", "properties": map[string]any{"c": map[string]any{"oneOf": []any{text, map[string]any{"type": "null"}}}}},
		"a definition":   {"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/address"}}, "$defs": map[string]any{"address": address}},
		"a list of Go's": {"type": "object", "required": []string{"name"}, "properties": map[string]any{"name": text}, "$schema": "x"},
		"no properties":  {"type": "object", "additionalProperties": false},
	}
	for name, schema := range held {
		req := ask(sonnet, user("hi"))
		req.Schema = schema
		if w := built(t, req); w.Output.Format == nil || len(w.System) != 0 {
			t.Errorf("%s is not held to: %+v", name, w)
		}
	}
	req := ask(sonnet, user("hi"))
	req.Schema = held["an open one"]
	name, _ := built(t, req).Output.Format.Schema["properties"].(map[string]any)["name"].(map[string]any)
	if name["description"] != "A name. {minLength: 2}" || name["format"] != "email" || name["minLength"] != nil {
		t.Errorf("the schema became %v", name)
	}
	for name, schema := range map[string]map[string]any{
		"any keys":        {"type": "object", "additionalProperties": true},
		"keys of a kind":  {"type": "object", "properties": map[string]any{"m": map[string]any{"type": "object", "additionalProperties": text}}},
		"one of itself":   {"type": "object", "properties": map[string]any{"next": map[string]any{"$ref": "#/$defs/n"}}, "$defs": map[string]any{"n": map[string]any{"type": "object", "properties": map[string]any{"next": map[string]any{"$ref": "#/$defs/n"}}}}},
		"one from afar":   {"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "https://example.com/a"}}},
		"no object":       {"type": "array", "items": text},
		"an odd property": {"type": "object", "properties": map[string]any{"a": true}},
	} {
		req := ask(sonnet, user("hi"))
		req.Schema = schema
		if w := built(t, req); w.Output.Format != nil || len(w.System) != 1 {
			t.Errorf("%s is held to: %+v", name, w)
		}
	}
	old := ask("claude-sonnet-4-20250514", user("hi"))
	old.Schema = held["an open one"]
	if w := built(t, old); w.Output.Format != nil || !strings.Contains(w.System[0].Text, `"minLength":2`) {
		t.Errorf("an older model is held to it: %+v", w)
	}
}
