package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

func TestQueuedMessagesAreListedAndUnqueued(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateSession(t.Context(), store.NewSession{ID: "s1", User: "ada", Flow: "talk", Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"m1", "m2"} {
		q := store.QueuedMessage{ID: id, Session: "s1", Value: map[string]any{"message": "Is berth " + id + " free?"}, By: "ada", At: time.Now()}
		if _, err := s.Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	call := func(code int, want string, args ...string) {
		t.Helper()
		var out, stderr bytes.Buffer
		if got := command(t.Context(), append([]string{"--db", path}, args...), terminal{strings.NewReader(""), &out, &stderr}); got != code || !strings.Contains(out.String()+stderr.String(), want) {
			t.Errorf("weir %s: %d\n%s%s\nwant %d and %q", strings.Join(args, " "), got, &out, &stderr, code, want)
		}
	}
	call(0, "Is berth m1 free?", "sessions", "show", "s1")
	call(0, "Is berth m1 free?", "sessions", "show", "s1", "--messages")
	call(0, "2 messages wait", "sessions")
	call(0, `"waiting":[{"id":"m1","by":"ada"`, "sessions", "show", "s1", "--json")
	call(0, "m2\tIs berth m2 free?", "__complete", "sessions", "unqueue", "")
	call(0, "took back message m1 of session s1", "sessions", "unqueue", "m1")
	call(0, `{"message":"m2","session":"s1"}`, "sessions", "unqueue", "m2", "--json")
	call(0, `"queued":0,`, "sessions", "show", "s1", "--json")
	call(exitUsage, "no message m1 is waiting", "sessions", "unqueue", "m1")
}
