package openai_test

import (
	"reflect"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
)

// TestRecordedConversationsAreHadAgain replays about every fourth turn of real
// conversations against the strict server: each request is valid, holds the
// history as it was, and is answered with the recorded turn. The data hold 38
// calls with the id of an earlier call, which the Responses API must not see
// twice.
func TestRecordedConversationsAreHadAgain(t *testing.T) {
	t.Parallel()
	for _, api := range []string{openai.Chat, openai.Responses} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			turns := 0
			for _, r := range llmtest.Conversations(t) {
				turns += replay(t, api, r)
			}
			t.Logf("%d model turns", turns)
		})
	}
}

func replay(t *testing.T, api string, r llmtest.Conversation) int {
	t.Helper()
	s := llmtest.Start()
	defer s.Close()
	p := openai.New(openai.Options{BaseURL: s.URL, API: api})
	turns := 0
	for n, m := range r.Messages {
		if m.Role != convo.Assistant || (len(r.Messages)-n)/2%4 != 0 {
			continue
		}
		s.Script(llmtest.Turn{Text: m.Text, Calls: m.Calls, Piece: 200})
		res, err := p.Generate(t.Context(), &llm.Request{
			Model: "gpt-4o", System: r.Messages[0].Text, Messages: r.Messages[1:n], Tools: r.Tools,
		}, nil)
		if err != nil {
			t.Fatalf("%s, message %d: %v", r.ID, n, err)
		}
		if res.Message.Text != m.Text || !reflect.DeepEqual(res.Message.Calls, m.Calls) {
			t.Fatalf("%s, message %d is %+v, want %+v", r.ID, n, res.Message, m)
		}
		// What the next request holds is what the model said, native and all.
		r.Messages[n].Native, r.Messages[n].Provider = res.Message.Native, res.Message.Provider
		turns++
		wantHistory(t, r, s.Last().Messages, n)
	}
	return turns
}

func wantHistory(t *testing.T, r llmtest.Conversation, got []convo.Message, n int) {
	t.Helper()
	if len(got) != n {
		t.Fatalf("%s: the server got %d messages before message %d", r.ID, len(got), n)
	}
	for i, g := range got {
		w := r.Messages[i]
		if g.Role != w.Role || g.Text != w.Text || len(g.Calls) != len(w.Calls) {
			t.Fatalf("%s: message %d arrived as %+v, want %+v", r.ID, i, g, w)
		}
		for k, c := range g.Calls {
			if c.Name != w.Calls[k].Name || c.Arguments != w.Calls[k].Arguments {
				t.Fatalf("%s: message %d has the call %+v, want %+v", r.ID, i, c, w.Calls[k])
			}
		}
		// One call at a time: the message before a result is its call's.
		if g.Role == convo.Tool && g.CallID != got[i-1].Calls[0].ID {
			t.Fatalf("%s: message %d arrived as %+v, want %+v", r.ID, i, g, w)
		}
	}
}
