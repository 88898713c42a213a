package llmtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

func testHistory(t *testing.T, x *conformanceTest) {
	warm := 0.5
	req := &llm.Request{
		System: "You keep the weir.", MaxOutput: 500, Temperature: &warm,
		Tools: []llm.Tool{weather(), {Name: "tide"}},
		Messages: []convo.Message{
			{ID: "m1", Role: convo.System, Text: "Be brief."},
			{ID: "m2", Role: convo.User, Text: "Hello."},
			{ID: "m3", Role: convo.Assistant, Text: "Hello to you."},
			{ID: "m4", Role: convo.User, Text: "Weather and tide?"},
			{ID: "m5", Role: convo.Assistant, Reasoning: "two tools", Calls: []convo.Call{
				{ID: "c1", Name: "weather", Arguments: `{"city":"Bern"}`},
				{ID: "c2", Name: "tide", Arguments: `{}`},
			}},
			{ID: "m6", Role: convo.Tool, CallID: "c1", Name: "weather", Text: "rain"},
			{ID: "m7", Role: convo.Tool, CallID: "c2", Name: "tide", Text: "no harbour", Failed: true},
			{ID: "m8", Role: convo.Assistant, Text: "Rain, and no tide.", Calls: []convo.Call{
				{ID: "c3", Name: "tide", Arguments: ""},
			}},
			{ID: "m9", Role: convo.Tool, CallID: "c3", Text: ""},
			{ID: "m10", Role: convo.Assistant, Text: "Nothing."},
			{ID: "m11", Role: convo.User, Text: "Thanks.", Metadata: map[string]any{"mood": "good"}, Pinned: true},
			{ID: "m12", Role: convo.User, Text: "And now?"},
		},
	}
	x.Script(Text("Now rest."))
	x.ask(t, req)
	want := append([]convo.Message{{Role: convo.System, Text: req.System}}, req.Messages...)
	want[8].Calls = []convo.Call{{ID: "c3", Name: "tide", Arguments: "{}"}}
	x.sameHistory(t, want)
	if got := x.Last().Messages; len(got) > 5 && (got[5].Reasoning != "" || strings.Contains(string(x.Last().Body), "two tools")) {
		t.Errorf("reasoning was sent as content")
	}
}

// texts that are difficult to encode.
func texts() []string {
	return []string{
		"żółć 水門 🏞️ 👩‍👩‍👧 e\u0301", "שלום \u202emirror\u202c", "line\nline\r\nline\tend ", "\u2028 and \u2029 and \u0085",
		"quote \" back \\ slash / <tag> & \u0000 \u001b[0m \u007f", "data: [DONE]\n\ndata: {}\n\n", "{{ run.inputs.x }}",
		strings.Repeat("a", 70_000), "\U0010ffff\ufffd",
	}
}

func testUnicode(t *testing.T, x *conformanceTest) {
	for _, text := range texts() {
		arguments := encode(map[string]any{"city": text})
		piece := 1
		if len(text) > 1000 {
			piece = 4096
		}
		x.Script(Turn{Text: text, Piece: piece, Calls: []convo.Call{{ID: "call_1", Name: "weather", Arguments: arguments}}}, Text("k"))
		req := say(text)
		req.System, req.Tools = text, []llm.Tool{weather()}
		h := x.ask(t, req)
		if h.Message.Text != text {
			t.Fatalf("%.40q came back as %.40q", text, h.Message.Text)
		}
		x.sameCalls(t, h.Message.Calls, []convo.Call{{ID: "call_1", Name: "weather", Arguments: arguments}})
		next := &llm.Request{Messages: after(req, h, text), Tools: req.Tools}
		x.ask(t, next)
		x.sameHistory(t, next.Messages)
	}
}

func testEmpty(t *testing.T, x *conformanceTest) {
	for _, nothing := range []string{"", " \n", "\u2028\u0085"} {
		x.Script(Text(""), Text("Well."))
		req := say(nothing)
		h := x.ask(t, req)
		if h.Message.Text != "" || len(h.Message.Calls) != 0 || h.Stop != "end" {
			t.Fatalf("an empty answer came as %+v, stop %q", h.Message, h.Stop)
		}
		next := &llm.Request{Messages: append(after(req, h), convo.Message{Role: convo.User, Text: "Well?"})}
		x.ask(t, next)
		x.sameHistory(t, next.Messages)
	}
}

