package recorded_test

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
)

func airline(tb testing.TB) *recorded.Conversations {
	tb.Helper()
	f := shareddata.Open(tb, shareddata.Airline)
	c, err := recorded.FromConversations(bufio.NewReader(f))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// before returns the request that a conversation's messages up to n make.
func before(ms []convo.Message, n int) *llm.Request {
	return &llm.Request{System: ms[0].Text, Messages: slices.Clone(ms[1:n])}
}

func TestEveryTurnOfTheRealConversationsIsReproduced(t *testing.T) {
	t.Parallel()
	p := airline(t)
	turns, called, messages := 0, 0, 0
	for _, c := range p.Conversations() {
		messages += len(c.Messages)
		for i, m := range c.Messages {
			if m.Role != convo.Assistant {
				continue
			}
			turns++
			called += len(m.Calls)
			resp, chunks, err := generate(t, p, before(c.Messages, i))
			if err != nil {
				t.Fatalf("%s, message %d: %v", c.ID, i+1, err)
			}
			if !resp.Message.Equal(m) {
				t.Fatalf("%s, message %d: got %+v, want %+v", c.ID, i+1, resp.Message, m)
			}
			if want := map[bool]string{true: "calls", false: "end"}[len(m.Calls) > 0]; resp.Stop != want || len(chunks) == 0 {
				t.Fatalf("%s, message %d: stop %q with %d pieces", c.ID, i+1, resp.Stop, len(chunks))
			}
		}
	}
	if len(p.Conversations()) != 120 || messages != 3136 || turns != 1448 || called != 678 {
		t.Errorf("%d conversations, %d messages, %d turns, %d calls", len(p.Conversations()), messages, turns, called)
	}
}

// TestAChangedWordOfARealConversationIsReportedWithItsPlace changes one word
// of each conversation, each in another message.
func TestAChangedWordOfARealConversationIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	p := airline(t)
	changed := 0
	for n, c := range p.Conversations() {
		last := len(c.Messages) - 1
		for c.Messages[last].Role != convo.Assistant {
			last--
		}
		at := 2 + n%(last-2) // the opening words of several are alike
		r := before(c.Messages, last)
		text := r.Messages[at-1].Text
		word := strings.IndexFunc(text, unicode.IsLetter)
		if word < 0 {
			continue // an answer that only calls a tool
		}
		changed++
		r.Messages[at-1].Text = text[:word] + "Ω" + text[word+1:]
		_, _, err := generate(t, p, r)
		place := fmt.Sprintf("has the first %d and differs at message %d (%s) text, character ", at, at+1, c.Messages[at].Role)
		wantDivergence(t, err, place, "recorded: ", "Ω")
		if t.Failed() {
			t.Fatalf("it was message %d of %s", at+1, c.ID)
		}
	}
	if changed < 60 {
		t.Errorf("only %d of 120 conversations had a word to change", changed)
	}
}

