package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// namedRound has a round of the session s whose id is its message's, which says messages with the
// ids given.
func namedRound(t *testing.T, s *Store, id, user string, ids func(round, at int) []string) {
	t.Helper()
	const session = "s"
	ctx := t.Context()
	if _, err := s.Enqueue(ctx, store.QueuedMessage{ID: id, Session: session, Value: "hello", By: user, At: time.UnixMilli(3)}); err != nil {
		t.Fatal(err)
	}
	x, _, err := s.StartRound(ctx, id, store.NewRun{ID: id, Flow: "chat", Fingerprint: "f", User: "u", Origin: "session:" + session, At: time.UnixMilli(5)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(ctx, id, "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ch := &convo.Change{}
	for _, m := range ids(x.Rounds, x.Length) {
		ch.Append = append(ch.Append, convo.Message{ID: m, Role: convo.User, Text: "text of " + m})
	}
	errs := s.Append(ctx, []store.Append{{
		Commit: engine.Commit{Run: id, Seq: 1, First: 1, At: 6, Events: []engine.Event{
			&engine.RunStarted{Flow: "chat", Session: session, Round: x.Rounds, Contexts: []engine.ContextChange{
				{ID: "main", Create: true, Session: session, At: x.Length, Body: &convo.Change{Create: true, Kind: convo.Main}},
			}},
		}}, Fence: l.Fence,
	}, {
		Commit: engine.Commit{Run: id, Seq: 2, First: 2, At: 7, Events: []engine.Event{
			&engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{ID: "main", Adds: len(ch.Append), Body: ch}}},
		}}, Fence: l.Fence, Head: store.Head{Status: engine.Completed},
	}})
	if errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	if err := s.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
}

// oddIDs are ids with which a round's own could be confused.
func oddIDs(round, at int) []string {
	own := fmt.Sprintf("%d.%d/", round, at)
	return []string{own + "ask", own, own + "/ask", fmt.Sprintf("/%d", round), fmt.Sprintf("//%d", round), fmt.Sprintf("%d.%d/ask", round, at+1), "1.0", fmt.Sprint(at)}
}

func TestMessageIDsRoundTrip(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	newChat(t, s, "s")
	var want []string
	for i := range 80 { // 640 messages, so that a page of ids is sealed
		namedRound(t, s, fmt.Sprint("r", i), "u", func(round, at int) []string {
			ids := oddIDs(round, at)
			want = append(want, ids...)
			return ids
		})
	}
	ms, err := s.SessionMessages(t.Context(), "s", 0, 1000)
	if err != nil || len(ms) != len(want) {
		t.Fatal(len(ms), err)
	}
	shown, err := s.queryTexts(t.Context(), "read the view", "SELECT id FROM session_message ORDER BY position")
	if err != nil {
		t.Fatal(err)
	}
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	for i, id := range want {
		if ms[i].Message.ID != id || ms[i].Run != fmt.Sprint("r", i/8) || shown[i] != id {
			t.Fatalf("at %d: %q of %s, shown as %q, want %q", i, ms[i].Message.ID, ms[i].Run, shown[i], id)
		}
		last := len(want) - 1 - slices.Index(backwards, id)
		if at, err := s.FindMessage(t.Context(), "r79", "main", id, len(want)); at != last || err != nil {
			t.Fatalf("%q is found at %d, want %d (%v)", id, at, last, err)
		}
	}
	for _, id := range []string{"/ask", "//ask", "2.0/ask", "9.9/x"} {
		if at, err := s.FindMessage(t.Context(), "r79", "main", id, len(want)); at != -1 || err != nil {
			t.Errorf("%q is found at %d (%v)", id, at, err)
		}
	}
	var kept string
	if err := s.reader.QueryRowContext(t.Context(), "SELECT key FROM message ORDER BY id LIMIT 1").Scan(&kept); err != nil || kept != "/ask" {
		t.Errorf("the first id takes %q (%v)", kept, err)
	}
}

func TestRoundWithTheIDOfItsMessageIsStoredOnce(t *testing.T) {
	ctx := t.Context()
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	newChat(t, s, "s")
	says := func(round, at int) []string { return []string{fmt.Sprintf("%d.%d/a", round, at)} }
	namedRound(t, s, "mine", "u", says)
	namedRound(t, s, "guest's", "somebody else", says)
	for _, c := range []struct{ id, by string }{{"mine", "u"}, {"guest's", "somebody else"}} {
		for what, read := range map[string]func() (store.QueuedMessage, error){
			"found":  func() (store.QueuedMessage, error) { return s.FindQueued(ctx, c.id) },
			"of run": func() (store.QueuedMessage, error) { return s.RoundMessage(ctx, c.id) },
			"sent anew": func() (store.QueuedMessage, error) {
				return s.Enqueue(ctx, store.QueuedMessage{ID: c.id, Session: "s", Value: "again"})
			},
		} {
			q, err := read()
			if err != nil || q.ID != c.id || q.Session != "s" || q.TakenBy != c.id || q.By != c.by || q.Value != nil {
				t.Errorf("%s %s: %+v (%v)", c.id, what, q, err)
			}
		}
		if _, q, err := s.StartRound(ctx, c.id, store.NewRun{ID: "again", At: time.UnixMilli(9)}); err == nil || q.TakenBy != c.id {
			t.Errorf("%s begins another round: %+v", c.id, q)
		}
		r, err := s.Run(ctx, c.id)
		if err != nil || r.User != "u" || r.Origin != "session:s" || r.Flow != "chat" || r.Fingerprint != "f" {
			t.Errorf("%+v (%v)", r, err)
		}
	}
	var rows, contexts int
	if err := s.reader.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM queue), (SELECT count(*) FROM context)").Scan(&rows, &contexts); err != nil || rows != 1 || contexts != 1 {
		t.Errorf("%d rows of messages, %d of contexts (%v)", rows, contexts, err)
	}
}

