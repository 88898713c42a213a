package llmtest

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

func testFailures(t *testing.T, x *conformanceTest) {
	for _, c := range []struct {
		failure Failure
		code    string
		retry   bool
	}{
		{Failure{Status: 400, Type: "invalid_request_error", Message: "Unknown parameter: 'x'.", Param: "x"}, "model_invalid_request", false},
		{Failure{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Message: "Too many tokens."}, "model_context_length", false},
		{Failure{Status: 400, Type: "invalid_request_error", Code: "content_policy_violation", Message: "Not allowed."}, "model_filtered", false},
		{Failure{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key."}, "model_auth", false},
		{Failure{Status: 403, Type: "invalid_request_error", Message: "Country not supported."}, "model_auth", false},
		{Failure{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "No such model."}, "model_invalid_request", false},
		{Failure{Status: 408, Message: "Timed out."}, "model_timeout", true},
		{Failure{Status: 413, Message: "Too large."}, "model_invalid_request", false},
		{Failure{Status: 422, Message: "Wrong."}, "model_invalid_request", false},
		{Failure{Status: 429, Type: "requests", Code: "rate_limit_exceeded", Message: "Slow down."}, "model_rate_limited", true},
		{Failure{Status: 500, Type: "server_error", Message: "Oops."}, "model_unavailable", true},
		{Failure{Status: 502, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>Bad gateway</html>"}, "model_unavailable", true},
		{Failure{Status: 503, Message: "Overloaded."}, "model_overloaded", true},
		{Failure{Status: 504, Body: "upstream timed out"}, "model_timeout", true},
		{Failure{Status: 529, Message: "Overloaded."}, "model_overloaded", true},
	} {
		x.Script(Turn{Failure: &c.failure})
		e := x.fail(t, say("Hello."))
		if e.Code != c.code || e.Retry != c.retry || e.Status != c.failure.Status || e.RetryAfter != 0 {
			t.Errorf("%d %s is %s, retry %v, status %d, after %v; want %s, retry %v",
				c.failure.Status, c.failure.Code, e.Code, e.Retry, e.Status, e.RetryAfter, c.code, c.retry)
		}
		if !strings.Contains(e.Error(), c.failure.Message) {
			t.Errorf("the error %q does not say %q", e, c.failure.Message)
		}
	}
}

func testRetryAfter(t *testing.T, x *conformanceTest) {
	for _, wait := range []time.Duration{30 * time.Second, 250 * time.Millisecond, 0} {
		x.Script(Turn{Failure: &Failure{Status: 429, Code: "rate_limit_exceeded", Message: "Slow down.", After: wait}})
		if e := x.fail(t, say("Hello.")); e.RetryAfter != wait || !e.Retry {
			t.Errorf("asked to wait %v, reported %v", wait, e.RetryAfter)
		}
	}
}

func testNoRetry(t *testing.T, x *conformanceTest) {
	for n, status := range []int{429, 500, 503, 409} {
		x.Script(Turn{Failure: &Failure{Status: status, Message: "No."}})
		_ = x.fail(t, say("Hello."))
		if got := len(x.Requests()); got != n+1 {
			t.Fatalf("after %d calls the server had %d requests: the provider retries by itself", n+1, got)
		}
	}
}

func testStreamFault(t *testing.T, x *conformanceTest) {
	for _, c := range []struct {
		fault Failure
		code  string
		retry bool
	}{
		{Failure{Code: "server_error", Message: "The server had an error."}, "model_unavailable", true},
		{Failure{Code: "rate_limit_exceeded", Message: "Too many tokens a minute."}, "model_rate_limited", true},
		{Failure{Code: "context_length_exceeded", Message: "Your input exceeds the context window."}, "model_context_length", false},
	} {
		x.Script(Turn{Text: "A long answer that fails", Break: &Break{After: 7, Fault: &c.fault}})
		e := x.fail(t, say("Hello."))
		if e.Code != c.code || e.Retry != c.retry || !strings.Contains(e.Message, c.fault.Message) {
			t.Errorf("%s is %v, retry %v", c.fault.Code, e, e.Retry)
		}
	}
}

// testCut cuts one stream after every event except the last ones, which the answer does not need.
func testCut(t *testing.T, x *conformanceTest) {
	var sent atomic.Int64 // the server may still be writing the last events when the answer is complete
	turn := Turn{
		Text: "A whole answer.", Calls: []convo.Call{{ID: "c1", Name: "weather", Arguments: `{"city":"Bern"}`}},
		Before: func(context.Context, int) { sent.Add(1) },
	}
	ask := func() *llm.Request {
		req := say("Hello.")
		req.Tools = []llm.Tool{weather()}
		return req
	}
	x.Script(turn)
	x.ask(t, ask())
	turn.Before = nil
	events := int(sent.Load())
	for _, clean := range []bool{false, true} {
		for n := range events - tailOf(x.Last().API) {
			turn.Break = &Break{After: n, Clean: clean}
			x.Script(turn)
			if e := x.fail(t, ask()); e.Code != "model_unavailable" || !e.Retry {
				t.Errorf("cut after %d of %d (clean %v) is %v, retry %v", n, events, clean, e, e.Retry)
			}
		}
	}
}

// testOpen has the server keep the connection open after its last event, and after each event that completes the answer:
// without the end mark, and without the usage.
func testOpen(t *testing.T, x *conformanceTest) {
	x.Script(Text("First."))
	x.ask(t, say("Hello."))
	usage := llm.Usage{Input: 1200, Output: 77}
	for unsent := range tailOf(x.Last().API) + 1 {
		x.Script(Turn{Text: "A whole answer.", Usage: usage, Open: true, Unsent: unsent})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		h, err := x.try(ctx, say("Hello."))
		cancel()
		switch {
		case err != nil:
			t.Errorf("without the last %d events: %v", unsent, err)
		case h.Message.Text != "A whole answer." || h.Stop != "end":
			t.Errorf("without the last %d events: %q, stop %q", unsent, h.Message.Text, h.Stop)
		case unsent == 0 && (h.Usage.Input != usage.Input || h.Usage.Output != usage.Output):
			t.Errorf("the usage is %+v", h.Usage)
		}
	}
}

func testUnreachable(t *testing.T, x *conformanceTest) {
	x.Close()
	if e := x.fail(t, say("Hello.")); e.Code != "model_unavailable" || !e.Retry || e.Status != 0 {
		t.Errorf("a server that is gone is %v, retry %v, status %d", e, e.Retry, e.Status)
	}
}

// soon runs a call that must end within patience, and returns its error.
func (x *conformanceTest) soon(ctx context.Context, t *testing.T, req *llm.Request, emit func(llm.Chunk)) error {
	t.Helper()
	req.Model = x.subject.Model
	ended := make(chan error, 1)
	go func() {
		_, err := x.subject.Provider.Generate(ctx, req, emit)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatal("the call goes on though its context has ended")
		return nil
	}
}

func testCancel(t *testing.T, x *conformanceTest) {
	x.Script(Turn{Text: "A long answer that stalls in the middle", Before: StallAt(10)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := x.soon(ctx, t, say("Hello."), func(c llm.Chunk) {
		if c.Text != "" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call gave %v", err)
	}
}

func testCancelWaiting(t *testing.T, x *conformanceTest) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x.Script(Turn{Failure: &Failure{Status: 500}, Before: func(ctx context.Context, _ int) {
		cancel() // when the request has arrived, before any answer
		<-ctx.Done()
	}})
	if err := x.soon(ctx, t, say("Hello."), func(llm.Chunk) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call gave %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	before := len(x.Requests())
	if err := x.soon(ended, t, say("Hello."), func(llm.Chunk) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call under an ended context gave %v", err)
	}
	if len(x.Requests()) != before {
		t.Errorf("a call under an ended context was sent")
	}
}

func testDeadline(t *testing.T, x *conformanceTest) {
	x.Script(Turn{Text: "A long answer that stalls", Before: StallAt(6)})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := x.soon(ctx, t, say("Hello."), func(llm.Chunk) {})
	var e *llm.Error
	if !errors.As(err, &e) || e.Code != "model_timeout" || !e.Retry || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call past its deadline gave %v", err)
	}
}

func testRefused(t *testing.T, x *conformanceTest) {
	unknown := say("Hello.")
	unknown.Tools, unknown.ToolChoice = []llm.Tool{weather()}, "tide"
	none := say("Hello.")
	none.ToolChoice = "required"
	role := say("Hello.")
	role.Messages[0].Role = "narrator"
	kind := say("Hello.")
	kind.Messages[0].Parts = []convo.Part{{Kind: "smell", URL: "https://example.com/x"}}
	for name, req := range map[string]*llm.Request{
		"no message": {}, "an unknown tool": unknown, "no tool": none, "an unknown role": role, "an unknown part": kind,
	} {
		if e := x.fail(t, req); e.Code != "model_invalid_request" || e.Retry {
			t.Errorf("%s is %v, retry %v", name, e, e.Retry)
		}
	}
	if n := len(x.Requests()); n != 0 {
		t.Errorf("%d impossible requests were sent", n)
	}
}

func testLeaks(t *testing.T, x *conformanceTest) {
	x.Script(Text("Warm."))
	x.ask(t, say("Hello."))
	base := runtime.NumGoroutine()
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		x.Script(
			Text("Whole."),
			Turn{Text: "Cut in the middle", Break: &Break{After: 5}},
			Turn{Failure: &Failure{Status: 500, Message: "No."}},
			Turn{Text: "Stalled in the middle", Before: StallAt(8)},
		)
		x.ask(t, say("Hello."))
		_ = x.fail(t, say("Hello."))
		_ = x.fail(t, say("Hello."))
		_ = x.soon(ctx, t, say("Hello."), func(llm.Chunk) { cancel() }) // it was cancelled
		cancel()
	}
	x.http.CloseClientConnections()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); runtime.NumGoroutine() > base; <-tick.C {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), base, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
