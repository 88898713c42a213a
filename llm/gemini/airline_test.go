package gemini_test

import (
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
)

// TestCutsOfRealConversationsAreValidRequests makes the body of every eighth
// prefix of the recorded conversations that leaves no call open, and of what is
// left when its front is cut off, by both APIs, and checks it against the rules.
// The data hold calls with the id of an earlier call.
func TestCutsOfRealConversationsAreValidRequests(t *testing.T) {
	t.Parallel()
	p := gemini.New(gemini.Options{BaseURL: "http://test"})
	every, bodies := 8, 0
	if testing.Short() {
		every = 24
	}
	for _, r := range llmtest.Conversations(t) {
		for n := 1; n <= len(r.Messages); n++ {
			if len(r.Messages[n-1].Calls) > 0 || (n%every != 0 && n != len(r.Messages)) {
				continue
			}
			for _, from := range []int{0, 1, 2, n / 2, n - 1} {
				if r.Messages[from].Role == convo.Tool {
					continue
				}
				req := &llm.Request{Model: "gemini-3-pro-preview", Messages: r.Messages[from:n], Tools: r.Tools}
				valid(t, p, req, llmtest.CheckGemini)
				req.KeepSession = true
				valid(t, p, req, llmtest.CheckInteraction)
				bodies += 2
			}
		}
	}
	t.Logf("%d bodies", bodies)
}

func valid(t *testing.T, p *gemini.Provider, req *llm.Request, check func([]byte) []string) {
	t.Helper()
	body, err := p.Body(req)
	if err != nil {
		t.Fatal(err)
	}
	if problems := check(body); len(problems) > 0 {
		t.Fatalf("%s\nbreaks %q", body, problems)
	}
	again, err := p.Body(req)
	if err != nil || string(again) != string(body) {
		t.Fatalf("the same request is\n%s\nand then\n%s (%v)", body, again, err)
	}
}

// TestRecordedConversationsAreHadAgain has every third conversation with the strict
// server, each by one of the two APIs, every answer kept with what it is signed
// by; those by interactions continue where the vendor has them.
func TestRecordedConversationsAreHadAgain(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	p := gemini.New(gemini.Options{BaseURL: s.Root})
	turns := 0
	for k, r := range llmtest.Conversations(t) {
		if k%3 != 0 {
			continue
		}
		session, held := "", 0
		for n := range r.Messages {
			m := &r.Messages[n]
			if m.Role != convo.Assistant || n < 2 {
				continue
			}
			s.Script(llmtest.Turn{Text: m.Text, Calls: m.Calls, Piece: 200, Usage: llm.Usage{Reasoning: 5}})
			req := &llm.Request{
				Model: "gemini-3-pro-preview", Messages: r.Messages[:n], Tools: r.Tools,
				KeepSession: k%2 == 0, Session: session, HeldMessages: held,
			}
			res, err := p.Generate(t.Context(), req, nil)
			if err != nil {
				t.Fatalf("%s, message %d: %v", r.ID, n, err)
			}
			if res.Message.Text != m.Text || len(res.Message.Calls) != len(m.Calls) || res.Message.Native == nil {
				t.Fatalf("%s, message %d is %+v, want %+v", r.ID, n, res.Message, m)
			}
			m.Native, m.Provider = res.Message.Native, res.Message.Provider
			session, held = res.Session, n+1
			turns++
		}
	}
	t.Logf("%d model turns", turns)
}
