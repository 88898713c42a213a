package llm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// keeper is a vendor that keeps conversations: it checks that what it is sent
// it holds is what it was sent and answered.
type keeper struct {
	t       *testing.T
	held    map[string][]string
	answers []llm.Response
	resumed int
	sent    []*llm.Request
}

func (k *keeper) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	k.sent = append(k.sent, req)
	all := lines(req.Messages)
	if req.Session != "" {
		k.resumed++
		if got := k.held[req.Session]; !slices.Equal(got, all[:req.HeldMessages]) {
			k.t.Errorf("session %s holds\n%q\nand is said to hold\n%q", req.Session, got, all[:req.HeldMessages])
		}
		if req.Manifest == nil || req.Manifest.HeldMessages != req.HeldMessages {
			k.t.Errorf("%d messages are held, and the manifest says %+v", req.HeldMessages, req.Manifest)
		}
		if req.HeldMessages >= len(all) {
			k.t.Errorf("nothing new is sent: %q", all)
		}
	}
	if len(k.answers) == 0 {
		return nil, &llm.Error{Code: "model_invalid_request", Message: "asked once too often"}
	}
	a := k.answers[0]
	k.answers = k.answers[1:]
	a.Message.Role = convo.Assistant
	if req.KeepSession {
		a.Session = fmt.Sprint("s", len(k.sent))
		if k.held == nil {
			k.held = map[string][]string{}
		}
		k.held[a.Session] = append(all, lines([]convo.Message{a.Message})...)
	}
	return &a, nil
}

func TestVendorSessionMatchesHistoryAfterEndingTools(t *testing.T) {
	t.Parallel()
	k := &keeper{t: t, answers: []llm.Response{
		says("", calls("c1", "look", "{}")), says("", calls("c2", "stop", "{}")), says("well"), says("fine"),
	}}
	stop := echo("stop")
	stop.EndsTurn = true
	m := conversation(t)
	s := service(k)
	for _, text := range []string{"one", "two", "three"} {
		turn := llm.Turn{Context: m, Message: said("", text), History: llm.HistoryServer, Tools: []*tool.Tool{echo("look"), stop}}
		if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
			t.Fatal(err)
		}
	}
	if k.resumed != 3 {
		t.Errorf("%d of 4 calls went on with what the vendor keeps, want 3", k.resumed)
	}
}

func TestAKeptConversationIsNotUsedAfterAMessageOfItWasChanged(t *testing.T) {
	t.Parallel()
	k := &keeper{t: t, answers: []llm.Response{says("hello"), says("fine")}}
	m := conversation(t)
	s := service(k)
	turn := llm.Turn{Context: m, Message: said("u1", "one"), History: llm.HistoryServer}
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Upsert(*said("u1", "another")); err != nil {
		t.Fatal(err)
	}
	turn.Message = said("u2", "two")
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
		t.Fatal(err)
	}
	if k.sent[1].Session != "" {
		t.Errorf("session %s is used", k.sent[1].Session)
	}
}

func TestRepairedAnswerIsNotInTheVendorsSession(t *testing.T) {
	t.Parallel()
	k := &keeper{t: t, answers: []llm.Response{says("no JSON"), says(`{"a":1}`), says("fine")}}
	m := conversation(t)
	s := service(k)
	turn := llm.Turn{Context: m, Message: said("u1", "one"), History: llm.HistoryServer, Schema: map[string]any{"type": "object"}}
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
		t.Fatal(err)
	}
	turn.Message, turn.Schema = said("u2", "two"), nil
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
		t.Fatal(err)
	}
}

func TestThePlacesOfCallsWithoutIDsAreUsedOnce(t *testing.T) {
	t.Parallel()
	// Every other answer is a call without an id, in a window that is cut often.
	p := &caller{}
	m := conversation(t)
	s := service(p)
	look := &tool.Tool{Name: "look", Call: func(context.Context, tool.Call) (string, error) { return strings.Repeat("seen ", 40), nil }}
	for i := range 30 {
		turn := llm.Turn{Context: m, Message: said("", fmt.Sprint("look ", i)), Tools: []*tool.Tool{look}, Window: 1400, Reserve: 400}
		if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
			t.Fatal(err)
		}
	}
	if m.Get().Marks.Cut == 0 {
		t.Fatal("nothing was cut")
	}
	seen := map[string]bool{}
	for _, msg := range messagesOf(t, m) {
		for _, c := range msg.Calls {
			if seen[c.ID] {
				t.Errorf("the id %s is used twice", c.ID)
			}
			seen[c.ID] = true
		}
	}
}

type caller struct{ n int }

func (c *caller) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	c.n++
	m := convo.Message{Text: "done"}
	if c.n%2 == 1 {
		m = convo.Message{Calls: []convo.Call{{Name: "look", Arguments: "{}"}}}
	}
	return &llm.Response{Message: m}, nil
}

func TestReaderToolReadsTheNewestVersionOfAResult(t *testing.T) {
	t.Parallel()
	m := conversation(t, *said("u", "go"),
		convo.Message{ID: "a", Role: convo.Assistant, Calls: []convo.Call{calls("c", "look", "{}")}},
		convo.Message{ID: "r", Role: convo.Tool, CallID: "c", Name: "look", Text: strings.Repeat("old ", 3000)})
	if _, err := m.Upsert(convo.Message{ID: "r", Role: convo.Tool, CallID: "c", Name: "look", Text: strings.Repeat("new ", 3000)}); err != nil {
		t.Fatal(err)
	}
	k := &keeper{t: t, answers: []llm.Response{says("", calls("d", llm.ReaderTool, `{"result": 2}`)), says("read")}}
	turn := llm.Turn{Context: m, Message: said("", "well?"), Tools: []*tool.Tool{echo("look")}, Window: 4000, Reserve: 1000}
	if _, err := service(k).Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
		t.Fatal(err)
	}
	ms := messagesOf(t, m)
	if got := ms[len(ms)-2].Text; strings.Contains(got, "old") || !strings.Contains(got, "new") {
		t.Errorf("read %.60q", got)
	}
}

func TestSummariesCountAsSteps(t *testing.T) {
	t.Parallel()
	p := &summariser{}
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": p}})
	m := convo.NewManager(long("Well?"), true)
	r, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Context: m})
	if err != nil || r.Steps != len(p.asked) {
		t.Errorf("%d steps for %d model calls, %v", r.Steps, len(p.asked), err)
	}
}
