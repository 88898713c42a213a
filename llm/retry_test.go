package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/llm"
)

// failing fails with its errors in turn and then answers.
type failing struct {
	errs  []error
	asked []time.Time
	keys  []string
}

func (f *failing) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	f.asked, f.keys = append(f.asked, time.Now()), append(f.keys, req.Key)
	if n := len(f.asked); n <= len(f.errs) {
		return nil, f.errs[n-1]
	}
	r := says("at last")
	emit(llm.Chunk{Text: "at last"})
	return &r, ctx.Err()
}

func (f *failing) waits() []time.Duration {
	var out []time.Duration
	for i := 1; i < len(f.asked); i++ {
		out = append(out, f.asked[i].Sub(f.asked[i-1]))
	}
	return out
}

func busy(after time.Duration) error {
	return &llm.Error{Code: "model_rate_limited", Message: "slow down", Status: 429, Retry: true, RetryAfter: after}
}

func ask(ctx context.Context, t *testing.T, p llm.Provider) (*attempt, *llm.Result, error) {
	t.Helper()
	h := newAttempt(ctx)
	r, err := service(p).Turn(ctx, h, llm.Turn{Context: conversation(t), Message: said("", "hi")})
	return h, r, err
}

func TestRetryableErrorsBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &failing{errs: []error{busy(0), busy(0), busy(10 * time.Second)}}
		h, r, err := ask(t.Context(), t, p)
		if err != nil || r.Text != "at last" {
			t.Fatal(r, err)
		}
		waits := p.waits()
		if len(waits) != 3 || waits[0] < time.Second || waits[0] > 1250*time.Millisecond ||
			waits[1] < 2*time.Second || waits[1] > 2500*time.Millisecond || waits[2] != 10*time.Second {
			t.Errorf("it waited %v", waits)
		}
		for i, c := range h.chunks[:3] {
			if c.Wait != waits[i] || c.WaitReason != "model_rate_limited" || c.WaitDetail != "slow down" {
				t.Errorf("wait %d was reported as %+v, was %v", i+1, c, waits[i])
			}
		}
		for _, k := range p.keys {
			if k != "run1/reply/model#1" {
				t.Errorf("a try was made under key %q", k)
			}
		}
	})
}

func TestTheLastOfFourTriesIsTheError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &failing{errs: []error{busy(0), busy(0), busy(0), busy(0), busy(0)}}
		_, _, err := ask(t.Context(), t, p)
		wantCode(t, err, "model_rate_limited")
		e, _ := errors.AsType[*llm.Error](err)
		if len(p.asked) != 4 || e.Status != 429 || e.Message != "slow down (after 4 tries)" {
			t.Errorf("after %d tries: %+v", len(p.asked), e)
		}
		if own, _ := errors.AsType[*llm.Error](p.errs[3]); own.Message != "slow down" {
			t.Error("the provider's error was changed")
		}
	})
}

func TestPermanentErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	own := errors.New("a bug in the provider")
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"refused":         {&llm.Error{Code: "model_auth", Message: "no key"}, "model_auth"},
		"too long a wait": {busy(2 * time.Minute), "model_rate_limited"},
		"any other error": {own, "model_unavailable"},
	} {
		p := &failing{errs: []error{c.err}}
		_, _, err := ask(t.Context(), t, p)
		wantCode(t, err, c.code)
		if len(p.asked) != 1 || strings.Contains(err.Error(), "tries") || c.code == "model_unavailable" && !errors.Is(err, own) {
			t.Errorf("%s: %d tries, %v", name, len(p.asked), err)
		}
	}
}

// silent answers nothing and says nothing.
type silent struct{}

func (silent) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	return nil, nil //nolint:nilnil // what the service must cope with
}

func TestAProviderThatReturnsNothingIsAnError(t *testing.T) {
	t.Parallel()
	_, _, err := ask(t.Context(), t, silent{})
	wantCode(t, err, "model_unavailable")
}

func TestCancellingEndsAWaitAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("stopped by Ada")
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &failing{errs: []error{busy(30 * time.Second)}}
		time.AfterFunc(5*time.Second, func() { cancel(why) })
		start := time.Now()
		_, _, err := ask(ctx, t, p)
		if !errors.Is(err, why) || time.Since(start) != 5*time.Second || len(p.asked) != 1 {
			t.Errorf("after %v and %d tries: %v", time.Since(start), len(p.asked), err)
		}
	})
}
