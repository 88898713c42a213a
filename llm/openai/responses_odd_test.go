package openai_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
)

const (
	textDelta = `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello"}`
	textDone  = `{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello","annotations":[]}]}}`
	noOutput  = `{"type":"response.completed","response":{"id":"r1","object":"response","status":"completed","model":"m","output":[],"usage":{"input_tokens":9,"output_tokens":4}}}`
)

func completed(output string) string {
	return `{"type":"response.completed","response":{"id":"r1","object":"response","status":"completed","model":"m","output":` + output +
		`,"error":null,"incomplete_details":null,"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":2},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1}}}}`
}

func said(text string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + text + `"}]}`
}

func TestResponsesStreamsOfManyServersAreUnderstood(t *testing.T) {
	t.Parallel()
	thought := `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}]}`
	whole := sse(`{"type":"response.created","response":{}}`, textDelta, textDone, completed("["+said("Hello")+"]"))
	for _, c := range []struct {
		name, kind string
		raw        []string
		think      string
		calls      []convo.Call
	}{
		{name: "a byte a write", raw: byBytes(whole)},
		{name: "with CRLF", raw: []string{strings.ReplaceAll(whole, "\n", "\r\n")}},
		{name: "with [DONE] at the end", raw: []string{whole + "data: [DONE]\n\n"}},
		{name: "events that nobody knows", raw: []string{sse(`{"type":"response.new_thing","delta":"x","error":null}`, `{"no":"type"}`) + whole}},
		{name: "items only as they are done", raw: []string{sse(textDelta, textDone, noOutput)}},
		{name: "nothing before the end", raw: []string{sse(completed("[" + said("Hello") + "]"))}},
		{name: "one object instead of a stream", kind: "application/json", raw: []string{
			`{"id":"r1","object":"response","status":"completed","model":"m","error":null,"output":[` + said("Hello") + `],"usage":null}`,
		}},
		{
			name: "summaries in parts", think: "One.\n\nTwo.",
			raw: []string{sse(
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Tw"}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"o."}`,
				completed("["+thought+","+said("Hello")+"]"),
			)},
		},
		{name: "summaries not streamed", think: "One.\n\nTwo.", raw: []string{sse(completed("[" + thought + "," + said("Hello") + "]"))}},
		{
			name: "reasoning as text", think: "Raw.",
			raw: []string{sse(
				`{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"Raw."}`, textDelta,
				completed(`[{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Raw."}]},`+said("Hello")+"]"),
			)},
		},
		{
			name: "a call that is reported only when done", calls: []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}},
			raw: []string{sse(
				textDelta, `{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"a","name":"ping","arguments":""}}`,
				completed(`[`+said("Hello")+`,{"id":"fc_1","type":"function_call","status":"completed","call_id":"a","name":"ping","arguments":""}]`),
			)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, chunks, err := answerTo(t, openai.Responses, llmtest.Turn{Raw: c.raw, Type: c.kind})
			if err != nil {
				t.Fatal(err)
			}
			wantSaid(t, res, chunks, "Hello", c.think)
			wantCalls(t, res, chunks, c.calls)
			if c.think != "" && res.Message.Native != nil {
				t.Errorf("reasoning without encrypted content was kept: %s", res.Message.Native)
			}
		})
	}
}

func TestResponsesStreamsThatAreNoAnswerAreErrors(t *testing.T) {
	t.Parallel()
	failed := func(code, message string) string {
		return sse(textDelta, `{"type":"response.failed","response":{"id":"r1","object":"response","status":"failed","output":[],"error":{"code":"`+code+`","message":"`+message+`"}}}`)
	}
	for _, c := range []struct {
		name, raw, code, says string
		retry                 bool
	}{
		{"nothing", "", "model_unavailable", "ended", true},
		{"no end", sse(textDelta, textDone), "model_unavailable", "ended", true},
		{"[DONE] and no end", sse(textDelta, "[DONE]"), "model_unavailable", "ended", true},
		{"a server that failed", failed("server_error", "Boom"), "model_unavailable", "Boom", true},
		{"a rate limit", failed("rate_limit_exceeded", "Too fast"), "model_rate_limited", "Too fast", true},
		{"a prompt that is refused", failed("invalid_prompt", "Not this"), "model_invalid_request", "Not this", false},
		{"an error event", sse(`{"type":"error","code":"server_error","message":"Boom","param":null}`), "model_unavailable", "Boom", true},
		{"an error event with an object", sse(`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Too long"}}`), "model_context_length", "Too long", false},
		{"a text that is not what was streamed", sse(textDelta, completed("["+said("Goodbye")+"]")), "model_unavailable", "streamed", true},
		{"an unknown end", sse(textDelta, strings.Replace(completed("[]"), `"status":"completed"`, `"status":"queued"`, 1)), "model_unavailable", "queued", true},
		{"an end without a response", sse(textDelta, `{"type":"response.completed"}`), "model_unavailable", "invalid event", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := answerTo(t, openai.Responses, llmtest.Turn{Raw: []string{c.raw}})
			wantError(t, err, c.code, c.says, c.retry)
		})
	}
}

