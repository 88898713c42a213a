package llm_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

func TestBytesThatArriveKeepACallAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &tried{tries: []try{func(ctx context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
			emit(llm.Chunk{Text: "A"})
			body := vendorapi.LimitBody(ctx, io.NopCloser(strings.NewReader("0123456789")))
			for one := make([]byte, 1); ; {
				waitFor(ctx, 4*time.Minute)
				if _, err := body.Read(one); err != nil {
					return &llm.Response{Message: convo.Message{Text: "A"}}, ctx.Err()
				}
			}
		}}}
		_, err := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"p": p}}).
			Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Model: "p/m", Message: &convo.Message{Text: "Hello"}})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAProviderThatIgnoresItsContextIsAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over, late := make(chan struct{}), make(chan struct{})
		p := &tried{tries: []try{func(_ context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
			emit(llm.Chunk{Text: "A"})
			<-over
			emit(llm.Chunk{Text: "late"})
			close(late)
			return &llm.Response{Message: convo.Message{Text: "late"}}, nil
		}}}
		h := &spender{attempt: newAttempt(t.Context())}
		began := time.Now()
		_, err := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"p": p}}).
			Turn(t.Context(), h, llm.Turn{Model: "p/m", Message: &convo.Message{Text: "Hello"}})
		took := time.Since(began)
		if failed, ok := errors.AsType[*llm.Error](err); !ok || failed.Code != "model_timeout" || took > 6*time.Minute {
			t.Errorf("after %s: %v", took, err)
		}
		if h.got.RetryCost.Tries != 1 {
			t.Errorf("lost %+v", h.got.RetryCost)
		}
		close(over)
		<-late
		for _, c := range h.chunks {
			if c.Text == "late" {
				t.Error("what an abandoned provider emits reaches the host")
			}
		}
	})
}

// TestTimeoutsOfATurnReplaceThoseOfTheProvider has an answer that begins too late, one that
// stops arriving, and one that does not end, each under one bound of the turn; the provider's
// bounds hold where the turn has none.
func TestTimeoutsOfATurnReplaceThoseOfTheProvider(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		of, turn llm.Timeouts
		after    time.Duration
	}{
		{"first", llm.Timeouts{First: time.Hour}, llm.Timeouts{First: time.Minute}, time.Minute},
		{"idle", llm.Timeouts{Idle: time.Hour}, llm.Timeouts{First: 30 * time.Minute, Idle: time.Minute}, 21 * time.Minute},
		{"total", llm.Timeouts{Total: 2 * time.Hour}, llm.Timeouts{First: -1, Idle: -1, Total: 25 * time.Minute}, 25 * time.Minute},
		{"the provider's", llm.Timeouts{First: 3 * time.Minute}, llm.Timeouts{Total: time.Minute * 10}, 3 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &tried{tries: []try{func(ctx context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
					waitFor(ctx, 20*time.Minute)
					if ctx.Err() == nil {
						emit(llm.Chunk{Text: "A"})
					}
					<-ctx.Done()
					return nil, ctx.Err()
				}}}
				began := time.Now()
				_, err := llm.NewService(llm.Options{Providers: map[string]llm.Provider{"p": p}, Timeouts: map[string]llm.Timeouts{"p": c.of}}).
					Turn(t.Context(), newAttempt(t.Context()), llm.Turn{Model: "p/m", Message: &convo.Message{Text: "Hello"}, Timeouts: c.turn})
				if failed, ok := errors.AsType[*llm.Error](err); !ok || failed.Code != "model_timeout" || time.Since(began) != c.after {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}
