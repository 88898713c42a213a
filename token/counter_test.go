package token_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/token"
)

// object returns a JSON Schema, as text.
func object(t *testing.T, schema string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(schema), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

type toolDefinition struct{ name, description, parameters string }

// request counts one as a caller does.
func request(t *testing.T, c token.Counter, system string, messages []convo.Message, tools ...toolDefinition) int {
	t.Helper()
	n := c.System(system) + c.RequestOverhead(system != "", len(tools))
	for _, m := range messages {
		n += c.Message(m)
	}
	for _, d := range tools {
		n += c.Tool(d.name, d.description, object(t, d.parameters))
	}
	return n
}

func counter(tb testing.TB, encoding, vendor string) token.Counter {
	tb.Helper()
	c, err := token.NewCounter(encoding, vendor)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestCountsAreWhatTheVendorReported(t *testing.T) {
	// The figures are prompt_tokens of OpenAI's API as others published them:
	// the Cookbook's "How to count tokens with tiktoken" and the tests of
	// hmarr/openai-chat-tokens, and for results community.openai.com/t/538914.
	const none = `{"type":"object","properties":{}}`
	hello := []convo.Message{{Role: convo.User, Text: "hello"}}
	hi := []convo.Message{{Role: convo.User, Text: "Hi there"}}
	for _, c := range []struct {
		name, encoding, system string
		messages               []convo.Message
		tools                  []toolDefinition
		reported, within       int
	}{
		{name: "one word", messages: hello, reported: 8},
		{name: "system alone", system: "hello:", reported: 9},
		{
			name: "three messages", system: "# Important: you're the best robot", reported: 27,
			messages: []convo.Message{
				{Role: convo.User, Text: "hello robot"}, {Role: convo.Assistant, Text: "hello world"},
			},
		},
		{name: "a tool without arguments", messages: hello, tools: []toolDefinition{{"foo", "", none}}, reported: 31},
		{name: "a described tool", messages: hello, tools: []toolDefinition{{"foo", "Do a foo", none}}, reported: 36},
		{
			name: "one argument", messages: hello, reported: 49,
			tools: []toolDefinition{{"bing_bong", "Do a bing bong", `{"type":"object","properties":{"foo":{"type":"string"}}}`}},
		},
		{
			name: "two arguments", messages: hello, reported: 57,
			tools: []toolDefinition{{"bing_bong", "Do a bing bong", `{"type":"object","properties":{
				"foo":{"type":"string"},"bar":{"type":"number","description":"A number"}}}`}},
		},
		{
			name: "an object with an enum", messages: hello, reported: 68, within: 1,
			tools: []toolDefinition{{"bing_bong", "Do a bing bong", `{"type":"object","properties":{"foo":{"type":"object","properties":{
				"bar":{"type":"string","enum":["a","b","c"]},"baz":{"type":"boolean"}}}}}`}},
		},
		{name: "system and a tool", system: "Hello", messages: hi, tools: []toolDefinition{{"do_stuff", "", none}}, reported: 35},
		{
			name: "system with a colon and a tool", system: "Hello:", messages: hi,
			tools: []toolDefinition{{"do_stuff", "", none}}, reported: 35, within: 1,
		},
		{
			name: "a call", reported: 26,
			messages: []convo.Message{{
				Role:  convo.Assistant,
				Calls: []convo.Call{{Name: "do_stuff", Arguments: `{"foo": "bar", "baz": 1.5}`}},
			}},
		},
		{name: "a call with its result", messages: sums(1), reported: 40, within: 3},
		{name: "two calls with their results", messages: sums(2), reported: 89, within: 6},
		{name: "three calls with their results", messages: sums(3), reported: 114, within: 9},
		{
			name: "the cookbook's weather, gpt-4", reported: 105, within: 1, system: weatherSystem,
			messages: weatherQuestion, tools: weatherTool,
		},
		{
			name: "the cookbook's weather, gpt-4o", encoding: token.O200k, reported: 101, within: 2,
			system: weatherSystem, messages: weatherQuestion, tools: weatherTool,
		},
	} {
		if c.encoding == "" {
			c.encoding = token.Cl100k
		}
		n := request(t, counter(t, c.encoding, "openai"), c.system, c.messages, c.tools...)
		if n < c.reported || n > c.reported+c.within {
			t.Errorf("%s: %d tokens, reported were %d and %d more are allowed", c.name, n, c.reported, c.within)
		}
	}
}

// sums asks for n tool calls at once and has their results.
func sums(n int) []convo.Message {
	asks := convo.Message{Role: convo.Assistant}
	all := []convo.Message{{Role: convo.User, Text: "How much is 2 plus 2?"}, asks}
	for range n {
		call := convo.Call{ID: "a", Name: "calculator", Arguments: `{"a":2, "b":2}`}
		all[1].Calls = append(all[1].Calls, call)
		all = append(all, convo.Message{Role: convo.Tool, CallID: call.ID, Name: call.Name, Text: "4"})
	}
	return all
}

const weatherSystem = "You are a helpful assistant that can answer to questions about the weather."

var (
	weatherQuestion = []convo.Message{{Role: convo.User, Text: "What's the weather like in San Francisco?"}}
	weatherTool     = []toolDefinition{{
		"get_current_weather", "Get the current weather in a given location", `{"type":"object","properties":{
			"location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"},
			"unit":{"type":"string","description":"The unit of temperature to return","enum":["celsius","fahrenheit"]}},
			"required":["location"]}`,
	}}
)

func TestAnUnknownEncodingIsAnError(t *testing.T) {
	if _, err := token.NewCounter("p50k_base", "openai"); !errors.Is(err, token.ErrUnknownEncoding) {
		t.Errorf("got %v", err)
	}
}
