package llm_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/llm"
)

// askStopped makes a turn of a model for which stop answers.
func askStopped(ctx context.Context, t *testing.T, p llm.Provider, stop func() (*llm.Stop, error)) (*attempt, *llm.Result, error) {
	t.Helper()
	h := newAttempt(ctx)
	s := llm.NewService(llm.Options{
		Providers: map[string]llm.Provider{"fake": p},
		Stopped: func(_ context.Context, provider, model string) (*llm.Stop, error) {
			if provider != "fake" || model != "m" {
				t.Errorf("asked for %s/%s", provider, model)
			}
			return stop()
		},
	})
	r, err := s.Turn(ctx, h, llm.Turn{Model: "fake/m", Message: said("", "hi")})
	return h, r, err
}

// TestCallsOfAStoppedModelWait: no try begins while the model is stopped, the reason is shown
// once each time that it changes, and the call is made afterwards.
func TestCallsOfAStoppedModelWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, begin := &failing{errs: []error{busy(time.Second)}}, time.Now()
		h, r, err := askStopped(t.Context(), t, p, func() (*llm.Stop, error) {
			switch passed := time.Since(begin); {
			case passed < time.Hour:
				return &llm.Stop{Models: "fake", By: "ada", Reason: "the invoice"}, nil
			case passed < 2*time.Hour:
				return &llm.Stop{Models: "*", By: "ada"}, nil
			case len(p.asked) == 1 && passed < 3*time.Hour: // also before the next try
				return &llm.Stop{Models: "fake/m"}, nil
			}
			return nil, nil
		})
		if err != nil || r.Text != "at last" {
			t.Fatal(r, err)
		}
		if len(p.asked) != 2 || p.asked[0].Sub(begin) < 2*time.Hour || p.asked[1].Sub(begin) < 3*time.Hour {
			t.Errorf("tries at %v after %v", p.asked, begin)
		}
		var shown []string
		for _, c := range h.chunks {
			if c.WaitReason == llm.WaitStopped {
				shown = append(shown, c.WaitDetail)
			}
		}
		want := []string{"models of fake are stopped by ada: the invoice", "all models are stopped by ada", "models of fake/m are stopped"}
		if len(shown) != 3 || shown[0] != want[0] || shown[1] != want[1] || shown[2] != want[2] {
			t.Errorf("shown: %q, want %q", shown, want)
		}
	})
}

// TestWaitForAStoppedModelEnds: with the caller's context, and where the stops cannot be read.
func TestWaitForAStoppedModelEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &failing{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err := askStopped(ctx, t, p, func() (*llm.Stop, error) { return &llm.Stop{Models: "*"}, nil })
		if !errors.Is(err, context.DeadlineExceeded) || len(p.asked) != 0 {
			t.Errorf("error %v, tries %v", err, p.asked)
		}
		broken, calls := errors.New("the disk is gone"), atomic.Int64{}
		_, _, err = askStopped(t.Context(), t, p, func() (*llm.Stop, error) { calls.Add(1); return nil, broken })
		if !errors.Is(err, broken) || len(p.asked) != 0 || calls.Load() != 1 {
			t.Errorf("error %v after %d calls, tries %v", err, calls.Load(), p.asked)
		}
	})
}
