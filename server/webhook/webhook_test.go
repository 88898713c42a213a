package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server/webhook"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
)

// clock is a clock that a test moves.
type clock struct{ now atomic.Int64 }

func (c *clock) time() time.Time      { return time.UnixMilli(1_800_000_000_000 + c.now.Load()) }
func (c *clock) pass(d time.Duration) { c.now.Add(d.Milliseconds()) }

// endRuns has runs that fail, one after the other.
func endRuns(t *testing.T, s store.Store, n int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprint("run", i)
		a := store.Append{
			Commit: engine.Commit{Run: id, Seq: 1, First: 1, At: 1, Events: []engine.Event{&engine.RunStarted{}}}, Fence: 1,
			Start:   &store.RunStart{NewRun: store.NewRun{ID: id, Flow: "f", User: "ada", At: time.UnixMilli(1)}},
			Acquire: &store.Lease{Owner: "me", TTL: time.Hour}, Head: store.Head{Status: engine.Failed, Error: &engine.Error{Code: "failed", Message: "m"}},
			NearBudgets: []string{engine.RunBudget, "ask"},
		}
		if err := s.Append(t.Context(), []store.Append{a})[0]; err != nil {
			t.Fatal(err)
		}
	}
}

func newSender(s store.Store, c *clock) *webhook.Sender {
	return webhook.New(webhook.Options{Store: s.Capabilities().Documents, Runs: s, HTTP: new(http.Client), Key: []byte("key"), Clock: c.time})
}

func put(t *testing.T, w *webhook.Sender, url string) *webhook.Hook {
	t.Helper()
	h := &webhook.Hook{ID: "hook", User: "ada", URL: url, Events: []string{webhook.RunFailed}}
	if err := w.Put(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return h
}

func step(t *testing.T, w *webhook.Sender) {
	t.Helper()
	if err := w.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestADeliveryIsTriedAgainWithGrowingPausesAndThenFails(t *testing.T) {
	t.Parallel()
	tries := 0
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries++
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer r.Close()
	c := &clock{}
	s := memory.NewWithClock(c.time)
	w := newSender(s, c)
	put(t, w, r.URL)
	endRuns(t, s, 1)
	step(t, w)
	step(t, w)
	if tries != 1 {
		t.Errorf("%d tries at once", tries)
	}
	last := func() *webhook.Delivery {
		list, err := w.Deliveries(t.Context(), "hook", "", 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d deliveries, %v", len(list), err)
		}
		return list[0]
	}
	var waited time.Duration
	for last().State == "pending" {
		pause := last().Next.Sub(c.time())
		if pause < waited {
			t.Errorf("a pause of %v after one of %v", pause, waited)
		}
		waited = pause * 5 / 6
		c.pass(pause + time.Millisecond)
		step(t, w)
	}
	if d := last(); d.State != "failed" || tries != 10 || len(d.Tries) != 10 || d.Tries[9].Status != http.StatusInternalServerError {
		t.Errorf("%d tries, %+v", tries, d)
	}
	c.pass(8 * 24 * time.Hour)
	step(t, w)
	if list, err := w.Deliveries(t.Context(), "hook", "", 10); err != nil || len(list) != 0 {
		t.Errorf("%d deliveries after a week, %v", len(list), err)
	}
}

func TestAPausedHookSendsNothingAndLosesNothing(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { tries.Add(1) }))
	defer r.Close()
	c := &clock{}
	s := memory.NewWithClock(c.time)
	w := newSender(s, c)
	h := put(t, w, r.URL)
	h.Paused = true
	if err := w.Put(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	endRuns(t, s, 3)
	step(t, w)
	if n := tries.Load(); n != 0 {
		t.Errorf("%d tries while the hook is paused", n)
	}
	h.Paused = false
	if err := w.Put(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	c.pass(2 * time.Minute)
	step(t, w)
	if n := tries.Load(); n != 3 {
		t.Errorf("%d deliveries after the pause", n)
	}
}

func TestSeveralProcessesSendEachEventOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	testSeveralSenders(t, func(c *clock) store.Store {
		s, err := sqlite.Open(context.Background(), path, sqlite.Options{Clock: c.time})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// testSeveralSenders has senders, each with a connection to the database of its own, deliver the events of many runs.
func testSeveralSenders(t *testing.T, open func(c *clock) store.Store) {
	t.Helper()
	const runs, processes = 20, 4
	const events = 3*runs + 1 // a failure and two budgets of each run, and a quota
	var mu sync.Mutex
	tries := map[string]int{}
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tries[q.Header.Get("Webhook-Id")]++
	}))
	defer r.Close()
	c := &clock{}
	var all sync.WaitGroup
	var senders []*webhook.Sender
	var stores []*store.Full
	for i := range processes {
		s := store.Complete(open(c))
		t.Cleanup(func() { _ = s.Close() })
		senders, stores = append(senders, newSender(s, c)), append(stores, s)
		if i == 0 {
			h := put(t, senders[0], r.URL)
			h.Events = append(h.Events, webhook.BudgetNear)
			if err := senders[0].Put(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			endRuns(t, s, runs)
		}
	}
	quota := store.Document{
		Kind: store.QuotaNearKind, ID: "user:ada@2026-01-02 5 calls", User: "ada", Due: c.time(),
		Body: []byte(`{"account":"user:ada","day":"2026-01-02","limits":"5 calls"}`),
	}
	for range 2 { // a process that had read the account before may leave the document again
		if _, err := stores[0].PutDocument(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
		for _, w := range senders {
			all.Go(func() {
				if err := w.Step(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		step(t, senders[0]) // what another process made after all had looked
	}
	list, err := senders[0].Deliveries(t.Context(), "hook", "", 10*runs)
	if err != nil || len(list) != events || len(tries) != events {
		t.Errorf("%d rows, %d deliveries, %v", len(list), len(tries), err)
	}
	for id, n := range tries {
		if n != 1 {
			t.Errorf("delivery %s came %d times", id, n)
		}
	}
}
