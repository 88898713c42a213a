package llm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/breaker"
	"github.com/weir-run/weir/llm"
)

// outages is a provider that fails while err is set, and counts its calls.
type outages struct {
	err   error
	calls int
}

func (p *outages) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	p.calls++
	if p.err != nil {
		return nil, p.err
	}
	return answer(ctx, req, emit)
}

func answer(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	r := &llm.Response{}
	r.Message.Text = "here"
	return r, nil
}

// TestWhichFailuresOpenTheBreaker makes calls with each code that a model call may fail
// with: an outage refuses the sixth call, anything else does not.
func TestWhichFailuresOpenTheBreaker(t *testing.T) {
	t.Parallel()
	opens := map[string]bool{
		engine.CodeModelOverloaded: true, engine.CodeModelUnavailable: true, engine.CodeModelTimeout: true, engine.CodeModelAuth: true,
		engine.CodeModelRateLimited: false, engine.CodeModelRequest: false, engine.CodeModelContextLength: false, engine.CodeModelFiltered: false,
		engine.CodeModelAnswer: false, engine.CodeModelSessionLost: false,
	}
	for code, want := range opens {
		for name, c := range map[string]struct {
			settings llm.Breaker
			bounds   llm.Timeouts
			after    int // calls until one is refused
		}{
			"default":          {after: 5},
			"configured":       {settings: llm.Breaker{Failures: 2}, after: 2},
			"never":            {settings: llm.Breaker{Failures: -1}},
			"the node's limit": {bounds: llm.Timeouts{Total: time.Minute}, after: 5},
		} {
			t.Run(code+", "+name, func(t *testing.T) {
				refused := want && c.after > 0 && (code != engine.CodeModelTimeout || c.bounds == llm.Timeouts{})
				calls, wantCode := 8, code
				if refused {
					calls, wantCode = c.after, engine.CodeBreakerOpen
				}
				checkBreaker(t, &llm.Error{Code: code, Message: "no"}, c.settings, c.bounds, wantCode, calls)
			})
		}
	}
}

// checkBreaker asks a model that fails with failure eight times. The last call must end with
// code, calls of them reach the provider, and another model must be answered.
func checkBreaker(t *testing.T, failure *llm.Error, settings llm.Breaker, bounds llm.Timeouts, code string, calls int) {
	t.Helper()
	p := &outages{err: failure}
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"p": p}, Breakers: map[string]llm.Breaker{"p": settings}})
	var last error
	for range 8 {
		_, last = s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Model: "p/m", Timeouts: bounds, SkipHistory: true, Message: &convo.Message{Text: "Well?"}})
	}
	e, _ := errors.AsType[*llm.Error](last)
	if e == nil || e.Code != code || p.calls != calls {
		t.Fatalf("%d calls, want %d: %v, want %s", p.calls, calls, last, code)
	}
	if code == engine.CodeBreakerOpen && (!e.Retry || e.RetryAfter <= 0 || e.RetryAfter > breaker.DefaultPause+time.Second) {
		t.Errorf("it asks to wait %s", e.RetryAfter)
	}
	p.err = nil
	if _, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Model: "p/other", SkipHistory: true, Message: &convo.Message{Text: "Well?"}}); err != nil {
		t.Errorf("another model: %v", err)
	}
}

// TestBreakerTriesOneCallAfterItsPause lets the time pass: a failed trial call prolongs the
// pause, a successful one ends it, and a cancelled one does neither.
func TestBreakerTriesOneCallAfterItsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &llm.Error{Code: engine.CodeModelUnavailable, Message: "no"}
		p := &outages{err: down}
		s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"p": p}})
		ask := func(ctx context.Context) string {
			_, err := s.Turn(ctx, newAttempt(ctx), llm.Turn{Model: "p/m", SkipHistory: true, Message: &convo.Message{Text: "Well?"}})
			if e, ok := errors.AsType[*llm.Error](err); ok {
				return e.Code
			}
			if err != nil {
				return err.Error()
			}
			return ""
		}
		want := func(what, code string, calls int) {
			t.Helper()
			if got := ask(t.Context()); got != code || p.calls != calls {
				t.Errorf("%s: %q after %d calls, want %q after %d", what, got, p.calls, code, calls)
			}
		}
		for range 5 {
			ask(t.Context())
		}
		want("open", engine.CodeBreakerOpen, 5)
		<-time.NewTimer(breaker.DefaultPause + time.Millisecond).C
		want("a trial call that fails", engine.CodeModelUnavailable, 6)
		want("open again", engine.CodeBreakerOpen, 6)
		<-time.NewTimer(breaker.DefaultPause + time.Millisecond).C
		ctx, cancel := context.WithCancelCause(t.Context())
		p.err = errors.New("stopped")
		cancel(p.err)
		ask(ctx)
		p.err = nil
		want("a trial call that succeeds", "", 7)
		want("closed", "", 8)
	})
}

func TestBreakerNeverRefusesRecordings(t *testing.T) {
	t.Parallel()
	p := &outages{err: &llm.Error{Code: engine.CodeModelUnavailable, Message: "no"}}
	s := llm.NewService(llm.Options{Replay: p})
	for range 8 {
		_, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Model: "p/m", SkipHistory: true, Message: &convo.Message{Text: "Well?"}})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Code != engine.CodeModelUnavailable {
			t.Errorf("%v", err)
		}
	}
	if p.calls != 8 {
		t.Errorf("%d calls", p.calls)
	}
}
