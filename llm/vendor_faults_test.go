package llm_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

func TestARateLimitOfOneCallHoldsTheOthersOfThatModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		begun := map[string][]time.Duration{}
		p := answering(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			text := req.Messages[0].Text
			begun[text] = append(begun[text], time.Since(start))
			if len(begun["first"]) == 1 && text == "first" {
				return nil, &llm.Error{Code: "model_rate_limited", Message: "slow down", Status: 429, Retry: true, RetryAfter: 20 * time.Second}
			}
			return &llm.Response{Message: convo.Message{Text: "Yes."}}, nil
		})
		s := service(p)
		ask := func(model, text string) {
			if _, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Model: model, Message: said("", text)}); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { ask("p/m", "first") })
		synctest.Wait()
		pass(time.Second)
		wg.Go(func() { ask("p/m", "second") })
		wg.Go(func() { ask("p/other", "of another model") })
		wg.Wait()
		if len(begun["first"]) != 2 || begun["first"][1] < 20*time.Second {
			t.Errorf("the call that was refused was made at %v", begun["first"])
		}
		if got := begun["second"]; len(got) != 1 || got[0] < 20*time.Second {
			t.Errorf("another call of the model was made at %v, before the pause is over", got)
		}
		if got := begun["of another model"]; len(got) != 1 || got[0] > 2*time.Second {
			t.Errorf("a call of another model was made at %v", got)
		}
	})
}

// answering is a provider that is a function of the context and the request.
type answering func(context.Context, *llm.Request) (*llm.Response, error)

func (a answering) Generate(ctx context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	return a(ctx, req)
}

func TestLostSessionIsResentOnceInFull(t *testing.T) {
	t.Parallel()
	lost := map[string]bool{"s1": true}
	var sent []string
	p := answering(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		sent = append(sent, req.Session)
		switch {
		case len(sent) > 8:
			return nil, &llm.Error{Code: "model_invalid_request", Message: "asked once too often"}
		case lost[req.Session]:
			return nil, &llm.Error{Code: "model_session_lost", Message: "no such conversation"}
		case len(sent) == 4: // this answer is not kept
			return &llm.Response{Message: convo.Message{Text: "Yes."}}, nil
		}
		return &llm.Response{Message: convo.Message{Text: "Yes."}, Session: "s" + string(rune('0'+len(sent)))}, nil
	})
	m, s := conversation(t), service(p)
	for _, text := range []string{"one", "two", "three", "four"} {
		turn := llm.Turn{Context: m, Message: said("", text), History: llm.HistoryServer}
		if _, err := s.Turn(t.Context(), newAttempt(t.Context()), turn); err != nil {
			t.Fatal(err)
		}
	}
	// s1 is named once and lost; s3 is named; the answer after it is not kept, so none is.
	if want := []string{"", "s1", "", "s3", ""}; !slices.Equal(sent, want) {
		t.Errorf("the calls named %q, want %q", sent, want)
	}
}

func TestASummaryIsMadeOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	var tasks []string
	p := askedOf(func(req *llm.Request) (*llm.Response, error) {
		if req.Purpose == llm.PurposeSummary {
			tasks = append(tasks, req.Messages[0].Text)
			return &llm.Response{Message: convo.Message{Text: "SUMMARY-" + strings.Repeat("I", len(tasks))}}, nil
		}
		return &llm.Response{Message: convo.Message{Text: "Yes."}}, nil
	})
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"openai": p}})
	m := convo.NewManager(long("Well?"), true)
	for range 400 {
		if _, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Context: m, Message: said("", strings.Repeat("more words ", 20))}); err != nil {
			t.Fatal(err)
		}
		if len(tasks) == 3 {
			break
		}
	}
	if len(tasks) != 3 {
		t.Fatalf("%d summaries were made", len(tasks))
	}
	for i, before := range []string{"SUMMARY-I", "SUMMARY-II"} {
		if !strings.Contains(tasks[i+1], before) {
			t.Errorf("summary %d is made without %s, the one before it: %.300q", i+2, before, tasks[i+1])
		}
	}
}
