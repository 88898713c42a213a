package llm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/token"
	"github.com/weir-run/weir/tool"
)

func TestRepeatedAttemptSendsIdenticalRequests(t *testing.T) {
	t.Parallel()
	for _, strategy := range []convo.Strategy{convo.Window, convo.Summarise, convo.All} {
		for _, model := range []string{"openai/gpt-4o", "anthropic/claude-sonnet-4", "other/x"} {
			for _, window := range []int{2500, 6000, 0} {
				turnsAgain(t, convo.Settings{Model: model, Window: window, Reserve: 500, View: convo.ViewSettings{Strategy: strategy}})
			}
		}
	}
}

// turnsAgain makes turns until one fails, each twice over the same journal:
// every request of the second entry, by a service that has seen nothing, must
// be that of the first.
func turnsAgain(t *testing.T, set convo.Settings) {
	t.Helper()
	p := &talker{}
	o := llm.Options{Providers: map[string]llm.Provider{"openai": p, "anthropic": p, "other": p}}
	warm := llm.NewService(o)
	c := convo.Context{ID: "main", Settings: set}
	look := &tool.Tool{Name: "look", Description: "Looks.", Call: func(_ context.Context, c tool.Call) (string, error) {
		return strings.Repeat("seen "+c.Arguments, 40*(len(c.Key)%5)), nil
	}}
	for i := range 25 {
		h := newAttempt(t.Context())
		enter := func(s *llm.Service) (*convo.Manager, error) {
			h.enter()
			m := convo.NewManager(c, true)
			m.SetIDPrefix(fmt.Sprint("n", i))
			_, err := s.Turn(t.Context(), h, llm.Turn{Context: m, Message: said("", fmt.Sprint("question ", i)), Tools: []*tool.Tool{look}})
			return m, err
		}
		m, err := enter(warm)
		first := len(h.reqs)
		again, errAgain := enter(llm.NewService(o))
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || len(h.reqs) != first {
			t.Fatalf("%+v, turn %d: %v, again %v; %d and %d requests", set, i, err, errAgain, first, len(h.reqs))
		}
		if err != nil {
			return
		}
		if a, b := m.Get().Marks, again.Get().Marks; !a.Equal(b) || a.Learned != b.Learned {
			t.Fatalf("marks %+v, again %+v", a, b)
		}
		c = m.Get()
	}
}

// talker calls look twice, then answers; its vendor counts more than we do.
type talker struct{ n int }

func (p *talker) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	p.n++
	if req.Purpose == llm.PurposeSummary {
		return &llm.Response{Message: convo.Message{Text: "It was said that " + strings.Repeat("so ", p.n%9)}}, nil
	}
	m := convo.Message{Text: strings.Repeat("answer ", p.n%30)}
	if p.n%3 != 0 {
		m = convo.Message{Calls: []convo.Call{{Name: "look", Arguments: fmt.Sprintf(`{"at":%d}`, p.n)}}}
	}
	return &llm.Response{Message: m, Usage: llm.Usage{Input: req.Estimate.Input * 13 / 10, Output: 20}}, nil
}

// What is sent besides the messages is corrected with them when a factor is
// taken over.
func TestALearnedFactorHoldsForInstructionsToo(t *testing.T) {
	t.Parallel()
	p := &talker{n: 2}
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"other": p}})
	system := strings.Repeat("Follow the rule. ", 500)
	c := convo.Context{
		ID: "main", Settings: convo.Settings{Model: "other/x", Window: 6000, Reserve: 1000, System: system},
		Marks: convo.Marks{Factor: 100, Learned: 160},
	}
	for i := range 200 {
		c.History = c.History.Append(convo.Message{Role: convo.User, Text: fmt.Sprint("message ", i, strings.Repeat(" word", 20))})
	}
	h := newAttempt(t.Context())
	if _, err := s.Turn(t.Context(), h, llm.Turn{Context: convo.NewManager(c, true)}); err != nil {
		t.Fatal(err)
	}
	count, err := token.NewCounter("", "other")
	if err != nil {
		t.Fatal(err)
	}
	n := count.System(system) + count.RequestOverhead(true, 0)
	for _, m := range h.reqs[0].Messages {
		n += count.Message(m)
	}
	if n = token.Factor(160).Correct(n); n > 5000+len(h.reqs[0].Messages) {
		t.Errorf("%d tokens are sent by the learned factor, for a room of 5000", n)
	}
	if got := h.reqs[0].Estimate.Input; got < n-len(h.reqs[0].Messages) || got > n+len(h.reqs[0].Messages)+1 {
		t.Errorf("estimated at %d, %d by the learned factor", got, n)
	}
}