// TestRoundContextGetsARowWhenForked forks a round and lets a run go
// on with its context, and reads all of them.
func TestRoundContextGetsARowWhenForked(t *testing.T) {
	ctx := t.Context()
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	newChat(t, s, "s")
	says := func(round, at int) []string {
		return []string{fmt.Sprintf("%d.%d/a", round, at), fmt.Sprintf("%d.%d/b", round, at)}
	}
	for i := range 3 {
		namedRound(t, s, fmt.Sprint("r", i), "u", says)
	}
	if err := s.Create(ctx, store.NewRun{ID: "fork", At: time.UnixMilli(1), Base: &store.Base{Run: "r1", Seq: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, store.NewRun{ID: "child", At: time.UnixMilli(1), Parent: "r1"}); err != nil {
		t.Fatal(err)
	}
	for run, change := range map[string]engine.ContextChange{
		"fork":  {ID: "main", Adds: 1},
		"child": {ID: "main", Create: true, Run: "r1", Parent: "main", At: 3, Adds: 1},
	} {
		change.Body = &convo.Change{Create: change.Create, Append: []convo.Message{{ID: "x", Role: convo.User, Text: "said in " + run}}}
		l, err := s.Acquire(ctx, run, "me", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c := engine.Commit{Run: run, Seq: 1, First: 1, Events: []engine.Event{&engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{change}}}}
		if run == "fork" {
			c.Seq, c.First = 3, 3
		}
		if err := s.Append(ctx, []store.Append{{Commit: c, Fence: l.Fence}})[0]; err != nil {
			t.Fatal(err)
		}
	}
	for run, want := range map[string]string{
		"r1": "1.0/a 1.0/b 2.2/a 2.2/b", "r2": "1.0/a 1.0/b 2.2/a 2.2/b 3.4/a 3.4/b",
		"fork": "1.0/a 1.0/b 2.2/a 2.2/b x", "child": "1.0/a 1.0/b 2.2/a x",
	} {
		ms, err := s.Messages(ctx, run, "main", 0, 100)
		var got []string
		for _, m := range ms {
			got = append(got, m.ID)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v (%v)", run, got, err)
		}
	}
	shown, err := s.queryTexts(ctx, "read the view", "SELECT run || ' ' || position FROM message_text ORDER BY 1")
	if err != nil || fmt.Sprint(shown) != "[child 3 fork 4 r0 0 r0 1 r1 2 r1 3 r2 4 r2 5]" {
		t.Errorf("message_text: %v (%v)", shown, err)
	}
}
