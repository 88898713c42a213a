package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// post sends a body to one of the APIs and gives the status and answer.
func post(t *testing.T, s *Server, api, body string) (int, string) {
	t.Helper()
	return send(t, s, map[string]string{"chat": "/chat/completions", "responses": "/responses"}[api], body)
}

// send sends a body to a path with headers, by turns their names and values.
func send(t *testing.T, s *Server, path, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for n := 0; n < len(headers); n += 2 {
		req.Header.Set(headers[n], headers[n+1])
	}
	res, err := s.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

// tooled returns a body with a tool, and more fields.
func tooled(api, more string) string {
	if api == "chat" {
		return `{"model":"m","tools":[{"type":"function","function":{"name":"ping","parameters":{"type":"object"}}}],` + more + `}`
	}
	return `{"model":"m","tools":[{"type":"function","name":"ping","parameters":{"type":"object"},"strict":false}],` + more + `}`
}

const (
	chatCall   = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"ping","arguments":"{}"}}]}`
	chatResult = `{"role":"tool","tool_call_id":"a","content":"pong"}`
	chatHello  = `{"role":"user","content":"hi"}`
	itemCall   = `{"type":"function_call","call_id":"a","name":"ping","arguments":"{}"}`
	itemResult = `{"type":"function_call_output","call_id":"a","output":"pong"}`
	itemHello  = `{"role":"user","content":"hi"}`
)

func TestValidRequestsAreAccepted(t *testing.T) {
	t.Parallel()
	for api, bodies := range map[string][]string{
		"chat": {
			`{"model":"m","messages":[` + chatHello + `]}`,
			`{"model":"m","messages":[{"role":"developer","content":[{"type":"text","text":"x"}]},` + chatHello + `],"stream":false,"stop":["x"]}`,
			tooled("chat", `"messages":[`+chatHello+`,`+chatCall+`,`+chatResult+`]`),
			tooled("chat", `"messages":[`+chatHello+`],"tool_choice":{"type":"function","function":{"name":"ping"}}`),
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
		},
		"responses": {
			`{"model":"m","input":"hi"}`,
			`{"model":"m","input":[` + itemHello + `,{"role":"assistant","content":""}],"store":false}`,
			tooled("responses", `"input":[`+itemHello+`,`+itemCall+`,`+itemResult+`]`),
			`{"model":"m","input":[{"type":"message","id":"msg_9","status":"completed","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}]}`,
		},
	} {
		for _, body := range bodies {
			s := New(t, Text("Yes."))
			if status, answer := post(t, s, api, body); status != 200 || !strings.Contains(answer, "Yes.") {
				t.Errorf("%s %s: %d %s", api, body, status, answer)
			}
		}
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	t.Parallel()
	strict := `"schema":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`
	for api, bodies := range map[string]map[string]string{
		"chat": {
			"no JSON":                         `{"model"`,
			"no model":                        `{"messages":[` + chatHello + `]}`,
			"no messages":                     `{"model":"m","messages":[]}`,
			"an unknown parameter":            `{"model":"m","messages":[` + chatHello + `],"input":"x"}`,
			"an unknown role":                 `{"model":"m","messages":[{"role":"narrator","content":"x"}]}`,
			"null content":                    `{"model":"m","messages":[{"role":"user","content":null}]}`,
			"a number for content":            `{"model":"m","messages":[{"role":"user","content":1}]}`,
			"an assistant that says nothing":  `{"model":"m","messages":[{"role":"assistant","content":null}]}`,
			"an unknown field of a message":   `{"model":"m","messages":[{"role":"user","content":"x","id":"1"}]}`,
			"an image of the assistant's":     `{"model":"m","messages":[{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}]}`,
			"a file without a name":           `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:a/b;base64,AA=="}}]}]}`,
			"a result before its call":        tooled("chat", `"messages":[`+chatResult+`,`+chatCall+`]`),
			"a result of no call":             tooled("chat", `"messages":[`+chatHello+`,`+chatResult+`]`),
			"a result given twice":            tooled("chat", `"messages":[`+chatCall+`,`+chatResult+`,`+chatResult+`]`),
			"a call without result":           tooled("chat", `"messages":[`+chatHello+`,`+chatCall+`]`),
			"words between call and result":   tooled("chat", `"messages":[`+chatCall+`,`+chatHello+`,`+chatResult+`]`),
			"arguments that are no object":    tooled("chat", `"messages":[`+strings.Replace(chatCall, `"{}"`, `""`, 1)+`,`+chatResult+`]`),
			"a tool without a proper name":    `{"model":"m","messages":[` + chatHello + `],"tools":[{"type":"function","function":{"name":"a b"}}]}`,
			"two tools of a name":             `{"model":"m","messages":[` + chatHello + `],"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]}`,
			"a tool whose schema is none":     `{"model":"m","messages":[` + chatHello + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"type":"text"}}}}}]}`,
			"a tool that takes a list":        `{"model":"m","messages":[` + chatHello + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"array"}}}]}`,
			"a choice without tools":          `{"model":"m","messages":[` + chatHello + `],"tool_choice":"auto"}`,
			"a choice of an unknown tool":     tooled("chat", `"messages":[`+chatHello+`],"tool_choice":{"type":"function","function":{"name":"pong"}}`),
			"stream options without a stream": `{"model":"m","messages":[` + chatHello + `],"stream_options":{"include_usage":true}}`,
			"two limits":                      `{"model":"m","messages":[` + chatHello + `],"max_tokens":1,"max_completion_tokens":1}`,
			"a strict schema that is open":    `{"model":"m","messages":[` + chatHello + `],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,` + strict + `}}}`,
			"heat":                            `{"model":"m","messages":[` + chatHello + `],"temperature":3}`,
		},
		"responses": {
			"no input":                     `{"model":"m"}`,
			"an unknown parameter":         `{"model":"m","input":"x","messages":[]}`,
			"a chat's tool":                `{"model":"m","input":"x","tools":[{"type":"function","function":{"name":"a"}}]}`,
			"a tool without strict":        `{"model":"m","input":"x","tools":[{"type":"function","name":"a","parameters":{"type":"object"}}]}`,
			"a chat's text part":           `{"model":"m","input":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`,
			"input text of the assistant":  `{"model":"m","input":[{"role":"assistant","content":[{"type":"input_text","text":"x"}]}]}`,
			"a tool role":                  `{"model":"m","input":[{"role":"tool","content":"x"}]}`,
			"a result of no call":          tooled("responses", `"input":[`+itemHello+`,`+itemResult+`]`),
			"a result before its call":     tooled("responses", `"input":[`+itemResult+`,`+itemCall+`]`),
			"a call without result":        tooled("responses", `"input":[`+itemHello+`,`+itemCall+`]`),
			"two calls of an id":           tooled("responses", `"input":[`+itemCall+`,`+itemResult+`,`+itemCall+`,`+itemResult+`]`),
			"an item id of another kind":   tooled("responses", `"input":[`+strings.Replace(itemCall, `"call_id"`, `"id":"call_1","call_id"`, 1)+`,`+itemResult+`]`),
			"too small a limit":            `{"model":"m","input":"x","max_output_tokens":4}`,
			"reasoning of nobody":          `{"model":"m","input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"made up"},{"role":"assistant","content":"x"}]}`,
			"reasoning that is not sealed": `{"model":"m","input":[{"type":"reasoning","id":"rs_1","summary":[]},{"role":"assistant","content":"x"}]}`,
			"reasoning of a plain model":   `{"model":"gpt-4o","input":"x","include":["reasoning.encrypted_content"]}`,
			"a schema that is no object":   `{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"a","schema":{"type":"array"}}}}`,
			"a strict schema that is open": `{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"a","strict":true,` + strict + `}}}`,
		},
	} {
		for name, body := range bodies {
			s := New(t, Text("No."))
			status, answer := post(t, s, api, body)
			if status != http.StatusBadRequest || !strings.Contains(answer, "invalid_request_error") {
				t.Errorf("%s, %s: %d %s", api, name, status, answer)
			}
			if len(s.TakeProblems()) == 0 {
				t.Errorf("%s, %s: no problem was recorded", api, name)
			}
		}
	}
}

