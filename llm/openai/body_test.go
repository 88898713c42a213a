package openai_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
)

func TestRequestBodyMatchesGolden(t *testing.T) {
	t.Parallel()
	warm := 0.5
	req := &llm.Request{
		Model: "m", System: "Be brief.", MaxOutput: 100, Temperature: &warm, ToolChoice: "auto",
		Tools: []llm.Tool{{Name: "ping"}},
		Messages: []convo.Message{
			{Role: convo.User, Text: "Hello."},
			{Role: convo.Assistant, Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: `{"n":1}`}}},
			{Role: convo.Tool, CallID: "a", Text: "pong"},
		},
	}
	for _, api := range []string{openai.Chat, openai.Responses} {
		s := llmtest.New(t, llmtest.Text("Yes."))
		p := openai.New(openai.Options{BaseURL: s.URL, API: api})
		body, err := p.Body(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		var built, sent any
		if err := json.Unmarshal(body, &built); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(s.Last().Body, &sent); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(built, sent) {
			t.Errorf("%s: the body is\n%s\nand was sent as\n%s", api, body, s.Last().Body)
		}
		_, err = p.Body(&llm.Request{Model: "m"})
		wantError(t, err, "model_invalid_request", "no message", false)
	}
}

func TestNumbersOfSchemasAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer", "maximum": json.Number("9007199254740993")}}}
	for _, api := range []string{openai.Chat, openai.Responses} {
		req := hello()
		req.Schema, req.Tools = schema, []llm.Tool{{Name: "ping", Parameters: schema}}
		body, err := openai.New(openai.Options{BaseURL: "http://localhost", API: api}).Body(req)
		if err != nil || strings.Count(string(body), `"maximum":9007199254740993,`) != 2 {
			t.Errorf("%s: %s, %v", api, body, err)
		}
	}
}
