package otel

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store"
)

// Config says where traces are sent.
type Config struct {
	// Endpoint is the address of a server for OTLP over HTTP, such as http://localhost:4318;
	// /v1/traces is added to it unless its path ends so. It is required.
	Endpoint string
	// Headers are sent with each request.
	Headers map[string]string
	// Contents adds the answers of models, the arguments and results of tools, and the inputs
	// and outputs of runs to the spans. Without it spans have no text of a person, a model or
	// a tool, and no messages of errors.
	Contents bool
	// Service is the value of service.name; "" is "weir".
	Service string
	// Client sends the requests; nil is a client of its own. It may reach private addresses:
	// flows cannot choose the endpoint.
	Client *http.Client
}

// Rest is a run that has ended, or that only people or outside events can continue.
type Rest struct {
	Run  string
	Flow *flow.Flow
	// After is the number of the event after which spans have not been sent yet.
	After int64
}

// queueLength is how many rests wait to be sent at most.
const queueLength = 1024

// Exporter sends the spans of runs in the background. Close it.
type Exporter struct {
	journal  store.Journal
	sender   sender
	contents bool
	log      *slog.Logger
	ctx      context.Context
	cancel   context.CancelFunc
	done     chan struct{}

	mu      sync.Mutex
	queue   chan Rest
	closed  bool
	dropped Dropped
}

// Dropped counts what was not sent: spans that the server did not take, and rests of runs for
// which the queue had no room or whose journal could not be read.
type Dropped struct{ Spans, Rests int }

// NewExporter returns an Exporter of the runs of a store. The error says what is wrong with
// the Config.
func NewExporter(c Config, j store.Journal, log *slog.Logger) (*Exporter, error) {
	address, err := tracesURL(c.Endpoint)
	if err != nil {
		return nil, err
	}
	if c.Client == nil {
		c.Client = ownClient()
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Exporter{
		journal: j, contents: c.Contents, log: log, done: make(chan struct{}), queue: make(chan Rest, queueLength),
		sender: sender{url: address, headers: c.Headers, service: c.Service, client: c.Client, pauses: retryPauses()},
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	go e.work()
	return e, nil
}

// ownClient returns a client that follows no redirections, so that headers reach the endpoint
// alone.
func ownClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Rested has the spans of a run sent that have ended since its last rest. It does not block:
// if too many rests wait, it drops this one.
func (e *Exporter) Rested(r Rest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	select {
	case e.queue <- r:
	default:
		e.countLocked(Dropped{Rests: 1}, fmt.Errorf("%d runs wait to be sent", queueLength))
	}
}

// Dropped returns what was not sent so far.
func (e *Exporter) Dropped() Dropped {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

// closeTime is how long Close sends at most.
const closeTime = 5 * time.Second

// Close sends what waits until ctx ends, at most for five seconds, drops the rest, and logs
// how much was dropped.
func (e *Exporter) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.queue)
	}
	e.mu.Unlock()
	select {
	case <-e.done:
	case <-ctx.Done():
		e.cancel()
		<-e.done
	}
	e.cancel()
	if d := e.Dropped(); d != (Dropped{}) {
		e.log.Warn("traces are incomplete", "dropped_spans", d.Spans, "dropped_rests", d.Rests)
	}
}

func (e *Exporter) work() {
	defer close(e.done)
	for r := range e.queue {
		if e.ctx.Err() != nil {
			e.count(Dropped{Rests: 1}, e.ctx.Err())
			continue
		}
		e.export(r)
	}
}

// export sends the spans of one rest.
func (e *Exporter) export(r Rest) {
	spans, err := e.spans(e.ctx, r)
	if err != nil {
		e.count(Dropped{Rests: 1}, err)
		return
	}
	for len(spans) > 0 {
		n := min(len(spans), batchSpans)
		if dropped, err := e.sender.send(e.ctx, spans[:n]); dropped > 0 {
			e.count(Dropped{Spans: dropped}, err)
		}
		spans = spans[n:]
	}
}

func (e *Exporter) spans(ctx context.Context, r Rest) ([]Span, error) {
	commits, err := commitsOf(ctx, e.journal, r.Run)
	if err != nil {
		return nil, err
	}
	root, err := rootOf(ctx, e.journal, r.Run, commits)
	if err != nil {
		return nil, err
	}
	return Spans(r.Run, r.Flow, commits, Options{Root: root, After: r.After, Contents: e.contents}), nil
}

func (e *Exporter) count(d Dropped, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.countLocked(d, err)
}

// countLocked counts, and logs the first time.
func (e *Exporter) countLocked(d Dropped, err error) {
	if e.dropped == (Dropped{}) {
		e.log.Warn("spans are not sent; further ones are counted and logged at the end", "endpoint", e.sender.url, "error", err)
	}
	e.dropped.Spans += d.Spans
	e.dropped.Rests += d.Rests
}

func commitsOf(ctx context.Context, j store.Journal, run string) (commits []engine.Commit, err error) {
	for c, err := range j.Commits(ctx, run, 0) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", run, err)
		}
		commits = append(commits, c)
	}
	return commits, nil
}

// rootOf returns the run at the root of the tree of a run.
func rootOf(ctx context.Context, j store.Journal, run string, commits []engine.Commit) (string, error) {
	const deepest = 100
	for range deepest {
		start := startOf(commits)
		if start == nil || start.Parent == "" {
			break
		}
		run, commits = start.Parent, nil
		for c, err := range j.Commits(ctx, run, 0) {
			if err != nil {
				return "", fmt.Errorf("read run %s: %w", run, err)
			}
			commits = append(commits, c)
			break
		}
	}
	return run, nil
}

func startOf(commits []engine.Commit) *engine.RunStarted {
	if len(commits) == 0 || len(commits[0].Events) == 0 {
		return nil
	}
	start, _ := commits[0].Events[0].(*engine.RunStarted)
	return start
}

// TreeStore is the part of a store that reading a tree of runs needs.
type TreeStore interface {
	store.Journal
	store.Listings
}

// Tree returns the spans of a run and of the runs below it that have ended so far. FlowOf
// returns the flow of a run.
func Tree(ctx context.Context, s TreeStore, run string, flowOf func(ctx context.Context, run string) (*flow.Flow, error), contents bool) ([]Span, error) {
	commits, err := commitsOf(ctx, s, run)
	if err != nil {
		return nil, err
	}
	root, err := rootOf(ctx, s, run, commits)
	if err != nil {
		return nil, err
	}
	f, err := flowOf(ctx, run)
	if err != nil {
		return nil, err
	}
	spans := Spans(run, f, commits, Options{Root: root, Contents: contents})
	const most = 10_000 // children of one run
	children, err := s.Runs(ctx, store.Filter{Parent: run, Limit: most})
	if err != nil {
		return nil, err
	}
	for _, r := range children {
		below, err := Tree(ctx, s, r.ID, flowOf, contents)
		if err != nil {
			return nil, err
		}
		spans = append(spans, below...)
	}
	return spans, nil
}
