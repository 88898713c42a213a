package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// sessionWithQueue makes a session in which messages wait that no process is there for.
func sessionWithQueue(t *testing.T, messages ...string) (path, flow string) {
	t.Helper()
	dir := t.TempDir()
	path, flow = filepath.Join(dir, "weir.db"), filepath.Join(dir, "talk.yaml")
	text := `
weir: 1
name: talk
inputs: {message: {type: text, required: true}}
nodes: {say: {type: template, in: {m: "{{ run.inputs.message }}"}, with: {text: "heard {{ inputs.m }}"}}}
outputs: {said: "{{ say.text }}"}
`
	if err := os.WriteFile(flow, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateSession(t.Context(), store.NewSession{ID: "s1", User: "ada", Flow: "talk", Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		q := store.QueuedMessage{ID: m, Session: "s1", Value: map[string]any{"message": m}, By: "bert", At: time.Now().Add(-time.Minute)}
		if _, err := s.Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, flow
}

func TestChatAnswersQueuedMessagesFirst(t *testing.T) {
	t.Parallel()
	path, flow := sessionWithQueue(t, "one", "two")
	var out, stderr bytes.Buffer
	if code := command(t.Context(), []string{"--db", path, "chat", flow, "--session", "s1"}, terminal{strings.NewReader("three\n"), &out, &stderr}); code != 0 {
		t.Fatal(code, stderr.String())
	}
	if want := "heard one\nheard two\nheard three\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	for _, want := range []string{"2 messages wait from before, and are answered first", "now answering the message sent by bert, 1m ago: two"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is not in\n%s", want, stderr.String())
		}
	}
}

func TestJSONChatPrintsQueuedMessages(t *testing.T) {
	t.Parallel()
	path, flow := sessionWithQueue(t, "one")
	var out, stderr bytes.Buffer
	if code := command(t.Context(), []string{"--db", path, "chat", flow, "--session", "s1", "--json"}, terminal{strings.NewReader("two\n"), &out, &stderr}); code != 0 {
		t.Fatal(code, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"message":"one","status":"completed"`) || !strings.Contains(lines[1], `"text":"heard two"`) || stderr.Len() != 0 {
		t.Errorf("%s\n%s", out.String(), stderr.String())
	}
}
