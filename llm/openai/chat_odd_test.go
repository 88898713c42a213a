package openai_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
)

// answerTo makes one call against raw bytes and returns the pieces as well.
func answerTo(t *testing.T, api string, turn llmtest.Turn) (*llm.Response, []llm.Chunk, error) {
	t.Helper()
	s := llmtest.New(t, turn)
	p := openai.New(openai.Options{BaseURL: s.URL, API: api})
	var chunks []llm.Chunk
	res, err := p.Generate(t.Context(), &llm.Request{
		Model: "local-model", Key: "run/node#0",
		Messages: []convo.Message{{Role: convo.User, Text: "Hello."}},
		Tools:    []llm.Tool{{Name: "ping"}, {Name: "pong"}},
	}, func(c llm.Chunk) { chunks = append(chunks, c) })
	return res, chunks, err
}

// sse makes events of data lines.
func sse(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

const (
	chatStart = `{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}],"usage":null,"error":null}`
	chatHello = `{"id":"c1","choices":[{"index":0,"delta":{"content":"Héllo 🏞️"},"finish_reason":null}]}`
	chatStop  = `{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	chatUsage = `{"id":"c1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}`
)

// byBytes makes every byte a write of its own.
func byBytes(s string) []string {
	out := make([]string, 0, len(s))
	for i := range len(s) {
		out = append(out, s[i:i+1])
	}
	return out
}

// oddity is a stream that says "Héllo 🏞️" in a server's own way.
type oddity struct {
	name  string
	raw   []string
	kind  string
	think string
	usage llm.Usage
	stop  string
}

// framings returns the same answer in other bytes.
func framings() []oddity {
	whole := sse(chatStart, chatHello, chatStop, chatUsage, "[DONE]")
	usage := llm.Usage{Input: 9, Output: 4}
	return []oddity{
		{name: "in one write", raw: []string{whole}, usage: usage},
		{name: "a byte a write", raw: byBytes(whole), usage: usage},
		{name: "with CRLF", raw: []string{strings.ReplaceAll(whole, "\n", "\r\n")}, usage: usage},
		{name: "with CRLF, a byte a write", raw: byBytes(strings.ReplaceAll(whole, "\n", "\r\n")), usage: usage},
		{
			name:  "with comments, keepalives and other fields",
			raw:   []string{": hi\n\n", "retry: 300\n\n", "event: ping\n\n", "id: 7\n", whole[:80], whole[80:], ": bye\n\n"},
			usage: usage,
		},
		{name: "without a space after the colon", raw: []string{strings.ReplaceAll(whole, "data: ", "data:")}, usage: usage},
		{name: "an event over two data lines", raw: []string{
			strings.Replace(whole, `"object"`, "\ndata: \"object\"", 1),
		}, usage: usage},
		{name: "without [DONE]", raw: []string{sse(chatStart, chatHello, chatStop, chatUsage)}, usage: usage},
		{name: "without a finish_reason", raw: []string{sse(chatStart, chatHello, chatUsage, "[DONE]")}, usage: usage},
		{name: "without usage", raw: []string{sse(chatStart, chatHello, chatStop, "[DONE]")}},
		{
			name:  "usage growing in every chunk",
			raw:   []string{sse(chatStart, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, chatHello, chatUsage, chatStop, "[DONE]")},
			usage: usage,
		},
		{
			name:  "cached and reasoning tokens",
			raw:   []string{sse(chatHello, chatStop, `{"choices":null,"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_cache_hit_tokens":8,"completion_tokens_details":{"reasoning_tokens":3}}}`)},
			usage: llm.Usage{Input: 9, Cached: 8, Output: 4, Reasoning: 3},
		},
		{
			name: "filter results before the answer, other choices beside it",
			raw: []string{sse(`{"choices":[],"prompt_filter_results":[{}]}`, `{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}`,
				chatHello, chatStop, "[DONE]")},
		},
	}
}

// contents are answers that say more, or end otherwise.
func contents() []oddity {
	whole := sse(chatStart, chatHello, chatStop, chatUsage, "[DONE]")
	usage := llm.Usage{Input: 9, Output: 4}
	return []oddity{
		{
			name:  "reasoning_content",
			raw:   []string{sse(`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"Hm"}}]}`, `{"choices":[{"delta":{"content":null,"reasoning_content":", so."}}]}`, chatHello, chatStop, "[DONE]")},
			think: "Hm, so.",
		},
		{
			name:  "reasoning",
			raw:   []string{sse(`{"choices":[{"delta":{"content":"","reasoning":"Hm."}}]}`, chatHello, chatStop)},
			think: "Hm.",
		},
		{
			name:  "content in parts",
			raw:   []string{sse(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]}}]}`, `{"choices":[{"delta":{"content":[{"type":"text","text":"Hé"}]}}]}`, `{"choices":[{"delta":{"content":"llo 🏞️"}}]}`, chatStop)},
			think: "Hm.",
		},
		{name: "a filter", raw: []string{sse(chatHello, `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`)}, stop: "filter"},
		{name: "a limit", raw: []string{sse(chatHello, `{"choices":[{"delta":{},"finish_reason":"length"}]}`)}, stop: "length"},
		{name: "calls promised and not made", raw: []string{sse(chatHello, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)}},
		{
			name: "one object instead of a stream", kind: "application/json; charset=utf-8", usage: usage,
			raw: []string{`{"id":"c1","model":"m","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Héllo 🏞️","tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4}}`},
		},
		{name: "a stream that calls itself plain text", kind: "text/plain", raw: []string{whole}, usage: usage},
	}
}

