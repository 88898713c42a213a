//go:build unix

package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/postgres"
)

func sendEvents(t *testing.T, to *postgres.Store) {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		if err := to.Post(t.Context(), store.Post{Run: "r", Kind: "event", Name: name, Value: name, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
}

// readUntilBothCompleted reads the journals of a run until its nodes a and b have completed, and returns how many it saw.
func readUntilBothCompleted(ctx context.Context, t *testing.T, l *runner.Local) <-chan int {
	t.Helper()
	ended, read := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		for item, err := range l.FollowJournals(ctx, "r", "", 0, ended) {
			if err != nil {
				t.Error(err)
			} else if e, ok := item.Event.(*engine.NodeCompleted); ok && (e.Path == "a" || e.Path == "b") {
				if n++; n == 2 {
					close(ended)
				}
			}
		}
		read <- n
	}()
	return read
}

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
	reading, _ := open()
	if _, err := executing.Start(t.Context(), eventsProgram(t), runner.StartOptions{ID: "r"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read := readUntilBothCompleted(ctx, t, reading)
	started, received := 0, map[string]bool{}
	for item, err := range following.Follow(ctx, "r", "") {
		if err != nil {
			t.Fatalf("%v, after %d nodes had started and %v had received an event", err, started, received)
		}
		switch e := item.Event.(type) {
		case *engine.NodeStarted:
			if started++; started == 2 { // both nodes wait, or will
				sendEvents(t, from)
			}
		case *engine.NodeCompleted:
			received[e.Path] = true
		}
		if received["a"] && received["b"] {
			if n := <-read; n != 2 {
				t.Errorf("the other wait received %d of 2 events", n)
			}
			return
		}
	}
	t.Errorf("the stream ended; received %v", received)
}

// TestLiveTextReachesReadersOverPostgreSQL is TestLiveTextReachesReadersInOtherProcesses on the other store.
func TestLiveTextReachesReadersOverPostgreSQL(t *testing.T) {
	url := pgtest.Start(t).Schema(t)
	checkRemoteText(t, func(int) weir.Store {
		s, err := postgres.Open(t.Context(), url, postgres.Options{MaxConnections: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