func TestUnrecordedRequestReportsHowFarItMatches(t *testing.T) {
	t.Parallel()
	const file = `
{"id":"one","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":"bye"}]}
{"id":"two","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi"},{"role":"assistant","content":"good day"},{"role":"user","content":"so"}]}
{"id":"three","messages":[{"role":"developer","content":"be kind"},{"role":"user","content":"help"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","name":"f","content":[{"type":"text","text":"do"},{"type":"text","text":"ne"}]},{"role":"assistant","content":"there"}]}

`
	p, err := recorded.FromConversations(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	call := convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "c1", Name: "f", Arguments: "{}"}}}
	other := convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "c1", Name: "f", Arguments: `{"x":1}`}}}
	u := func(s string) convo.Message { return convo.Message{Role: convo.User, Text: s} }
	a := func(s string) convo.Message { return convo.Message{Role: convo.Assistant, Text: s} }
	res := func(s string) convo.Message { return convo.Message{Role: convo.Tool, CallID: "c1", Text: s} }
	for _, c := range []struct {
		name string
		ms   []convo.Message
		want []string // of the error; one that begins with "=" is the answer
	}{
		{"known", []convo.Message{u("help"), call, res("done")}, []string{"=there"}},
		{"ambiguous", []convo.Message{u("hi")}, []string{"2 recorded conversations", "among them one and two"}},
		{"at its end", []convo.Message{u("hi"), a("hello"), u("bye")}, []string{"conversation one ends after these 4 messages"}},
		{"past its end", []convo.Message{u("hi"), a("hello"), u("bye"), u("bye")}, []string{"one has the first 4 and ends there"}},
		{"not the assistant's turn", []convo.Message{u("hi"), a("hello")}, []string{"conversation one begins with these 3 messages", "role user"}},
		{"the nearest is shown", []convo.Message{u("hi"), a("good dog")}, []string{
			"two has the first 2 and differs at message 3 (assistant) text, character 7:", `recorded: "good day"`, `request:  "good dog"`,
		}},
		{"another call", []convo.Message{u("help"), other, res("done")}, []string{
			"three has the first 2 and differs at message 3 (assistant) calls.1.arguments, character 2:",
		}},
		{"another result", []convo.Message{u("help"), call, res("gone")}, []string{"differs at message 4 (tool) text, character 1:"}},
	} {
		resp, _, err := generate(t, p, &llm.Request{System: "be kind", Messages: c.ms})
		if want, ok := strings.CutPrefix(c.want[0], "="); ok {
			if err != nil || resp.Message.Text != want {
				t.Errorf("%s: %v, %v", c.name, resp, err)
			}
			continue
		}
		wantDivergence(t, err, c.want...)
	}
	_, _, err = generate(t, p, &llm.Request{Messages: []convo.Message{u("hi")}})
	wantDivergence(t, err, "has the first 0 and differs at message 1 (user) role")
	none, err := recorded.FromConversations(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = generate(t, none, &llm.Request{Messages: []convo.Message{u("hi")}})
	wantDivergence(t, err, "none was recorded")
}

func TestConversationsThatCannotBeReadAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"id":"a","messages":[{"role":"user"}`:                                                                "line 2: ",
		`{"id":"a","messages":[{"role":"robot"}]}`:                                                             `line 2: message 1: unknown role "robot"`,
		`{"id":"a","messages":[{"role":"user","content":5}]}`:                                                  "line 2: message 1: content is neither",
		`{"id":"a","messages":[{"role":"user"},{"role":"user","content":[{"type":"image_url"}]}]}`:             `line 2: message 2: a part of type "image_url"`,
		`{"id":"a","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]}]}`: "line 2: ",
	} {
		_, err := recorded.FromConversations(strings.NewReader("{\"id\":\"ok\",\"messages\":[]}\n" + line + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gives %v\nwant %s", line, err, want)
		}
	}
}

func FuzzConversations(f *testing.F) {
	f.Add([]byte(`{"id":"a","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"x"}]}]}`))
	f.Add([]byte("{}\n\n{\"messages\":[{\"role\":\"system\"}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := recorded.FromConversations(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, c := range p.Conversations() {
			for i, m := range c.Messages {
				resp, _, err := generate(t, p, &llm.Request{Messages: c.Messages[:i]})
				if m.Role == convo.Assistant && err == nil && !resp.Message.Equal(m) {
					// Another conversation may begin alike, but then it is ambiguous.
					t.Fatalf("%s, message %d: answered %+v", c.ID, i+1, resp.Message)
				}
			}
		}
	})
}

// BenchmarkLookup answers the last turn of every real conversation.
func BenchmarkLookup(b *testing.B) {
	p := airline(b)
	var reqs []*llm.Request
	for _, c := range p.Conversations() {
		for i := len(c.Messages) - 1; ; i-- {
			if c.Messages[i].Role == convo.Assistant {
				reqs = append(reqs, before(c.Messages, i))
				break
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range reqs {
			if _, err := p.Generate(b.Context(), r, func(llm.Chunk) {}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
