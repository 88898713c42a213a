package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// chat has rounds in a session, two commits each: the message that came, and the
// answer.
type chat struct {
	s       *Store
	session string
	n       int
}

func newChat(tb testing.TB, s *Store, session string) *chat {
	tb.Helper()
	if err := s.CreateSession(tb.Context(), store.NewSession{ID: session, User: "u", Flow: "chat", Now: time.UnixMilli(1)}); err != nil {
		tb.Fatal(err)
	}
	return &chat{s: s, session: session}
}

// round has one round, queued and begun by this store.
func (c *chat) round(tb testing.TB, asked, answered string) {
	tb.Helper()
	c.n++
	q := store.QueuedMessage{ID: fmt.Sprintf("%s-01hzx%06d", c.session, c.n), Session: c.session, Value: asked, At: time.UnixMilli(int64(c.n))}
	if _, err := c.s.Enqueue(tb.Context(), q); err != nil {
		tb.Fatal(err)
	}
	if err := c.take(tb, q.ID, answered); err != nil {
		tb.Fatal(err)
	}
}

// take has the round that a message starts.
func (c *chat) take(tb testing.TB, queued, answered string) error {
	tb.Helper()
	run := "run-of-" + queued
	x, q, err := c.s.StartRound(tb.Context(), queued, store.NewRun{
		ID: run, Flow: "chat", Fingerprint: strings.Repeat("f", 64), User: "u", Origin: "cli", At: time.UnixMilli(1),
	})
	if err != nil {
		return err
	}
	l, err := c.s.Acquire(tb.Context(), run, "host:1:random", time.Hour)
	if err != nil {
		return err
	}
	asked, _ := q.Value.(string)
	said := func(id string, role convo.Role, text string) engine.ContextChange {
		return engine.ContextChange{ID: "main", Adds: 1, Body: &convo.Change{Append: []convo.Message{{ID: fmt.Sprint(x.Rounds, "/", id), Role: role, Text: text}}}}
	}
	appendOne := func(seq, first int64, status engine.Status, events ...engine.Event) error {
		return c.s.Append(tb.Context(), []store.Append{{
			Commit: engine.Commit{Run: run, Seq: seq, First: first, At: 1000 * seq, Events: events}, Fence: l.Fence,
			Head: store.Head{Status: status, Usage: engine.Usage{Calls: 1, Input: 100, Output: 10}},
		}})[0]
	}
	err = appendOne(1, 1, engine.Running,
		&engine.RunStarted{
			Flow: "chat", Fingerprint: strings.Repeat("f", 64), Parallel: 8, User: "u", Origin: "cli", Session: c.session, Round: x.Rounds,
			Inputs: engine.Values{{Name: "message", Value: asked}},
			Contexts: []engine.ContextChange{{ID: "main", Create: true, Session: c.session, At: x.Length, Body: &convo.Change{
				Create: true, Kind: convo.Main, Settings: &convo.Settings{Provider: "openai", Model: "gpt-5-mini", System: "You are kind."},
			}}},
		},
		&engine.NodeCompleted{Path: "ask", Contexts: []engine.ContextChange{said("ask", convo.User, asked)}},
		&engine.NodeStarted{Path: "reply", Grants: []string{"main"}})
	if err != nil {
		return err
	}
	err = appendOne(2, 4, engine.Completed,
		&engine.EffectCompleted{
			Key: "reply/model#1", Digest: "0123456789abcdef", Micros: 500_000,
			Result: map[string]any{"message": map[string]any{"role": "assistant", "text": answered}, "stop": "end"},
			Usage:  &engine.Usage{Calls: 1, Input: 100, Output: 10},
		},
		&engine.NodeCompleted{
			Path: "reply", Micros: 500_000, Outputs: engine.Values{{Name: "text", Value: answered}},
			Contexts: []engine.ContextChange{said("reply", convo.Assistant, answered)},
		},
		&engine.RunCompleted{Outputs: engine.Values{{Name: "answer", Value: answered}}})
	if err != nil {
		return err
	}
	return c.s.Release(tb.Context(), l)
}

