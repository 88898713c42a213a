package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// try is what a provider does with one call.
type try = func(ctx context.Context, emit func(llm.Chunk)) (*llm.Response, error)

// tried is a provider that does one thing each time it is called.
type tried struct {
	tries []try
	calls int
}

func (p *tried) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	p.calls++
	return p.tries[min(p.calls, len(p.tries))-1](ctx, emit)
}

func answersWith(u llm.Usage) try {
	return func(context.Context, func(llm.Chunk)) (*llm.Response, error) {
		return &llm.Response{Message: convo.Message{Text: "An answer."}, Usage: u}, nil
	}
}

func breaksOff(text string, u llm.Usage, e llm.Error) try {
	return func(_ context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
		if text != "" {
			emit(llm.Chunk{Text: text})
		}
		if u != (llm.Usage{}) {
			emit(llm.Chunk{Usage: &u})
		}
		return nil, &e
	}
}

// spender keeps what a call came to.
type spender struct {
	*attempt
	got *llm.Response
}

func (s *spender) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	return s.attempt.ModelCall(req, func(ctx context.Context, key string) (*llm.Response, error) {
		resp, err := do(ctx, key)
		s.got = resp
		return resp, err
	})
}

// charged is what the tries of one call are expected to be charged.
type charged struct {
	tries         []try
	lost          int
	input, output int // of the answer; -1 is an estimate
	estimated     bool
}

// check makes the call and compares what it was charged.
func (c *charged) check(t *testing.T) {
	t.Helper()
	s := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"p": &tried{tries: c.tries}}})
	h := &spender{attempt: newAttempt(t.Context())}
	r, err := s.Turn(t.Context(), h, llm.Turn{Model: "p/m", Message: &convo.Message{Text: "Hello, how are you?"}})
	if err != nil {
		t.Fatal(err)
	}
	u, l := h.got.Usage, h.got.RetryCost
	if l.Tries != c.lost || l.Estimated != c.lost || c.lost > 0 && l.Usage.Input == 0 {
		t.Errorf("lost %+v", l)
	}
	if c.input >= 0 && u.Input != c.input || c.output >= 0 && u.Output != c.output || u.Input <= 0 || u.Output <= 0 || u.Estimated != c.estimated {
		t.Errorf("the answer took %+v", u)
	}
	if r.Usage.Input != l.Usage.Input+u.Input {
		t.Errorf("the turn took %d tokens in", r.Usage.Input)
	}
}

func TestEachTryOfACallIsChargedAsItIsReportedOrEstimated(t *testing.T) {
	t.Parallel()
	lost := llm.Error{Code: "model_unavailable", Message: "lost", Retry: true, OutcomeUnknown: true}
	busy := llm.Error{Code: "model_overloaded", Message: "busy", Retry: true, Status: 503}
	answer := answersWith(llm.Usage{Input: 100, Output: 10})
	broken := breaksOff("An", llm.Usage{}, lost)
	for name, c := range map[string]charged{
		"reported":                        {[]try{answer}, 0, 100, 10, false},
		"not reported":                    {[]try{answersWith(llm.Usage{})}, 0, -1, -1, true},
		"input alone":                     {[]try{answersWith(llm.Usage{Input: 100})}, 0, 100, -1, true},
		"output alone":                    {[]try{answersWith(llm.Usage{Output: 10})}, 0, -1, 10, true},
		"below zero":                      {[]try{answersWith(llm.Usage{Input: -5, Output: -5})}, 0, -1, -1, true},
		"past any model's":                {[]try{answersWith(llm.Usage{Input: 1 << 62, Output: 1 << 62})}, 0, 1e9, 1e9, false},
		"three broken streams":            {[]try{broken, broken, broken, answer}, 3, 100, 10, false},
		"a broken stream that had counts": {[]try{breaksOff("An", llm.Usage{Input: 90}, lost), answer}, 1, 100, 10, false},
		"a connection lost in silence":    {[]try{breaksOff("", llm.Usage{}, lost), answer}, 1, 100, 10, false},
		"refused":                         {[]try{breaksOff("", llm.Usage{}, busy), answer}, 0, 100, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.check(t)
			})
		})
	}
}

func TestCancelledCallIsChargedForReceivedOutput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := &tried{tries: []try{func(ctx context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
		emit(llm.Chunk{Text: strings.Repeat("word ", 40)})
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	h := &spender{attempt: newAttempt(ctx)}
	_, err := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"p": p}}).
		Turn(ctx, h, llm.Turn{Model: "p/m", Message: &convo.Message{Text: "Hello"}})
	if !errors.Is(err, context.Canceled) || h.got == nil || h.got.RetryCost.Tries != 1 || h.got.RetryCost.Usage.Output < 20 || h.got.RetryCost.Estimated != 1 {
		t.Errorf("%v, %+v", err, h.got)
	}
}

// waits returns a provider's try that says something, or not, and waits.
func waits(text string) try {
	return func(ctx context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
		if text != "" {
			emit(llm.Chunk{Text: text})
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// waitFor waits for d, or until ctx is done.
func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func TestAProviderThatStopsAnsweringTimesOut(t *testing.T) {
	t.Parallel()
	drips := func(ctx context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
		for ctx.Err() == nil {
			emit(llm.Chunk{Text: "A"})
			waitFor(ctx, time.Minute)
		}
		return nil, ctx.Err()
	}
	breathes := func(ctx context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
		emit(llm.Chunk{Text: "A"})
		for range 10 {
			waitFor(ctx, 4*time.Minute)
			llm.KeepAlive(ctx)
		}
		return &llm.Response{Message: convo.Message{Text: "A"}}, ctx.Err()
	}
	for name, c := range map[string]struct {
		try   try
		after time.Duration // 0 is an answer
		set   llm.Timeouts
	}{
		"silent":                   {waits(""), 10 * time.Minute, llm.Timeouts{}},
		"stalls":                   {waits("A"), 5 * time.Minute, llm.Timeouts{}},
		"drips":                    {drips, time.Hour, llm.Timeouts{}},
		"bytes keep it alive":      {breathes, 0, llm.Timeouts{}},
		"a bound of its own":       {waits(""), time.Minute, llm.Timeouts{First: time.Minute}},
		"no first bound":           {waits(""), time.Hour, llm.Timeouts{First: -1}},
		"an idle bound of its own": {waits("A"), time.Minute, llm.Timeouts{Idle: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := llm.NewService(llm.Options{
					Providers: map[string]llm.Provider{"p": &tried{tries: []try{c.try}}}, Timeouts: map[string]llm.Timeouts{"p": c.set},
				})
				began := time.Now()
				_, err := s.Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Model: "p/m", Message: &convo.Message{Text: "Hello"}})
				took := time.Since(began).Truncate(time.Minute)
				failed, ok := errors.AsType[*llm.Error](err)
				switch {
				case c.after == 0 && err != nil:
					t.Fatal(err)
				case c.after > 0 && (!ok || failed.Code != "model_timeout" || took < c.after || took > c.after+time.Minute):
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}
