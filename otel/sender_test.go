package otel

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/memory"
)

func TestAddressOfTraces(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"http://localhost:4318": "http://localhost:4318/v1/traces", "https://otel.example/": "https://otel.example/v1/traces",
		"https://otel.example/base": "https://otel.example/base/v1/traces", "http://h/otlp/v1/traces": "http://h/otlp/v1/traces",
		"localhost:4318": "", "": "", "ftp://h": "", "http://": "",
	} {
		if got, err := tracesURL(endpoint); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", endpoint, got, err)
		}
	}
}

// TestRequestsAreRepeatedOnlyWhereThatHelps answers requests one after another.
func TestRequestsAreRepeatedOnlyWhereThatHelps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses []int
		body     string
		requests int64
		dropped  int
		failed   bool
	}{
		"taken":               {[]int{200}, "{}", 1, 0, false},
		"an empty answer":     {[]int{200}, "", 1, 0, false},
		"too many requests":   {[]int{429, 503, 200}, "{}", 3, 0, false},
		"bad gateway":         {[]int{502, 504, 200}, "{}", 3, 0, false},
		"never":               {[]int{503}, "{}", 4, 2, true},
		"refused":             {[]int{400}, "{}", 1, 2, true},
		"an error":            {[]int{500}, "{}", 1, 2, true},
		"a redirection":       {[]int{307}, "{}", 1, 2, true},
		"one span is refused": {[]int{200}, `{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "no"}}`, 1, 1, false},
		"the same, a number":  {[]int{200}, `{"partialSuccess": {"rejectedSpans": 1}}`, 1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				i := min(int(n.Add(1)), len(c.statuses))
				w.Header().Set("Location", "/other")
				w.WriteHeader(c.statuses[i-1])
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(s.Close)
			x := sender{url: s.URL, client: ownClient(), pauses: []time.Duration{1, 1, 1}}
			dropped, err := x.send(t.Context(), make([]Span, 2))
			if n.Load() != c.requests || dropped != c.dropped || (err != nil) != c.failed {
				t.Errorf("%d requests, %d dropped, %v; want %d, %d, %v", n.Load(), dropped, err, c.requests, c.dropped, c.failed)
			}
		})
	}
}

// TestDroppedSpansAreCountedAndLoggedOnce sends to a server that is not there, and fills the
// queue.
func TestDroppedSpansAreCountedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var logged strings.Builder
	s := memory.New()
	e, err := NewExporter(Config{Endpoint: gone.URL}, s, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		e.count(Dropped{Spans: i + 1}, io.EOF)
	}
	e.mu.Lock()
	for range cap(e.queue) + 1 {
		select {
		case e.queue <- Rest{Run: "none"}:
		default:
		}
	}
	e.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.Close(ctx)
	e.Close(ctx)
	e.Rested(Rest{Run: "late"})
	if d := e.Dropped(); d.Spans != 6 {
		t.Errorf("%+v", d)
	}
	if n := strings.Count(logged.String(), "spans are not sent"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &logged)
	}
	if !strings.Contains(logged.String(), "dropped_spans=6") {
		t.Errorf("the end does not say how many:\n%s", &logged)
	}
}

// TestAFullQueueDropsWithoutBlocking keeps the worker in a request.
func TestAFullQueueDropsWithoutBlocking(t *testing.T) {
	t.Parallel()
	e := &Exporter{log: slog.New(slog.DiscardHandler), queue: make(chan Rest, 2)}
	for range 5 {
		e.Rested(Rest{Run: "r"})
	}
	if d := e.Dropped(); d.Rests != 3 {
		t.Errorf("%+v", d)
	}
}

// TestSpansOfAForkAreOnlyItsOwn has a run fork while a node waits.
func TestSpansOfAForkAreOnlyItsOwn(t *testing.T) {
	t.Parallel()
	commits := []engine.Commit{
		{Run: "b", Seq: 1, First: 1, At: 1000, Events: []engine.Event{
			&engine.RunStarted{Flow: "f"}, &engine.NodeStarted{Path: "a"}, &engine.EffectCompleted{Key: "a/model#1", Usage: &engine.Usage{Calls: 1}},
			&engine.NodeCompleted{Path: "a"}, &engine.NodeStarted{Path: "w"},
		}},
		{Run: "b", Seq: 2, First: 6, At: 5000, Events: []engine.Event{&engine.RunForked{From: "a", Flow: "f"}}},
		{Run: "b", Seq: 3, First: 7, At: 6000, Events: []engine.Event{&engine.NodeCompleted{Path: "w"}, &engine.RunCompleted{}}},
	}
	spans := Spans("b", nil, commits, Options{})
	var got []string
	for _, s := range spans {
		got = append(got, fmt.Sprint(s.Name, " ", s.Start/1e6, " ", len(s.Links)))
	}
	if want := "node w 5000 0, invoke_workflow f 5000 1"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if after := Spans("b", nil, commits, Options{After: 7}); len(after) != 1 || after[0].Name != "invoke_workflow f" {
		t.Errorf("after event 7: %+v", after)
	}
	if l := spans[1].Links[0]; l.Trace != TraceOf("a") || l.Trace == spans[0].Trace {
		t.Error("the link does not lead to the other run")
	}
}