func TestTwoStoresShareTheRoundsOfASession(t *testing.T) {
	const rounds = 40
	a := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	b := openAt(t, a.path, Options{})
	newChat(t, a, "s")
	var wg sync.WaitGroup
	for i, s := range []*Store{a, b} {
		wg.Go(func() {
			c := &chat{s: s, session: "s"}
			for n := range rounds {
				if err := c.eventually(t, fmt.Sprintf("%d.%d", i, n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	x, err := b.Session(t.Context(), "s")
	if err != nil || x.Rounds != 2*rounds || x.Holder != "" || x.Queued != 0 || x.Usage.Calls != 2*rounds {
		t.Errorf("the session is %+v (%v)", x, err)
	}
	ms, err := a.SessionMessages(t.Context(), "s", 0, 1000)
	if err != nil || len(ms) != 4*rounds {
		t.Fatalf("%d messages (%v)", len(ms), err)
	}
	answeredOnce(t, ms, rounds)
}

// answeredOnce checks that what each of two senders sent is there once, with its
// answer.
func answeredOnce(t *testing.T, ms []store.SessionMessage, each int) {
	t.Helper()
	seen := map[string]int{}
	for i, m := range ms {
		seen[m.Message.Text]++
		if m.Round != i/2+1 {
			t.Errorf("message %d is of round %d", i, m.Round)
		}
		if i%2 == 1 && m.Message.Text != "to "+ms[i-1].Message.Text {
			t.Errorf("%q is answered with %q", ms[i-1].Message.Text, m.Message.Text)
		}
	}
	for i := range 2 {
		for n := range each {
			if text := fmt.Sprintf("%d.%d", i, n); seen[text] != 1 || seen["to "+text] != 1 {
				t.Errorf("%q was said %d times, answered %d times", text, seen[text], seen["to "+text])
			}
		}
	}
}

// eventually sends a message and starts the rounds at the head of the queue, whichever process
// sent their messages, until its own message had one.
func (c *chat) eventually(tb testing.TB, text string) error {
	tb.Helper()
	q := store.QueuedMessage{ID: text, Session: c.session, Value: text, At: time.UnixMilli(1)}
	for {
		sent, err := c.s.Enqueue(tb.Context(), q)
		if err != nil || sent.TakenBy != "" {
			return err
		}
		next, err := c.s.NextQueued(tb.Context(), c.session)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		err = c.take(tb, next.ID, fmt.Sprint("to ", next.Value))
		if err != nil && !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrExists) {
			return err
		}
	}
}

func TestLateCommitOfAnotherProcessIsRefused(t *testing.T) {
	a := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	b := openAt(t, a.path, Options{})
	late := newChain(t, b, "late")
	if err := b.Append(t.Context(), []store.Append{late.next()})[0]; err != nil {
		t.Fatal(err)
	}
	if _, err := a.DeleteRun(t.Context(), "late", store.DeleteOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	fill(t, a, "new", 1)
	if err := b.Append(t.Context(), []store.Append{late.next()})[0]; !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the late commit: %v", err)
	}
	if run, err := a.Run(t.Context(), "new"); err != nil || run.Commits != 1 {
		t.Errorf("the new run has %d commits (%v)", run.Commits, err)
	}
}

func TestDeletionReportsTracesLeftByReaders(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{BusyTimeout: 50 * time.Millisecond})
	other := openAt(t, s.path, Options{})
	addTraces(t, s, "bob")
	rows, err := other.reader.QueryContext(t.Context(), "SELECT id FROM run_commit")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // closed below
	if !rows.Next() {
		t.Fatal("no row")
	}
	gone, err := s.DeleteUser(t.Context(), "bob-canary-user", store.DeleteOptions{Now: time.Now()})
	if err == nil || !strings.Contains(err.Error(), "what is deleted may have left traces") || gone.Runs == 0 {
		t.Errorf("deleted %+v: %v", gone, err)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	if gone, err = other.DeleteUser(t.Context(), "bob-canary-user", store.DeleteOptions{Now: time.Now()}); err != nil || gone.Runs != 0 {
		t.Fatal(gone, err)
	}
	if n := traces(t, s, "bob-canary"); len(n) > 0 {
		t.Errorf("traces are left: %v", n)
	}
}

func TestMissingRowsGiveStoreErrors(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	_, err := s.Session(t.Context(), "gone")
	if !errors.Is(err, store.ErrNotFound) || strings.Contains(err.Error(), "sql") {
		t.Errorf("a session that is not there: %v", err)
	}
}
