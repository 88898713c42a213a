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
	"github.com/weir-run/weir/llm/wire"
)

func TestBytesThatArriveKeepACallAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &tried{tries: []try{func(ctx context.Context, emit func(llm.Chunk)) (*llm.Response, error) {
			emit(llm.Chunk{Text: "A"})
			body := wire.LimitBody(ctx, io.NopCloser(strings.NewReader("0123456789")))
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
