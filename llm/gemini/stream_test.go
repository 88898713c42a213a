package gemini_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
)

// answerTo makes one call against raw bytes and returns the pieces as well.
func answerTo(t *testing.T, keep bool, turn llmtest.Turn) (*llm.Response, []llm.Chunk, error) {
	t.Helper()
	s := llmtest.New(t, turn)
	req := hello()
	req.Key, req.KeepSession, req.Tools = "run/node#0", keep, []llm.Tool{{Name: "ping"}, {Name: "pong"}}
	var chunks []llm.Chunk
	res, err := gemini.New(gemini.Options{BaseURL: s.Root}).Generate(t.Context(), req, func(c llm.Chunk) { chunks = append(chunks, c) })
	return res, chunks, err
}

func parts(list, more string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + list + `]}` + more + `}]}`
}

const (
	finished = `,"finishReason":"STOP"`
	counted  = `{"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":4,"toolUsePromptTokenCount":1}}`
)

func event(kind, fields string) string { return `{"event_type":"` + kind + `",` + fields + `}` }

const stepsDone = `{"event_type":"interaction.completed","interaction":{"id":"v1_1","status":"completed","model":"m"}}`

type oddity struct {
	name, kind    string
	keep          bool
	raw           []string
	text, thought string
	calls         []convo.Call
	stop          string
	usage         llm.Usage
	native        bool
}

func oddities() []oddity {
	whole := sse(parts(`{"text":"Héllo"}`, ""), parts(`{"text":" 🏞️"}`, finished))
	bytewise := make([]string, 0, len(whole))
	for i := range len(whole) {
		bytewise = append(bytewise, whole[i:i+1])
	}
	call := `{"functionCall":{"name":"ping","args":{"n":12345678901234567890, "a":"<b>"}}}`
	start := event("step.start", `"index":0,"step":{"type":"model_output"}`)
	ping := []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}
	return []oddity{
		{name: "a byte a write", raw: bytewise, text: "Héllo 🏞️"},
		{name: "with LF, comments and names", raw: []string{": hi\n\nevent: x\nid: 1\n" + strings.ReplaceAll(whole, "\r", "")}, text: "Héllo 🏞️"},
		{name: "without the last empty line", raw: []string{strings.TrimSpace(whole)}, text: "Héllo 🏞️"},
		{name: "usage behind the finish", raw: []string{whole + sse(counted)}, text: "Héllo 🏞️", usage: llm.Usage{Input: 10, Cached: 2, Output: 7, Reasoning: 4}},
		{name: "[DONE]", raw: []string{whole + sse("[DONE]")}, text: "Héllo 🏞️"},
		{name: "one object", kind: "application/json; charset=UTF-8", raw: []string{parts(`{"text":"Hé"},{"text":"llo"}`, finished)}, text: "Héllo"},
		{name: "a list", kind: "application/json", raw: []string{"[" + parts(`{"text":"Hé"}`, "") + "," + parts(`{"text":"llo"}`, finished) + "]"}, text: "Héllo"},
		{name: "another candidate", raw: []string{sse(`{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"SAFETY"},{"index":0,"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}]}`)}, text: "yes"},
		{name: "thoughts", raw: []string{sse(parts(`{"text":"Hm","thought":true}`, ""), parts(`{"text":".","thought":true},{"text":"So."}`, ""), parts(`{"text":"","thoughtSignature":"AAAA"}`, finished))}, text: "So.", thought: "Hm.", native: true},
		{name: "a signature alone", raw: []string{sse(parts(`{"text":"So."}`, ""), parts(`{"thoughtSignature":"AAAA"}`, finished))}, text: "So.", native: true},
		{name: "no content", raw: []string{sse(`{"candidates":[{"finishReason":"STOP"}]}`)}},
		{name: "parts that nobody knows", raw: []string{sse(parts(`{"executableCode":{"code":"1"}},{"text":"x"},{}`, finished))}, text: "x"},
		{name: "a limit", raw: []string{sse(parts(`{"text":"x"}`, `,"finishReason":"MAX_TOKENS"`))}, text: "x", stop: "length"},
		{name: "a filter", raw: []string{sse(parts(`{"text":"x"}`, `,"finishReason":"RECITATION"`))}, text: "x", stop: "filter"},
		{
			name: "calls without ids", raw: []string{sse(parts(call+`,{"functionCall":{"name":"pong"}}`, finished))}, native: true, stop: "calls",
			calls: []convo.Call{
				{ID: "call_ba2be74bf4d222c3_0", Name: "ping", Arguments: `{"n":12345678901234567890, "a":"<b>"}`},
				{ID: "call_ba2be74bf4d222c3_1", Name: "pong", Arguments: "{}"},
			},
		},
		{
			name: "calls in steps", keep: true, stop: "calls", calls: ping,
			raw: []string{sse(event("step.start", `"index":0,"step":{"type":"function_call","id":"a","name":"ping","arguments":{}}`), event("step.delta", `"index":0,"delta":{"type":"arguments_delta","arguments":"{}"}`), strings.Replace(stepsDone, "completed\",\"model", `requires_action","model`, 1))},
		},
		{
			name: "arguments that come at once", keep: true, stop: "calls", calls: []convo.Call{{ID: "a", Name: "ping", Arguments: `{"n":1}`}},
			raw: []string{sse(event("step.start", `"index":0,"step":{"type":"function_call","id":"a","name":"ping","arguments":{"n":1}}`), stepsDone)},
		},
		{name: "steps and events that nobody knows", keep: true, text: "So.", raw: []string{sse(
			event("interaction.smells", `"x":1`), event("step.start", `"index":0,"step":{"type":"google_search_call"}`), event("step.delta", `"index":1,"delta":{"type":"text","text":""}`),
			strings.Replace(start, `"index":0`, `"index":2`, 1), event("step.delta", `"index":2,"delta":{"type":"text","text":"So."}`), stepsDone, "[DONE]")}},
		{name: "a step that its start tells", keep: true, text: "So.", raw: []string{sse(event("step.start", `"index":0,"step":{"type":"model_output","content":[{"type":"text","text":"So."}]}`), stepsDone)}},
		{
			name: "an interaction that is not streamed", keep: true, kind: "application/json", text: "So.", thought: "Hm.", native: true, usage: llm.Usage{Input: 8, Output: 5, Reasoning: 2},
			raw: []string{`{"id":"v1_1","object":"interaction","status":"completed","steps":[{"type":"thought","signature":"s","summary":[{"type":"text","text":"Hm."}]},{"type":"model_output","content":[{"type":"text","text":"So."}]}],"usage":{"total_input_tokens":8,"total_output_tokens":3,"total_thought_tokens":2}}`},
		},
	}
}

