package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// sessionsCaller calls the program with a database, and checks its exit code and what it prints.
func sessionsCaller(t *testing.T, path string) func(code int, want string, args ...string) {
	t.Helper()
	return func(code int, want string, args ...string) {
		t.Helper()
		var out, stderr bytes.Buffer
		if got := command(t.Context(), append([]string{"--db", path}, args...), terminal{strings.NewReader(""), &out, &stderr}); got != code || !strings.Contains(out.String()+stderr.String(), want) {
			t.Errorf("weir %s: %d\n%s%s\nwant %d and %q", strings.Join(args, " "), got, &out, &stderr, code, want)
		}
	}
}

func TestSessionsAreRenamedAndLabelled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"s1", "x2"} {
		if err := s.CreateSession(t.Context(), store.NewSession{ID: id, User: "ada", Flow: "talk", Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	call := sessionsCaller(t, path)
	call(0, "THREAD  ROUNDS", "sessions")
	call(0, `"title":"","labels":[]`, "sessions", "show", "s1", "--json")
	call(0, "", "sessions", "rename", "s", "A berth for the Aurora")
	call(0, "", "sessions", "label", "s", "urgent", "harbour")
	call(0, "A berth for the Aurora  harbour,urgent", "sessions")
	call(0, `"title":"A berth for the Aurora","labels":["harbour","urgent"]`, "sessions", "--json", "--label", "urgent", "--limit", "1")
	call(0, "title A berth for the Aurora\nlabels harbour, urgent\n", "sessions", "show", "s1")
	call(0, `"title":"A berth for the Aurora","labels":["harbour","urgent"]`, "sessions", "show", "s1", "--json")
	call(0, "[]", "sessions", "--json", "--label", "urg")
	call(0, "no sessions", "sessions", "--label", "other")
	call(exitUsage, "the label \"Urgent\" has other characters", "sessions", "label", "s1", "Urgent")
	call(exitUsage, "a title is one line", "sessions", "rename", "s1", "a\nb")
	call(exitUsage, "session q: not found", "sessions", "rename", "q", "x")
	call(exitUsage, "expected SESSION [NAME...]", "sessions", "label")
	call(0, "", "sessions", "label", "s1")
	call(0, "", "sessions", "rename", "s1", "")
	call(0, `"title":"","labels":[]`, "sessions", "show", "s1", "--json")
}

func TestBudgetOfASessionIsShownAndIncreased(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	for _, c := range []struct{ thread, setting string }{
		{"limited", "session: {budget: {maxCalls: 1, maxTokens: 5000}}\ninputs:"},
		{"paid", "session: {budget: {maxCost: 0.5}}\ninputs:"},
		{"free", "inputs:"},
	} {
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, strings.Replace(weirkit.TalkFlow, "inputs:", c.setting, 1))
		s, err := w.Session(t.Context(), f, weir.SessionOptions{ID: c.thread, New: true})
		if err != nil {
			t.Fatal(err)
		}
		weirkit.SendAndWait(t, s, "one", weir.SendOptions{})
	}
	call := sessionsCaller(t, path)
	call(0, "calls   1      1     0", "sessions", "budget", "limited")
	call(0, "calls   4      1     3", "sessions", "budget", "limited", "3 calls, 500 tokens")
	call(0, "cost    $0.7500  $0.0000  $0.2500", "sessions", "budget", "paid", "$0.25")
	call(0, `"max_tokens":6500,"max_calls":4,"max_cost":0,"increase":{"tokens":1500,"calls":3,"cost":0},"used":{`, "sessions", "budget", "limited", `{"maxTokens": 1000}`, "--json")
	call(0, "gives its sessions no budget", "sessions", "budget", "free")
	call(exitUsage, "does not limit what is added", "sessions", "budget", "free", "1 call")
	for _, bad := range []string{"many", `{"maxCalls": 1.5}`, `{"maxCalls": "1"}`, `{"calls": 1}`} {
		call(exitUsage, "expected", "sessions", "budget", "limited", bad)
	}
	for _, bad := range []string{"0 calls", `{"maxCalls": -1}`, "{}"} {
		call(exitUsage, "above zero", "sessions", "budget", "limited", bad)
	}
}
