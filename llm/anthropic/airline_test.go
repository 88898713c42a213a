package anthropic_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/llmtest"
)

// TestEveryCutOfARealConversationIsAValidRequest cuts the recorded
// conversations at each end and, further on, at their beginnings, and has the
// body of each for another kind of model checked.
func TestEveryCutOfARealConversationIsAValidRequest(t *testing.T) {
	t.Parallel()
	p := anthropic.New(anthropic.Options{BaseURL: "http://127.0.0.1:1"})
	models := []string{sonnet, opus, "claude-3-7-sonnet-latest", "local-model"}
	efforts := []string{"", "low", "high"}
	step, requests := 3, 0
	if testing.Short() {
		step = 7
	}
	for i, r := range llmtest.Conversations(t) {
		for n := 1; n <= len(r.Messages); n += step {
			for _, from := range []int{0, n / 2, n - 1} {
				req := &llm.Request{
					Model: models[requests%len(models)], Reasoning: efforts[requests%len(efforts)],
					System: r.Messages[0].Text, Messages: convo.Repair(r.Messages[from:n]), StablePrefix: n / 3,
				}
				if i%3 > 0 {
					req.Tools = r.Tools
				}
				if len(req.Messages) == 0 {
					continue // an orphaned result is not a history
				}
				requests++
				wantValid(t, p, req, fmt.Sprintf("%s, messages %d to %d", r.ID, from, n))
			}
		}
	}
	t.Logf("%d requests", requests)
}

func wantValid(t *testing.T, p *anthropic.Provider, req *llm.Request, what string) {
	t.Helper()
	body, err := p.Body(req)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if problems := llmtest.CheckAnthropic(body); len(problems) > 0 {
		t.Fatalf("%s for %s: %q\n%s", what, req.Model, problems, body)
	}
}

// TestRecordedConversationsAreHadAgain replays about every sixth turn against
// the strict server, which says that each request holds the history as it was.
func TestRecordedConversationsAreHadAgain(t *testing.T) {
	t.Parallel()
	turns := 0
	s := llmtest.New(t)
	p := anthropic.New(anthropic.Options{BaseURL: s.Root})
	for _, r := range llmtest.Conversations(t) {
		for n, m := range r.Messages {
			if m.Role != convo.Assistant || (len(r.Messages)-n)/2%6 != 0 {
				continue
			}
			s.Script(llmtest.Turn{Text: m.Text, Calls: m.Calls, Piece: 200})
			res, err := p.Generate(t.Context(), &llm.Request{
				Model: sonnet, System: r.Messages[0].Text, Messages: r.Messages[1:n], Tools: r.Tools,
			}, nil)
			if err != nil {
				t.Fatalf("%s, message %d: %v", r.ID, n, err)
			}
			turns++
			wantAnswer(t, r.ID, res.Message, m)
			wantHistory(t, r, s.Last().Messages, n)
		}
	}
	t.Logf("%d model turns", turns)
}

func wantAnswer(t *testing.T, id string, got, want convo.Message) {
	t.Helper()
	if got.Text != want.Text || len(got.Calls) != len(want.Calls) {
		t.Fatalf("%s: the answer is %+v, want %+v", id, got, want)
	}
	for i, c := range got.Calls {
		if c != want.Calls[i] {
			t.Fatalf("%s: the call is %+v, want %+v", id, c, want.Calls[i])
		}
	}
}

// wantHistory compares message by message: the data hold none without words or
// calls and no two of one side.
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
			if c.Name != w.Calls[k].Name || !sameJSON(t, c.Arguments, w.Calls[k].Arguments) {
				t.Fatalf("%s: message %d has the call %+v, want %+v", r.ID, i, c, w.Calls[k])
			}
		}
		if g.Role == convo.Tool && g.CallID != got[i-1].Calls[0].ID {
			t.Fatalf("%s: message %d arrived as %+v, want %+v", r.ID, i, g, w)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var texts [2]string
	for i, s := range []string{a, b} {
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(data)
	}
	return texts[0] == texts[1]
}