func TestNativeBlocksAreForTheirModelHostAndAPIAlone(t *testing.T) {
	t.Parallel()
	think := llmtest.Turn{Text: "Hm.", Usage: llm.Usage{Reasoning: 3}}
	s := llmtest.New(t, think)
	hello := convo.Message{Role: convo.User, Text: "Hello."}
	generate := func(api, base, model string, messages ...convo.Message) convo.Message {
		t.Helper()
		res, err := openai.New(openai.Options{BaseURL: base, API: api}).Generate(
			t.Context(), &llm.Request{Model: model, Messages: messages}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Message
	}
	first := generate(openai.Responses, s.URL, "gpt-5-mini", hello)
	if first.Native == nil {
		t.Fatal("nothing was kept")
	}
	foreign := first
	foreign.Provider = "somebody-else"
	s.Script(llmtest.Text("Yes."))
	generate(openai.Responses, s.URL, "gpt-5-mini", hello, foreign, hello)
	if strings.Contains(string(s.Last().Body), "encrypted_content\":") {
		t.Error("blocks that are said to be another provider's were sent")
	}
	other := llmtest.New(t)
	for _, c := range []struct {
		server     *llmtest.Server
		api, model string
		back       bool
	}{
		{s, openai.Responses, "gpt-5-mini", true},
		{s, openai.Responses, "gpt-5", false},
		{s, openai.Responses, "gpt-4o", false},
		{s, openai.Chat, "gpt-5-mini", false},
		{other, openai.Responses, "gpt-5-mini", false},
	} {
		c.server.Script(llmtest.Text("Yes."))
		generate(c.api, c.server.URL, c.model, hello, first, hello)
		if got := strings.Contains(string(c.server.Last().Body), "encrypted_content\":"); got != c.back {
			t.Errorf("%s %s: came back %v, want %v", c.api, c.model, got, c.back)
		}
		if got := c.server.Last().Messages[1].Text; got != "Hm." {
			t.Errorf("%s %s: the text came as %q", c.api, c.model, got)
		}
	}
}

func TestResponsesAreNotStoredAtTheVendor(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, llmtest.Text("Yes."))
	p := openai.New(openai.Options{BaseURL: s.URL, API: openai.Responses, Summary: "none"})
	_, err := p.Generate(t.Context(), &llm.Request{
		Model: "gpt-5-mini", Reasoning: "high", Messages: []convo.Message{{Role: convo.User, Text: "Hello."}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Store     *bool          `json:"store"`
		Include   []string       `json:"include"`
		Reasoning map[string]any `json:"reasoning"`
	}
	if err := json.Unmarshal(s.Last().Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.Store == nil || *body.Store || !slices.Equal(body.Include, []string{"reasoning.encrypted_content"}) {
		t.Errorf("store %v, include %q", body.Store, body.Include)
	}
	if len(body.Reasoning) != 1 || body.Reasoning["effort"] != "high" {
		t.Errorf("reasoning %v", body.Reasoning)
	}
}

func TestCallIDsThatTheResponsesAPIWouldRefuseAreRenamed(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, llmtest.Text("Yes."), llmtest.Text("Yes."))
	long := strings.Repeat("x", 65)
	call := func(ids ...string) []convo.Message {
		out := []convo.Message{{Role: convo.Assistant}}
		for _, id := range ids {
			out[0].Calls = append(out[0].Calls, convo.Call{ID: id, Name: "ping", Arguments: "{}"})
			out = append(out, convo.Message{Role: convo.Tool, CallID: id, Text: "for " + id})
		}
		return out
	}
	messages := slices.Concat(hello().Messages, call("a", long), call("a"), call("b", "a"), hello().Messages)
	p := openai.New(openai.Options{BaseURL: s.URL, API: openai.Responses})
	var ids [2][]string
	for n := range ids {
		if _, err := p.Generate(t.Context(), &llm.Request{Model: "m", Messages: messages}, nil); err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Last().Messages {
			for _, c := range m.Calls {
				ids[n] = append(ids[n], c.ID)
			}
		}
	}
	if !slices.Equal(ids[0], ids[1]) {
		t.Errorf("the same history has the ids %q and then %q", ids[0], ids[1])
	}
	if len(ids[0]) != 5 || ids[0][0] != "a" || ids[0][3] != "b" {
		t.Errorf("the ids are %q", ids[0])
	}
}