func TestReasoningIsSentBackWithItsCalls(t *testing.T) {
	t.Parallel()
	s := New(t,
		Turn{Usage: llm.Usage{Reasoning: 5}, Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}}, Text("Good."),
	)
	_, answer := post(t, s, "responses", tooled("responses", `"input":"hi","include":["reasoning.encrypted_content"]`))
	var first struct{ Output []json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &first); err != nil || len(first.Output) != 2 {
		t.Fatalf("%v: %s", err, answer)
	}
	thought, call := string(first.Output[0]), string(first.Output[1])
	for _, items := range [][]string{
		{itemHello, call, itemResult},
		{itemHello, call, itemResult, thought},
		{itemHello, thought, thought, call, itemResult},
		{itemHello, strings.Replace(thought, "gAAAA", "gBBBB", 1), call, itemResult},
	} {
		status, answer := post(t, s, "responses", tooled("responses", `"input":[`+strings.Join(items, ",")+`]`))
		if status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", items, status, answer)
		}
	}
	if len(s.TakeProblems()) == 0 {
		t.Error("no problem was recorded")
	}
	status, answer := post(t, s, "responses", tooled("responses", `"input":[`+strings.Join([]string{itemHello, thought, call, itemResult}, ",")+`]`))
	if status != http.StatusOK {
		t.Errorf("what was given out is refused: %s", answer)
	}
}