func testImages(t *testing.T, x *conformanceTest) {
	x.needs(t, Images)
	x.parts(t, convo.User, []convo.Part{
		{Kind: "image", MIME: "image/jpeg", Data: []byte{0xff, 0xd8, 0, 1, 2, 3}},
		{Kind: "image", URL: "https://example.com/weir.png"},
	})
}

func testFiles(t *testing.T, x *conformanceTest) {
	x.needs(t, Files)
	x.parts(t, convo.User, []convo.Part{
		{Kind: "file", MIME: "application/pdf", Name: "plan.pdf", Data: []byte("%PDF-1.7")},
	})
}

func testToolParts(t *testing.T, x *conformanceTest) {
	x.needs(t, ToolParts)
	x.parts(t, convo.Tool, []convo.Part{
		{Kind: "image", MIME: "image/png", Data: []byte{0x89, 'P', 'N', 'G'}},
		{Kind: "file", MIME: "text/plain", Name: "log.txt", Data: []byte("log")},
	})
}

// parts sends them in a message of a role, with and without text.
func (x *conformanceTest) parts(t *testing.T, role convo.Role, parts []convo.Part) {
	t.Helper()
	for _, text := range []string{"Look at this.", ""} {
		x.Script(Text("Seen."))
		req := say("Hello.")
		m := convo.Message{Role: role, Text: text, Parts: parts}
		if role == convo.Tool {
			m.CallID = "c1"
			req.Messages = append(req.Messages, convo.Message{
				Role: convo.Assistant, Calls: []convo.Call{{ID: "c1", Name: "weather", Arguments: "{}"}},
			})
			req.Tools = []llm.Tool{weather()}
		}
		req.Messages = append(req.Messages, m)
		x.ask(t, req)
		x.sameHistory(t, req.Messages)
	}
	req := say("Hello.")
	req.Messages[0].Parts = []convo.Part{{Kind: parts[0].Kind}}
	if e := x.fail(t, req); e.Code != "model_invalid_request" {
		t.Errorf("a part without content is %s", e.Code)
	}
}

func testUntouched(t *testing.T, x *conformanceTest) {
	next := reasoned(t, x)
	next.Model, next.Schema = x.subject.Model, map[string]any{"type": "object", "properties": map[string]any{}}
	before := encode(next)
	x.ask(t, next)
	if now := encode(next); now != before {
		t.Errorf("the request was\n%s\nand is\n%s", before, now)
	}
}

func testKey(t *testing.T, x *conformanceTest) {
	x.needs(t, Idempotency)
	for _, key := range []string{"run-1/reply/model#0", "run-1/refine#2/draft/model#1"} {
		x.Script(Text("Yes."))
		req := say("Hello.")
		req.Key = key
		x.ask(t, req)
		if x.Last().Key != key {
			t.Errorf("the key %q arrived as %q", key, x.Last().Key)
		}
		if strings.Contains(string(x.Last().Body), key) {
			t.Errorf("the key is in the body")
		}
	}
}

func testConcurrent(t *testing.T, x *conformanceTest) {
	x.Answer(func(r *Request) Turn {
		last := r.Messages[len(r.Messages)-1].Text
		return Turn{
			Text: "echo " + last, Piece: 1,
			Calls: []convo.Call{{ID: "call_" + last, Name: "weather", Arguments: encode(map[string]any{"city": last})}},
		}
	})
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			word := fmt.Sprintf("n%d", n)
			req := say(word)
			req.Model, req.Tools = x.subject.Model, []llm.Tool{weather()}
			h, err := x.try(t.Context(), req)
			if err != nil {
				t.Errorf("call %d: %v", n, err)
				return
			}
			var arguments struct{ City string }
			if len(h.Message.Calls) == 1 {
				_ = json.Unmarshal([]byte(h.Message.Calls[0].Arguments), &arguments) // compared below
			}
			if h.text() != "echo "+word || h.Message.Text != "echo "+word || arguments.City != word {
				t.Errorf("call %d gave %q, %+v", n, h.Message.Text, h.Message.Calls)
			}
		})
	}
	wg.Wait()
}
