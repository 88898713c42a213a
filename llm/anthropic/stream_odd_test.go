package anthropic_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/llmtest"
)

// The events that streams are made of.
const (
	start    = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`
	textOn   = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textHe   = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hé"}}`
	textLlo  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"llo"}}`
	blockOff = `{"type":"content_block_stop","index":0}`
	ended    = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":4}}`
	stopped  = `{"type":"message_stop"}`
)

// sse is events, each named after its type.
func sse(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("event: x\ndata: " + d + "\n\n")
	}
	return b.String()
}

func ending(reason string) string { return strings.Replace(ended, "end_turn", reason, 1) }

func hello() *llm.Request {
	return &llm.Request{Model: "m", Key: "run/x", Messages: []convo.Message{user("Hello.")}}
}

// answerTo makes one call that is answered with turn.
func answerTo(t *testing.T, turns ...llmtest.Turn) (*llm.Response, []llm.Chunk, error) {
	t.Helper()
	s := llmtest.New(t, turns...)
	var chunks []llm.Chunk
	res, err := anthropic.New(anthropic.Options{BaseURL: s.Root}).Generate(
		context.Background(), hello(), func(c llm.Chunk) { chunks = append(chunks, c) },
	)
	return res, chunks, err
}

func raw(events ...string) llmtest.Turn { return llmtest.Turn{Raw: []string{sse(events...)}} }

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

func TestStreamsOfManyServersAreUnderstood(t *testing.T) {
	t.Parallel()
	whole := sse(start, textOn, textHe, textLlo, blockOff, ended, stopped)
	for _, c := range []struct {
		name, kind string
		raw        []string
		stop       string
	}{
		{name: "plain", raw: []string{whole}},
		{name: "byte by byte", raw: strings.Split(whole, "")},
		{name: "CRLF", raw: []string{strings.ReplaceAll(whole, "\n", "\r\n")}},
		{name: "without event names", raw: []string{strings.ReplaceAll(whole, "event: x\n", "")}},
		{name: "with comments and pings", raw: []string{": hi\n\n" + sse(`{"type":"ping"}`) + whole}},
		{name: "events of a later version", raw: []string{sse(start, `{"type":"weather","sky":1}`, textOn, `{"type":"content_block_delta","index":0,"delta":{"type":"mood_delta","mood":2}}`, textHe, textLlo, blockOff, ended, stopped)}},
		{name: "without the last event", raw: []string{sse(start, textOn, textHe, textLlo, blockOff, ended)}},
		{name: "a [DONE] of habit", raw: []string{whole + "data: [DONE]\n\n"}},
		{name: "a block that begins with words", raw: []string{sse(start, strings.Replace(textOn, `""`, `"Hé"`, 1), textLlo, blockOff, ended, stopped)}},
		{name: "a block that is never closed", raw: []string{sse(start, textOn, textHe, textLlo, ended, stopped)}},
		{name: "one text in two blocks", raw: []string{sse(start, textOn, textHe, blockOff, textOn, textLlo, blockOff, ended, stopped)}},
		{name: "a stop sequence", raw: []string{strings.Replace(whole, "end_turn", "stop_sequence", 1)}},
		{name: "a reason nobody knows", raw: []string{strings.Replace(whole, "end_turn", "bored", 1)}},
		{name: "a limit", raw: []string{strings.Replace(whole, "end_turn", "max_tokens", 1)}, stop: "length"},
		{name: "a full window", raw: []string{strings.Replace(whole, "end_turn", "model_context_window_exceeded", 1)}, stop: "length"},
		{name: "a refusal", raw: []string{strings.Replace(whole, "end_turn", "refusal", 1)}, stop: "filter"},
		{name: "calls promised and not made", raw: []string{strings.Replace(whole, "end_turn", "tool_use", 1)}},
		{
			name: "one object instead of a stream", kind: "application/json; charset=utf-8",
			raw: []string{`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Héllo"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4}}`},
		},
		{name: "a stream that calls itself plain text", kind: "text/plain", raw: []string{whole}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, chunks, err := answerTo(t, llmtest.Turn{Raw: c.raw, Type: c.kind})
			if err != nil {
				t.Fatal(err)
			}
			wantSaid(t, res, chunks, "Héllo", "")
			want := c.stop
			if want == "" {
				want = "end"
			}
			if res.Stop != want || res.Usage != (llm.Usage{Input: 9, Output: 4}) || res.ID != "msg_1" || res.Message.Native != nil {
				t.Errorf("%+v", res)
			}
		})
	}
}

func TestStreamsThatAreNoAnswerAreErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, raw, code, says string
		retry                       bool
	}{
		{"nothing", "", "", "model_unavailable", "ended", true},
		{"only comments", "", ": hi\n\n: ho\n\n", "model_unavailable", "ended", true},
		{"no end", "", sse(start, textOn, textHe, blockOff), "model_unavailable", "ended", true},
		{"an end that gives no reason", "", sse(start, textOn, textHe, blockOff, stopped), "model_unavailable", "ended", true},
		{"half an event", "", sse(start, textOn) + "data: {\"type", "model_unavailable", "ended", true},
		{"an event that is no JSON", "", sse(start, "{oops"), "model_unavailable", "invalid event", true},
		{"a piece of nothing", "", sse(start, textHe), "model_unavailable", "not started", true},
		{"a block of no type", "", sse(start, `{"type":"content_block_start","index":0,"content_block":{}}`), "model_unavailable", "type", true},
		{"a call without a name", "", sse(start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a"}}`), "model_unavailable", "no name", true},
		{"a page", "text/html", "<html>Sign in</html>", "model_unavailable", "base URL", true},
		{"an object that is no answer", "application/json", `{"status":"ok"}`, "model_unavailable", "ended", true},
		{"no object", "application/json", `[`, "model_unavailable", "invalid event", true},
		{"an error as an object", "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "model_overloaded", "Overloaded", true},
		{"an overload in a stream", "", sse(start, textOn, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "model_overloaded", "Overloaded", true},
		{"a rate limit in a stream", "", sse(`{"type":"error","error":{"type":"rate_limit_error","message":"Slow"}}`), "model_rate_limited", "Slow", true},
		{"an internal error in a stream", "", sse(`{"type":"error","error":{"type":"api_error","message":"Oops"}}`), "model_unavailable", "Oops", true},
		{"a timeout in a stream", "", sse(`{"type":"error","error":{"type":"timeout_error","message":"Late"}}`), "model_timeout", "Late", true},
		{"a refusal in a stream", "", sse(`{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`), "model_filtered", "policy", false},
		{"an error of a type nobody knows", "", sse(`{"type":"error","error":{"type":"odd_error","message":"?"}}`), "model_unavailable", "?", true},
		{"an error that is text", "", sse(`{"type":"error","error":"cuda out of memory"}`), "model_unavailable", "cuda", true},
		{"an error that is nothing", "", sse(`{"type":"error"}`), "model_unavailable", "error", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, _, err := answerTo(t, llmtest.Turn{Raw: []string{c.raw}, Type: c.kind})
			if res != nil {
				t.Errorf("there is an answer: %+v", res)
			}
			wantError(t, err, c.code, c.says, c.retry)
		})
	}
}

func toolOn(index, id, input string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use","id":"` + id + `","name":"ping","input":` + input + `}}`
}

func blockFields(index, text string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":"` + text + `"}}`
}

func TestToolCallsOfManyServersAreUnderstood(t *testing.T) {
	t.Parallel()
	a := convo.Call{ID: "a", Name: "ping", Arguments: `{"n":1}`}
	b := convo.Call{ID: "b", Name: "ping", Arguments: `{"n": 2}`}
	off := func(index string) string { return `{"type":"content_block_stop","index":` + index + `}` }
	for _, c := range []struct {
		name, reason string
		raw          []string
		want         []convo.Call
		stop         string
	}{
		{"interleaved pieces", "tool_use", []string{toolOn("0", "a", "{}"), toolOn("1", "b", "{}"), blockFields("1", `{\"n\"`), blockFields("0", `{\"n\":`), blockFields("0", `1}`), blockFields("1", `: 2}`), off("1"), off("0")}, []convo.Call{a, b}, "calls"},
		{"all at the start", "end_turn", []string{toolOn("0", "a", `{"n":1}`), off("0")}, []convo.Call{a}, "calls"},
		{"no arguments", "tool_use", []string{toolOn("0", "a", "{}"), blockFields("0", ""), off("0")}, []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}, "calls"},
		{"arguments that are broken", "tool_use", []string{toolOn("0", "a", "{}"), blockFields("0", `{oops`), off("0")}, []convo.Call{{ID: "a", Name: "ping", Arguments: "{oops"}}, "calls"},
		{"cut by the limit", "max_tokens", []string{toolOn("0", "a", "{}"), blockFields("0", `{\"n\":1}`), off("0"), toolOn("1", "b", "{}"), blockFields("1", `{\"n`), off("1")}, []convo.Call{a}, "length"},
		{"cut before the first piece", "max_tokens", []string{toolOn("0", "a", "{}")}, nil, "length"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			events := slices.Concat([]string{start}, c.raw, []string{ending(c.reason), stopped})
			res, chunks, err := answerTo(t, raw(events...))
			if err != nil {
				t.Fatal(err)
			}
			received := 0
			for _, k := range chunks {
				if k.Call != nil {
					received++
				}
			}
			if !slices.Equal(res.Message.Calls, c.want) || res.Stop != c.stop || received < len(c.want) {
				t.Errorf("calls %+v, stop %q, %d announced", res.Message.Calls, res.Stop, received)
			}
		})
	}
}

