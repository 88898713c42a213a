package llm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// quiet answers.
type quiet struct{ asked []*llm.Request }

func (q *quiet) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	q.asked = append(q.asked, req)
	return &llm.Response{Message: convo.Message{Text: "ok"}}, nil
}

// What stands for a cleared result is the same text in every view, however it
// was made: a window that is large enough for bytes must not change it.
func TestClearedResultPlaceholderIsStable(t *testing.T) {
	t.Parallel()
	p := &quiet{}
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": p}})
	c := convo.Context{ID: "main", Settings: convo.Settings{Model: "openai/gpt-4o"}}
	for i := range 8 {
		id := string(rune('a' + i))
		c.History = c.History.Append(
			convo.Message{Role: convo.User, Text: "look"},
			convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: id, Name: "look", Arguments: "{}"}}},
			convo.Message{Role: convo.Tool, CallID: id, Name: "look", Text: strings.Repeat("seen it all ", 30+40*(i%2))})
	}
	m := convo.NewManager(c, true)
	turn := llm.Turn{
		Context: m, Message: said("", "well?"), Tools: []*tool.Tool{echo("look")}, Window: 1800, Reserve: 600,
		View: convo.ViewSettings{Low: 100},
	}
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
		t.Fatal(err)
	}
	if m.Get().Marks.Cleared == 0 || m.Get().Marks.Cut != 0 {
		t.Fatalf("marks %+v", m.Get().Marks)
	}
	turn.Window, turn.Reserve, turn.Message = 0, 0, said("", "and now?")
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
		t.Fatal(err)
	}
	a, b := lines(p.asked[0].Messages), lines(p.asked[1].Messages)
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("message %d was\n%q\nand is\n%q", i, a[i], b[i])
		}
	}
}

func TestTheOutputOfACallIsReservedAlsoWhereTheReserveIsSmall(t *testing.T) {
	t.Parallel()
	p := &quiet{}
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": p}})
	h := newAttempt(t.Context())
	for _, reserve := range []int{1, 400, 512, 513, 5000} {
		if _, err := s.Turn(t.Context(), h, llm.Turn{Model: "openai/gpt-4o", Message: said("", "hi"), Reserve: reserve}); err != nil {
			t.Fatal(err)
		}
		if got := h.reqs[len(h.reqs)-1].Estimate.Output; got < min(reserve, 512) {
			t.Errorf("with a reserve of %d, %d tokens of output are reserved", reserve, got)
		}
	}
	if _, err := s.Turn(t.Context(), h, llm.Turn{Model: "openai/gpt-4o", Message: said("", "hi"), Reserve: 600, MaxOutput: 3000}); err != nil {
		t.Fatal(err)
	}
	if got := h.reqs[len(h.reqs)-1].Estimate.Output; got != 3000 {
		t.Errorf("for an answer of up to 3000 tokens %d are reserved", got)
	}
}

func TestTheEstimateOfACallHasItsTools(t *testing.T) {
	t.Parallel()
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": &quiet{}}})
	h := newAttempt(t.Context())
	big := echo("look")
	big.Description = strings.Repeat("Looks at things with care. ", 400)
	if _, err := s.Turn(t.Context(), h, llm.Turn{Model: "openai/gpt-4o", Message: said("", "hi"), Tools: []*tool.Tool{big}}); err != nil {
		t.Fatal(err)
	}
	if got := h.reqs[0].Estimate.Input; got < 2000 {
		t.Errorf("a request with a tool described in 2,400 tokens is estimated at %d", got)
	}
}