// streamed returns what the pieces make.
func streamed(chunks []llm.Chunk) (text, thought string, received []convo.Call) {
	for _, k := range chunks {
		text, thought = text+k.Text, thought+k.Reasoning
		if k.Call != nil {
			received = append(received, *k.Call)
		}
	}
	return text, thought, received
}

func TestAnswersOfManyKindsAreUnderstood(t *testing.T) {
	t.Parallel()
	for _, c := range oddities() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, chunks, err := answerTo(t, c.keep, llmtest.Turn{Raw: c.raw, Type: c.kind})
			if err != nil {
				t.Fatal(err)
			}
			text, thought, received := streamed(chunks)
			if res.Message.Text != c.text || text != c.text || res.Message.Reasoning != c.thought || thought != c.thought {
				t.Errorf("text %q, streamed %q; reasoning %q, streamed %q", res.Message.Text, text, res.Message.Reasoning, thought)
			}
			var names []convo.Call
			for _, k := range c.calls {
				names = append(names, convo.Call{ID: k.ID, Name: k.Name})
			}
			if !slices.Equal(res.Message.Calls, c.calls) || !slices.Equal(received, names) {
				t.Errorf("calls %+v, announced %+v", res.Message.Calls, received)
			}
			if want := c.stop; res.Stop != want && (want != "" || res.Stop != "end") || res.Usage != c.usage || (res.Message.Native != nil) != c.native {
				t.Errorf("stop %q, usage %+v, native %s", res.Stop, res.Usage, res.Message.Native)
			}
		})
	}
}