func TestStreamsHaveTheEventsOfTheVendorInOrder(t *testing.T) {
	t.Parallel()
	turn := Turn{Text: "Hello", Piece: 5, Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}}
	for api, c := range map[string]struct {
		body string
		want []string
	}{
		"chat": {
			tooled("chat", `"messages":[`+chatHello+`],"stream":true,"stream_options":{"include_usage":true}`),
			[]string{
				`"role":"assistant"`, `"content":"Hello"`, `"name":"ping"`, `"arguments":"{}"`,
				`"finish_reason":"tool_calls"`, `"choices":[]`, "[DONE]",
			},
		},
		"responses": {
			tooled("responses", `"input":"hi","stream":true`),
			[]string{
				"response.created", "response.in_progress",
				"response.output_item.added", "response.content_part.added", "response.output_text.delta",
				"response.output_text.done", "response.content_part.done", "response.output_item.done",
				"response.output_item.added", "response.function_call_arguments.delta",
				"response.function_call_arguments.done", "response.output_item.done", "response.completed",
			},
		},
	} {
		s := New(t, turn)
		_, answer := post(t, s, api, c.body)
		events := strings.Split(strings.TrimSpace(answer), "\n\n")
		if len(events) != len(c.want) {
			t.Fatalf("%s: %d events:\n%s", api, len(events), answer)
		}
		for n, event := range events {
			if !strings.Contains(event, c.want[n]) {
				t.Errorf("%s: event %d is %s, want %s", api, n, event, c.want[n])
			}
		}
	}
}

func TestTurnsAreTakenInOrderAndThenTheFunctionAnswers(t *testing.T) {
	t.Parallel()
	s := New(t, Text("one"))
	s.Script(Text("two"))
	body := `{"model":"m","messages":[` + chatHello + `]}`
	for _, want := range []string{"one", "two", "no turn left"} {
		if _, answer := post(t, s, "chat", body); !strings.Contains(answer, want) {
			t.Errorf("the answer is %s, want %s", answer, want)
		}
	}
	s.Answer(func(r *Request) Turn { return Text(r.Messages[0].Text + " there") })
	if _, answer := post(t, s, "chat", body); !strings.Contains(answer, "hi there") {
		t.Errorf("the answer is %s", answer)
	}
	if n := len(s.Requests()); n != 4 || s.Last().Model != "m" || !bytes.Equal(s.Last().Body, []byte(body)) {
		t.Errorf("%d requests, the last is %+v", n, s.Last())
	}
}

func TestServerWithKeyRequiresIt(t *testing.T) {
	t.Parallel()
	s := New(t, Text("one"))
	s.APIKey = "k"
	if status, answer := post(t, s, "chat", `{"model":"m","messages":[`+chatHello+`]}`); status != http.StatusUnauthorized {
		t.Errorf("%d %s", status, answer)
	}
}

func TestAnUnknownAddressIsNotFound(t *testing.T) {
	t.Parallel()
	s := New(t)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL+"/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("the status is %d", res.StatusCode)
	}
}
