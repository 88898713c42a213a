package runner_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// busyOnce is a provider that asks for a wait of ten minutes before it answers.
type busyOnce struct{ calls int }

func (p *busyOnce) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	if p.calls++; p.calls == 1 {
		return nil, &llm.Error{Code: engine.CodeModelRateLimited, Message: "busy", Status: 429, Retry: true, RetryAfter: 10 * time.Minute}
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "hello"}}, nil
}

func TestRetryWaitsAsLongAsTheServiceAsks(t *testing.T) {
	t.Parallel()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 1 {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	w, err := weir.Open(weir.Options{
		Providers: map[string]weir.Provider{"p": &busyOnce{}}, HTTP: server.Client(),
		// Time passes at once for timers of runs. The limits of the provider see the real
		// time, so that the second attempt of ask fails.
		Skip: func(map[string][]engine.Interrupt) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(context.Background()) }()
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: waits
context: {model: p/m}
nodes:
  ask: {type: llmRequest, in: {message: Hi}, retry: {attempts: 2, backoff: 1s}, onError: {value: late}}
  get: {type: httpRequest, with: {url: "`+server.URL+`"}, retry: {attempts: 2, backoff: 1s}}
outputs: {text: "{{ ask.text }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Wait(t.Context())
	if err != nil || res.Status != engine.Completed {
		t.Fatal(res, err)
	}
	v, err := w.Inspect(t.Context(), "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	waits := map[string]time.Duration{}
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if r, ok := e.(*engine.NodeRetrying); ok {
				waits[r.Path] = time.UnixMilli(r.Due).Sub(time.UnixMilli(c.At))
			}
		}
	}
	for _, node := range []string{"ask", "get"} {
		if waits[node] < 9*time.Minute {
			t.Errorf("the second attempt of %s was due after %v; the service asked for 10 minutes", node, waits[node])
		}
	}
}
