//go:build unix

package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/postgres"
)

// TestProcessesOnPostgreSQLAreWoken executes a run in one Local, and follows it and sends it events from another. Neither
// polls before the test ends.
func TestProcessesOnPostgreSQLAreWoken(t *testing.T) {
	url := pgtest.Start(t).Schema(t)
	open := func() (*runner.Local, *postgres.Store) {
		s, err := postgres.Open(t.Context(), url, postgres.Options{MaxConnections: 3})
		if err != nil {
			t.Fatal(err)
		}
		l := runner.NewLocal(runner.Options{Store: s, Poll: time.Hour})
		t.Cleanup(func() {
			_ = l.Close(context.WithoutCancel(t.Context()))
			_ = s.Close()
		})
		return l, s
	}
	executing, _ := open()
	following, from := open()
	if _, err := executing.Start(t.Context(), eventsProgram(t), runner.StartOptions{ID: "r"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sendEvents := func() {
		for _, name := range []string{"one", "two"} {
			if err := from.Post(t.Context(), store.Post{Run: "r", Kind: "event", Name: name, Value: name, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	started, received := 0, map[string]bool{}
	for item, err := range following.Follow(ctx, "r", "") {
		if err != nil {
			t.Fatalf("%v, after %d nodes had started and %v had received an event", err, started, received)
		}
		switch e := item.Event.(type) {
		case *engine.NodeStarted:
			if started++; started == 2 { // both nodes wait, or will
				sendEvents()
			}
		case *engine.NodeCompleted:
			received[e.Path] = true
		}
		if received["a"] && received["b"] {
			return
		}
	}
	t.Errorf("the stream ended; received %v", received)
}