func TestChatStreamsOfManyServersAreUnderstood(t *testing.T) {
	t.Parallel()
	for _, c := range append(framings(), contents()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, chunks, err := answerTo(t, openai.Chat, llmtest.Turn{Raw: c.raw, Type: c.kind})
			if err != nil {
				t.Fatal(err)
			}
			wantSaid(t, res, chunks, "Héllo 🏞️", c.think)
			if want := or(c.stop, "end"); res.Stop != want || res.Usage != c.usage {
				t.Errorf("stop %q, usage %+v; want %q, %+v", res.Stop, res.Usage, want, c.usage)
			}
		})
	}
}

// wantSaid checks text and reasoning, as streamed and as a whole.
func wantSaid(t *testing.T, res *llm.Response, chunks []llm.Chunk, said, thought string) {
	t.Helper()
	var text, think strings.Builder
	for _, k := range chunks {
		text.WriteString(k.Text)
		think.WriteString(k.Reasoning)
	}
	if res.Message.Text != said || text.String() != said {
		t.Errorf("text %q, streamed %q, want %q", res.Message.Text, text.String(), said)
	}
	if res.Message.Reasoning != thought || think.String() != thought {
		t.Errorf("reasoning %q, streamed %q, want %q", res.Message.Reasoning, think.String(), thought)
	}
}

// wantCalls checks the calls, as announced and as a whole.
func wantCalls(t *testing.T, res *llm.Response, chunks []llm.Chunk, want []convo.Call) {
	t.Helper()
	var received, names []convo.Call
	for _, k := range chunks {
		if k.Call != nil {
			received = append(received, *k.Call)
		}
	}
	for _, c := range want {
		names = append(names, convo.Call{ID: c.ID, Name: c.Name})
	}
	if !slices.Equal(res.Message.Calls, want) || !slices.Equal(received, names) {
		t.Errorf("calls %+v, announced %+v; want %+v", res.Message.Calls, received, want)
	}
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func delta(calls string) string {
	return `{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":` + calls + `}}]}`
}

func TestToolCallsOfManyServersAreUnderstood(t *testing.T) {
	t.Parallel()
	ping := convo.Call{ID: "a", Name: "ping", Arguments: `{"n":1}`}
	pong := convo.Call{ID: "b", Name: "pong", Arguments: `{"n":2}`}
	for _, c := range []struct {
		name string
		raw  []string
		want []convo.Call
	}{
		{"interleaved pieces", []string{
			delta(`[{"index":0,"id":"a","type":"function","function":{"name":"ping","arguments":""}}]`),
			delta(`[{"index":1,"id":"b","type":"function","function":{"name":"pong","arguments":""}}]`),
			delta(`[{"index":1,"function":{"arguments":"{\"n\""}},{"index":0,"function":{"arguments":"{\"n\":"}}]`),
			delta(`[{"index":0,"function":{"arguments":"1}"}},{"index":1,"function":{"arguments":":2}"}}]`),
		}, []convo.Call{ping, pong}},
		{"every call numbered 0", []string{
			delta(`[{"index":0,"id":"a","function":{"name":"ping","arguments":"{\"n\":1}"}}]`),
			delta(`[{"index":0,"id":"b","function":{"name":"pong","arguments":"{\"n\":2}"}}]`),
		}, []convo.Call{ping, pong}},
		{"no numbers at all", []string{
			delta(`[{"id":"a","function":{"name":"ping","arguments":"{\"n\":1}"}},{"id":"b","function":{"name":"pong","arguments":"{\"n\":2}"}}]`),
		}, []convo.Call{ping, pong}},
		{"id and name in every piece", []string{
			delta(`[{"index":0,"id":"a","function":{"name":"ping","arguments":"{\"n\""}}]`),
			delta(`[{"index":0,"id":"a","function":{"name":"ping","arguments":":1}"}}]`),
		}, []convo.Call{ping}},
		{"null and empty for what was said", []string{
			delta(`[{"index":0,"id":"a","function":{"name":"ping","arguments":null}}]`),
			delta(`[{"index":0,"id":"","type":null,"function":{"name":null,"arguments":"{\"n\":1}"}}]`),
		}, []convo.Call{ping}},
		{"arguments as an object", []string{
			delta(`[{"index":0,"id":"a","function":{"name":"ping","arguments":{"n":1}}}]`),
		}, []convo.Call{ping}},
		{"no arguments", []string{
			delta(`[{"index":0,"id":"a","function":{"name":"ping"}}]`),
		}, []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}},
	} {
		for _, finish := range []string{"tool_calls", "stop"} {
			t.Run(c.name+", ended by "+finish, func(t *testing.T) {
				t.Parallel()
				raw := append(slices.Clone(c.raw), `{"choices":[{"delta":{},"finish_reason":"`+finish+`"}]}`)
				res, chunks, err := answerTo(t, openai.Chat, llmtest.Turn{Raw: []string{sse(raw...)}})
				if err != nil {
					t.Fatal(err)
				}
				wantCalls(t, res, chunks, c.want)
				if res.Stop != "calls" {
					t.Errorf("stop %q", res.Stop)
				}
			})
		}
	}
}

