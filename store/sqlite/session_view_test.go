package sqlite

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func TestTheViewsShowSessionsInFull(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	newChat(t, s, "other").round(t, "not theirs", "no")
	c := newChat(t, s, "s")
	long := "a long text, " + fmt.Sprintf("%0*d", 2000, 7)
	for i := range 4 {
		c.round(t, fmt.Sprint("question ", i), long)
	}
	texts := func(query string) []string {
		t.Helper()
		list, err := s.queryTexts(t.Context(), "read the view", query)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	got := texts(`SELECT id || ' ' || run || ' ' || role || ' ' || substr(content, 1, 14) || ' ' || coalesce(token_count, 'unknown') || ' '
		|| created_at || ' ' || position || ' ' || round || ' ' || status FROM session_message WHERE session = 's' AND position BETWEEN 3 AND 4`)
	want := []string{
		"2/reply run-of-s-01hzx000002 assistant a long text, 0 unknown 2000 3 2 completed",
		"3/ask run-of-s-01hzx000003 user question 2 unknown 1000 4 3 completed",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("session_message\ngot  %q\nwant %q", got, want)
	}
	if n := len(texts("SELECT id FROM session_message WHERE session = 's'")); n != 8 {
		t.Errorf("%d messages", n)
	}
	got = texts("SELECT position || ' ' || context || ' ' || role FROM message_text WHERE run = 'run-of-s-01hzx000003' ORDER BY position")
	if fmt.Sprint(got) != "[4 main user 5 main assistant]" {
		t.Errorf("message_text of a round: %q", got)
	}
	// Most commits differ from those of an earlier round.
	var differ int
	if err := s.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM run_commit WHERE base < 0").Scan(&differ); err != nil || differ < 5 {
		t.Errorf("%d commits differ from one of another run (%v)", differ, err)
	}
	for _, run := range texts("SELECT id FROM run WHERE session IS NOT NULL") {
		sameInView(t, s, run)
	}
}

// sameInView compares what the view journal shows of a run's commits with what
// is stored.
func sameInView(t *testing.T, s *Store, run string) {
	t.Helper()
	num, err := s.number(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	r := commitReader{s: s, run: run, num: num, upto: maxNumber, bases: map[int64]*tokenizedText{}}
	rows, err := r.rows(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := s.queryTexts(t.Context(), "read the view", "SELECT events FROM journal WHERE run = ? ORDER BY seq", run)
	if err != nil || len(shown) != len(rows) || len(rows) == 0 {
		t.Fatalf("%d of %d commits (%v)", len(shown), len(rows), err)
	}
	for i := range rows {
		var a, b any
		if err := json.Unmarshal([]byte(shown[i]), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(rows[i].text, &b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("commit %d of %s\nview %s\nis   %s", i+1, run, shown[i], rows[i].text)
		}
	}
}

func TestViewShowsTokensFromMessageMetadata(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	if err := s.CreateSession(t.Context(), store.NewSession{ID: "s", Now: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: "q", Session: "s", At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.StartRound(t.Context(), "q", store.NewRun{ID: "r", At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "r", "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.CountTokens(func(m convo.Message) int { return len(m.Text) })
	said := convo.Change{Create: true, Append: []convo.Message{
		{ID: "1", Role: convo.User, Text: "one"}, {ID: "2", Role: convo.User, Text: "four"}, {ID: "3", Role: convo.User, Text: "three"},
	}}
	c := engine.Commit{Run: "r", Seq: 1, First: 1, Events: []engine.Event{
		&engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{{ID: "main", Create: true, Session: "s", Adds: 3, Body: &said}}},
	}}
	if err := s.Append(t.Context(), []store.Append{{Commit: c, Fence: l.Fence}})[0]; err != nil {
		t.Fatal(err)
	}
	got, err := s.queryTexts(t.Context(), "read the view", "SELECT coalesce(token_count, 'unknown') FROM session_message ORDER BY position")
	if err != nil || fmt.Sprint(got) != "[3 4 5]" {
		t.Errorf("tokens: %q (%v)", got, err)
	}
}
