package server

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// metrics are counters of one process, in the text format of Prometheus.
type metrics struct {
	started time.Time

	mu       sync.Mutex // guards what follows
	requests map[requestKey]int64
	seconds  map[string]*histogram // by pattern
	streams  int
}

type requestKey struct {
	pattern string // "" is a request without a route
	status  int
}

// histogram counts requests by duration.
type histogram struct {
	counts []int64 // of requests within each bound
	sum    float64
	count  int64
}

// durationBounds returns the upper bounds of a histogram in seconds.
func durationBounds() []float64 { return []float64{0.005, 0.025, 0.1, 0.5, 2.5, 10, 60} }

func newMetrics() *metrics {
	return &metrics{started: time.Now(), requests: make(map[requestKey]int64), seconds: make(map[string]*histogram)}
}

// request counts a request that was answered.
func (m *metrics) request(pattern string, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[requestKey{pattern, status}]++
	h := m.seconds[pattern]
	if h == nil {
		h = &histogram{counts: make([]int64, len(durationBounds()))}
		m.seconds[pattern] = h
	}
	for i, bound := range durationBounds() {
		if took.Seconds() <= bound {
			h.counts[i]++
		}
	}
	h.sum += took.Seconds()
	h.count++
}

// stream counts an open stream until the function it returns is called.
func (m *metrics) stream(n int) (closed func()) {
	m.mu.Lock()
	m.streams += n
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		m.streams -= n
		m.mu.Unlock()
	}
}

// serveMetrics writes the metrics of the process.
func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	gauge := func(name, help string, v int) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n%s %d\n", name, help, name, name, v)
	}
	s.metrics.write(&b)
	gauge("weir_abandoned_functions", "Functions of nodes that have not returned although their node ended.", s.app.Abandoned())
	gauge("weir_blocked_runs", "Unfinished runs that this process does not continue.", len(s.app.Blocked()))
	gauge("go_goroutines", "Goroutines of the process.", runtime.NumGoroutine())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String())) // the client has gone if it fails
}

func (m *metrics) write(b *strings.Builder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b.WriteString("# HELP weir_http_requests_total Requests by route and status.\n# TYPE weir_http_requests_total counter\n")
	for _, k := range slices.SortedFunc(maps.Keys(m.requests), func(x, y requestKey) int {
		return strings.Compare(fmt.Sprint(x.pattern, " ", x.status), fmt.Sprint(y.pattern, " ", y.status))
	}) {
		fmt.Fprintf(b, "weir_http_requests_total{route=%q,status=\"%d\"} %d\n", k.pattern, k.status, m.requests[k])
	}
	b.WriteString("# HELP weir_http_request_seconds Time until a request was answered.\n# TYPE weir_http_request_seconds histogram\n")
	for _, pattern := range slices.Sorted(maps.Keys(m.seconds)) {
		h := m.seconds[pattern]
		for i, bound := range durationBounds() {
			fmt.Fprintf(b, "weir_http_request_seconds_bucket{route=%q,le=\"%g\"} %d\n", pattern, bound, h.counts[i])
		}
		fmt.Fprintf(b, "weir_http_request_seconds_bucket{route=%q,le=\"+Inf\"} %d\n", pattern, h.count)
		fmt.Fprintf(b, "weir_http_request_seconds_sum{route=%q} %g\n", pattern, h.sum)
		fmt.Fprintf(b, "weir_http_request_seconds_count{route=%q} %d\n", pattern, h.count)
	}
	fmt.Fprintf(b, "# HELP weir_streams Open streams.\n# TYPE weir_streams gauge\nweir_streams %d\n", m.streams)
	fmt.Fprintf(b, "# HELP process_start_time_seconds Start of the server in Unix time.\n# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", m.started.Unix())
}