func TestCallsWithoutIDsGetTheSameOnesAgain(t *testing.T) {
	t.Parallel()
	raw := sse(delta(`[{"index":0,"function":{"name":"ping","arguments":"{}"}},{"index":1,"function":{"name":"pong","arguments":"{}"}}]`), chatStop)
	var ids [2][]string
	for n := range ids {
		res, _, err := answerTo(t, openai.Chat, llmtest.Turn{Raw: []string{raw}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range res.Message.Calls {
			ids[n] = append(ids[n], c.ID)
		}
	}
	if len(ids[0]) != 2 || ids[0][0] == "" || ids[0][0] == ids[0][1] || !slices.Equal(ids[0], ids[1]) {
		t.Errorf("the ids are %q", ids)
	}
}

func TestChatStreamsThatAreNoAnswerAreErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, raw, code, says string
		retry                       bool
	}{
		{"nothing", "", "", "model_unavailable", "ended", true},
		{"only comments", "", ": hi\n\n: ho\n\n", "model_unavailable", "ended", true},
		{"only the mark of the end", "", sse("[DONE]"), "model_unavailable", "ended", true},
		{"usage and no choice", "", sse(chatUsage, "[DONE]"), "model_unavailable", "ended", true},
		{"no end", "", sse(chatStart, chatHello), "model_unavailable", "ended", true},
		{"half an event", "", sse(chatHello) + "data: {\"choi", "model_unavailable", "ended", true},
		{"an event that is no JSON", "", sse(chatHello, "{oops"), "model_unavailable", "invalid event", true},
		{"a page", "text/html", "<html>Sign in</html>", "model_unavailable", "base URL", true},
		{"an object that is no answer", "application/json", `{"status":"ok"}`, "model_unavailable", "ended", true},
		{"an error as an object", "application/json", `{"error":"model is loading"}`, "model_unavailable", "loading", true},
		{"an error as text", "", sse(chatHello, `{"error":"cuda out of memory"}`), "model_unavailable", "cuda", true},
		{"an error with a number", "", sse(chatHello, `{"error":{"message":"Slow down","code":429}}`), "model_rate_limited", "Slow down", true},
		{"an invalid request", "", sse(`{"error":{"message":"bad template","type":"invalid_request_error","code":null}}`), "model_invalid_request", "bad template", false},
		{"a full window", "", sse(`{"error":{"message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}}`), "model_context_length", "4096", false},
		{"an aborted answer", "", sse(chatHello, `{"choices":[{"delta":{},"finish_reason":"abort"}]}`), "model_overloaded", "abort", true},
		{"a call without a name", "", sse(delta(`[{"index":0,"id":"a","function":{"arguments":"{}"}}]`), chatStop), "model_unavailable", "no name", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			turn := llmtest.Turn{Raw: []string{c.raw}, Type: c.kind}
			_, _, err := answerTo(t, openai.Chat, turn)
			wantError(t, err, c.code, c.says, c.retry)
		})
	}
}

func wantError(t *testing.T, err error, code, says string, retry bool) {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is a %T: %v", err, err)
	}
	if e.Code != code || e.Retry != retry || !strings.Contains(e.Message, says) {
		t.Errorf("the error is %v, retry %v; want %s that says %q, retry %v", e, e.Retry, code, says, retry)
	}
}

func TestReasoningOfAChatComesBackOnlyWhileItsCallsAreAnswered(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t,
		llmtest.Turn{Reasoning: "Use ping.", Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}},
		llmtest.Text("Pinged."), llmtest.Text("Bye."), llmtest.Text("Bye."),
	)
	p := openai.New(openai.Options{BaseURL: s.URL})
	ask := func(model string, messages ...convo.Message) convo.Message {
		res, err := p.Generate(context.Background(), &llm.Request{
			Model: model, Messages: messages, Tools: []llm.Tool{{Name: "ping"}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Message
	}
	hello := convo.Message{Role: convo.User, Text: "Hello."}
	call := ask("r1", hello)
	pong := convo.Message{Role: convo.Tool, CallID: "a", Text: "pong"}
	pinged := ask("r1", hello, call, pong)
	if got := s.Last().Messages[1].Reasoning; got != "Use ping." {
		t.Errorf("while the call is answered the server got the reasoning %q", got)
	}
	ask("r1", hello, call, pong, pinged, hello)
	if got := s.Last().Messages[1].Reasoning; got != "" {
		t.Errorf("in a later turn the server got the reasoning %q", got)
	}
	ask("r2", hello, call, pong)
	if got := s.Last().Messages[1].Reasoning; got != "" {
		t.Errorf("another model got the reasoning %q", got)
	}
}