func TestCallsWithoutIDsGetTheSameOnesAgain(t *testing.T) {
	t.Parallel()
	events := raw(start, toolOn("0", "", "{}"), toolOn("1", "", "{}"), ending("tool_use"), stopped)
	var ids [2][]string
	for n := range ids {
		res, _, err := answerTo(t, events)
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

func TestInputUsageIncludesCacheReadsAndWrites(t *testing.T) {
	t.Parallel()
	from := strings.Replace(start, `"input_tokens":9`, `"input_tokens":9,"cache_read_input_tokens":100,"cache_creation_input_tokens":20`, 1)
	res, _, err := answerTo(t, raw(from, textOn, textHe, blockOff, ended, stopped))
	if err != nil || res.Usage != (llm.Usage{Input: 129, Cached: 100, Written: 20, Output: 4}) {
		t.Errorf("%v, %+v", err, res)
	}
	last := strings.Replace(ended, `"output_tokens":4`, `"input_tokens":11,"cache_read_input_tokens":90,"output_tokens":4,"output_tokens_details":{"thinking_tokens":3}`, 1)
	res, _, err = answerTo(t, raw(from, textOn, textHe, blockOff, last, stopped))
	if err != nil || res.Usage != (llm.Usage{Input: 121, Cached: 90, Written: 20, Output: 4, Reasoning: 3}) {
		t.Errorf("%v, %+v", err, res)
	}
}

func TestTurnPausedByTheVendorContinues(t *testing.T) {
	t.Parallel()
	search := `{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`
	s := llmtest.New(t,
		raw(start, textOn, textHe, blockOff, search, blockFields("1", `{\"q\":1}`), `{"type":"content_block_stop","index":1}`, ending("pause_turn"), stopped),
		raw(start, textOn, textLlo, blockOff, ended, stopped),
	)
	var chunks []llm.Chunk
	p := anthropic.New(anthropic.Options{BaseURL: s.Root})
	res, err := p.Generate(t.Context(), hello(), func(c llm.Chunk) { chunks = append(chunks, c) })
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, res, chunks, "Héllo", "")
	if res.Stop != "end" || res.Usage != (llm.Usage{Input: 18, Output: 8}) || len(s.Requests()) != 2 {
		t.Errorf("%+v after %d requests", res, len(s.Requests()))
	}
	if body := string(s.Last().Body); !strings.Contains(body, `"srvtoolu_1"`) || !strings.Contains(body, `{"q":1}`) {
		t.Errorf("it went on from %s", body)
	}
	// What the vendor's tool gave comes back verbatim.
	s.Script(llmtest.Text("Yes."))
	if _, err := p.Generate(t.Context(), &llm.Request{Model: "m", Messages: []convo.Message{user("Hello."), res.Message, user("And?")}}, nil); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Last().Body); !strings.Contains(body, `"server_tool_use"`) {
		t.Errorf("the block is not sent back: %s", body)
	}
}

func TestTurnPausedForeverEnds(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Answer(func(*llmtest.Request) llmtest.Turn {
		search := `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`
		return raw(start, search, blockOff, ending("pause_turn"), stopped)
	})
	_, err := anthropic.New(anthropic.Options{BaseURL: s.Root}).Generate(t.Context(), hello(), nil)
	wantError(t, err, "model_unavailable", "too often", false)
}
