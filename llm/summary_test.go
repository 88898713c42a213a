package llm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/token"
)

// summariser answers, and writes summaries.
type summariser struct{ asked []*llm.Request }

func (s *summariser) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	s.asked = append(s.asked, req)
	return &llm.Response{Message: convo.Message{Text: "Yes."}}, nil
}

// long returns a context far over the window that it is given, to be summarised.
func long(newest string) convo.Context {
	c := convo.Context{ID: "main", Settings: convo.Settings{
		Model: "openai/gpt-4o", Window: 4000, Reserve: 500, View: convo.ViewSettings{Strategy: convo.Summarise},
	}}
	for i := range 2000 {
		c.History = c.History.Append(convo.Message{Role: convo.User, Text: fmt.Sprintf("This is message number %d. %s", i, strings.Repeat("word ", i%40))})
	}
	c.History = c.History.Append(convo.Message{Role: convo.User, Text: newest})
	return c
}

func TestSummaryInputFitsTheWindow(t *testing.T) {
	t.Parallel()
	p := &summariser{}
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": p}})
	m := convo.NewManager(long("Well?"), true)
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Context: m}); err != nil {
		t.Fatal(err)
	}
	count, err := token.NewCounter("o200k_base", "openai")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.asked) != 2 || p.asked[0].Purpose != llm.PurposeSummary {
		t.Fatalf("%d requests, the first for %q", len(p.asked), p.asked[0].Purpose)
	}
	for _, req := range p.asked {
		n := count.System(req.System) + count.RequestOverhead(req.System != "", 0)
		for _, msg := range req.Messages {
			n += count.Message(msg)
		}
		if n > 3500 || n > req.Estimate.Input {
			t.Errorf("a request %s has %d tokens, estimated at %d, for a room of 3500", req.Purpose, n, req.Estimate.Input)
		}
	}
	task := p.asked[0].Messages[0].Text
	if !strings.Contains(task, "number 0.") || !strings.Contains(task, "a part is left out here") || !strings.HasSuffix(task, "</conversation>") {
		t.Errorf("the summariser receives %.200q … %q", task, task[len(task)-200:])
	}
}

// The limits of a turn are those of each call that it makes: of its context, where the turn sets
// none, also of the call for a summary.
func TestCallTimeoutsHoldForSummariesAndComeFromTheContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		context convo.CallTimeout
		turn    llm.Timeouts
		want    llm.Timeouts
	}{
		{},
		{turn: llm.Timeouts{Total: time.Minute}, want: llm.Timeouts{Total: time.Minute}},
		{context: convo.CallTimeout{First: time.Second}, want: llm.Timeouts{First: time.Second}},
		{
			context: convo.CallTimeout{First: time.Second, Idle: 2 * time.Second}, turn: llm.Timeouts{First: 3 * time.Second},
			want: llm.Timeouts{First: 3 * time.Second, Idle: 2 * time.Second},
		},
	} {
		p := &summariser{}
		about := long("Well?")
		about.Settings.CallTimeout = c.context
		s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": p}})
		if _, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Context: convo.NewManager(about, true), Timeouts: c.turn}); err != nil {
			t.Fatal(err)
		}
		if len(p.asked) != 2 || p.asked[0].Purpose != llm.PurposeSummary {
			t.Fatalf("%d requests", len(p.asked))
		}
		for _, req := range p.asked {
			if req.Timeouts != c.want {
				t.Errorf("the limits of a call for %q are %+v, want %+v", req.Purpose, req.Timeouts, c.want)
			}
		}
	}
}

func TestNoSummaryIsRequestedWithoutRoom(t *testing.T) {
	t.Parallel()
	p := &summariser{}
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": p}})
	m := convo.NewManager(long(strings.Repeat("word ", 3200)), true)
	h := newAttempt(t.Context())
	if _, err := s.Turn(t.Context(), h, llm.Turn{Context: m}); err != nil {
		t.Fatal(err)
	}
	if len(p.asked) != 1 || !strings.Contains(h.reqs[0].Manifest.Reason, "no summary") || m.Get().Marks.Cut != 0 {
		t.Errorf("%d requests, manifest %+v, marks %+v", len(p.asked), h.reqs[0].Manifest, m.Get().Marks)
	}
	m = convo.NewManager(long(strings.Repeat("word ", 3800)), true)
	_, err := s.Turn(t.Context(), h, llm.Turn{Context: m})
	wantCode(t, err, "model_context_length")
	if len(p.asked) != 1 {
		t.Errorf("%d requests were made for a turn that is refused", len(p.asked)-1)
	}
}

// TestFailedSummaryIsNotRetriedAtOnce: of the calls that want a summary one
// is held up by it, then one of eight, then one of sixteen, until it works again.
func TestFailedSummaryIsNotRetriedAtOnce(t *testing.T) {
	t.Parallel()
	down := true
	var summaries, calls int
	p := askedOf(func(req *llm.Request) (*llm.Response, error) {
		if req.Purpose != llm.PurposeSummary {
			calls++
			return &llm.Response{Message: convo.Message{Text: "Yes."}}, nil
		}
		if summaries++; down {
			return nil, &llm.Error{Code: "model_request", Message: "there is no such model"}
		}
		return &llm.Response{Message: convo.Message{Text: "They counted."}}, nil
	})
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": p}})
	c := long("Well?")
	var at []int // the calls that asked for a summary
	for turn := range 60 {
		if turn == 30 {
			down = false
		}
		m, h, before := convo.NewManager(c, true), newAttempt(t.Context()), summaries
		if _, err := s.Turn(t.Context(), h, llm.Turn{Context: m, Message: &convo.Message{Role: convo.User, Text: "And now?"}}); err != nil {
			t.Fatal(err)
		}
		why := h.reqs[len(h.reqs)-1].Manifest.Reason
		switch {
		case summaries > before:
			at = append(at, turn)
			if down && !strings.Contains(why, "there is no such model") {
				t.Errorf("turn %d says %q", turn, why)
			}
		case turn < 56 && !strings.Contains(why, fmt.Sprintf("requested at %d messages", m.Get().Marks.SummaryPause.Until)):
			t.Errorf("turn %d says %q", turn, why)
		}
		c = m.Get()
	}
	if want := []int{0, 8, 24, 56}; !slices.Equal(at, want) {
		t.Errorf("summaries were asked for in turns %v, want %v", at, want)
	}
	if calls != 60 || c.Marks.SummaryPause != (convo.SummaryPause{}) || c.Marks.Summary == nil {
		t.Errorf("%d calls were answered, and at the end the marks are %+v", calls, c.Marks)
	}
}

// askedOf is a provider that is a function.
type askedOf func(*llm.Request) (*llm.Response, error)

func (a askedOf) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	return a(req)
}