func TestCallsWithoutIDsAreAnsweredByTheirOrder(t *testing.T) {
	t.Parallel()
	raw := sse(parts(`{"functionCall":{"name":"ping","args":{"b":1, "a":9007199254740993}},"thoughtSignature":"AAAA"},{"functionCall":{"name":"ping"}}`, finished))
	s := llmtest.New(t, llmtest.Turn{Raw: []string{raw}})
	p := gemini.New(gemini.Options{BaseURL: s.Root})
	req := hello()
	res, err := p.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := res.Message.Calls
	var stored convo.Message // a journal keeps no order of keys
	data, err := json.Marshal(res.Message)
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, stored, result(c[1].ID, "two"), result(c[0].ID, "one"))
	body, err := p.Body(req)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), `"id"`) || strings.Index(string(body), "one") > strings.Index(string(body), "two") {
		t.Errorf("the calls and results are %s", body)
	}
	if !strings.Contains(string(body), `{"b":1,"a":9007199254740993}`) {
		t.Errorf("the arguments are not the model's: %s", body)
	}
}

func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	t.Parallel()
	stepStart := event("step.start", `"index":0,"step":{"type":"model_output"}`)
	failed := func(errors string) string {
		return event("interaction.completed", `"interaction":{"id":"v1_1","status":"failed","errors":[`+errors+`]}`)
	}
	for _, c := range []struct {
		name, kind, raw, code, says string
		keep, retry                 bool
	}{
		{name: "nothing", code: "model_unavailable", says: "ended", retry: true},
		{name: "no end", raw: sse(parts(`{"text":"x"}`, "")), code: "model_unavailable", says: "ended", retry: true},
		{name: "no end before [DONE]", raw: sse(parts(`{"text":"x"}`, ""), "[DONE]"), code: "model_unavailable", says: "ended", retry: true},
		{name: "no JSON", raw: sse("{oops"), code: "model_unavailable", says: "invalid event", retry: true},
		{name: "a page", kind: "text/html", raw: "<html>Sign in</html>", code: "model_unavailable", says: "base URL", retry: true},
		{name: "a blocked prompt", raw: sse(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`), code: "model_filtered", says: "PROHIBITED_CONTENT"},
		{name: "a malformed call", raw: sse(parts("", `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"bad call"`)), code: "model_unavailable", says: "bad call", retry: true},
		{name: "another reason", raw: sse(parts(`{"text":"x"}`, `,"finishReason":"OTHER"`)), code: "model_unavailable", says: "OTHER", retry: true},
		{name: "a missing signature", raw: sse(parts("", `,"finishReason":"MISSING_THOUGHT_SIGNATURE"`)), code: "model_invalid_request", says: "SIGNATURE"},
		{name: "a call without a name", raw: sse(parts(`{"functionCall":{}}`, finished)), code: "model_unavailable", says: "no name", retry: true},
		{name: "an error in the stream", raw: sse(parts(`{"text":"x"}`, ""), `{"error":{"code":429,"message":"Slow.","status":"RESOURCE_EXHAUSTED"}}`), code: "model_rate_limited", says: "Slow", retry: true},
		{name: "an error as an object", kind: "application/json", raw: `{"error":"loading"}`, code: "model_unavailable", says: "loading", retry: true},
		{name: "an object that is none", kind: "application/json", raw: `{"ok":true}`, code: "model_unavailable", says: "ended", retry: true},
		{name: "steps without end", keep: true, raw: sse(stepStart), code: "model_unavailable", says: "ended", retry: true},
		{name: "an interaction that is none", keep: true, kind: "application/json", raw: `{"ok":true}`, code: "model_unavailable", says: "ended", retry: true},
		{name: "an interaction that is not reported", keep: true, raw: sse(`{"event_type":"interaction.completed"}`), code: "model_unavailable", says: "has no interaction", retry: true},
		{name: "an unknown end", keep: true, raw: sse(strings.Replace(stepsDone, `"completed"`, `"queued"`, 1)), code: "model_unavailable", says: "queued", retry: true},
		{name: "a failure without words", keep: true, raw: sse(failed("")), code: "model_unavailable", says: "failed", retry: true},
		{name: "a failure", keep: true, raw: sse(failed(`{"code":"resource_exhausted","message":"Slow."}`)), code: "model_rate_limited", says: "Slow", retry: true},
		{name: "an error event", keep: true, raw: sse(event("error", `"error":{"code":"internal","message":"Boom."}`)), code: "model_unavailable", says: "Boom", retry: true},
		{name: "a step's call without a name", keep: true, raw: sse(event("step.start", `"index":0,"step":{"type":"function_call","id":"a"}`), stepsDone), code: "model_unavailable", says: "no name", retry: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := answerTo(t, c.keep, llmtest.Turn{Raw: []string{c.raw}, Type: c.kind})
			wantError(t, err, c.code, c.says, c.retry)
		})
	}
}
