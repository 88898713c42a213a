package session_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
)

// summaryModel answers at length, and writes summaries that say how many there were.
type summaryModel struct {
	summaries int
	last      *llm.Request // that was to be answered
}

func (s *summaryModel) Generate(_ context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	text := "I see. " + strings.Repeat("So it is written. ", 60)
	if r.Purpose == llm.PurposeSummary {
		s.summaries++
		text = fmt.Sprintf("Summary %d.", s.summaries)
	} else {
		s.last = r
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: text}, Usage: llm.Usage{Input: 100, Output: 10}}, nil
}

func TestSummaryIsUsedInNextRound(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		p := &summaryModel{}
		flow := strings.Replace(weirkit.TalkFlow, "{model: echo/m}", "{model: echo/m, budget: {window: 3000, reserve: 600}, view: {strategy: summary}}", 1)
		w, f := weirkit.OpenTalk(t, path, p, flow)
		s := weirkit.OpenSession(t, w, f)
		made := summarised(t, s, p)
		if made.Spent.Calls != 2 || made.View == nil || made.View.Summary == nil || made.View.Summary[0] != 0 || made.View.Summary[1] <= 0 {
			t.Fatalf("the round of the summary: %+v %+v", made.Spent, made.View)
		}
		next := weirkit.SendAndWait(t, s, "And then?", weir.SendOptions{})
		if next.Spent.Calls != 1 || p.summaries != 1 {
			t.Errorf("the next round made %d calls, and %d summaries were made in all", next.Spent.Calls, p.summaries)
		}
		if next.View == nil || next.View.Summary == nil || *next.View.Summary != *made.View.Summary {
			t.Fatalf("the next round stands on %+v, not on messages %v", next.View, *made.View.Summary)
		}
		sent := p.last.Messages
		if !strings.Contains(sent[0].Text, "Summary 1.") {
			t.Errorf("it was sent %.80q first", sent[0].Text)
		}
		all, err := s.Messages(t.Context(), 0, 1000)
		if err != nil || len(all) != 2*next.Round {
			t.Fatal(len(all), err)
		}
		// After the summary comes what is behind the messages that it stands for.
		if first := all[made.View.Summary[1]].Message; sent[1].Text != first.Text || len(sent) != len(all)-made.View.Summary[1] {
			t.Errorf("%d messages were sent, the second %.40q; %d are not in the summary, the first %.40q",
				len(sent), sent[1].Text, len(all)-1-made.View.Summary[1], first.Text)
		}
	})
}

// summarised sends messages until a summary was made.
func summarised(t *testing.T, s *weir.Session, p *summaryModel) session.ReplyState {
	t.Helper()
	for i := range 20 {
		state := weirkit.SendAndWait(t, s, fmt.Sprintf("This is number %d. %s", i, strings.Repeat("word ", 80)), weir.SendOptions{})
		if state.Status != engine.Completed {
			t.Fatalf("%+v", state.Error)
		}
		if p.summaries > 0 {
			return state
		}
	}
	t.Fatal("no summary was made")
	return session.ReplyState{}
}

// expiringSession is a store with a flow whose sessions live for an hour.
type expiringSession struct {
	expiringStore
	w *weir.Weir
	f *weir.Flow
}

func newExpiringSession(t *testing.T, st expiringStore) *expiringSession {
	t.Helper()
	w, err := weir.Open(weir.Options{Store: st, Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	f, err := w.Parse("talk.yaml", []byte(strings.Replace(weirkit.TalkFlow, "inputs:", "session: {ttl: 1h}\ninputs:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return &expiringSession{st, w, f}
}

func (m *expiringSession) session(t *testing.T, o weir.SessionOptions) *weir.Session {
	t.Helper()
	s, err := m.w.Session(t.Context(), m.f, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (m *expiringSession) expire(t *testing.T, s *weir.Session) {
	t.Helper()
	if err := m.ExpireSession(t.Context(), s.ID, time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
}

func TestExpiredSessionIsNotActive(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		m := newExpiringSession(t, openStore(t, path))
		old := m.session(t, weir.SessionOptions{User: "u"})
		weirkit.SendAndWait(t, old, "before", weir.SendOptions{})
		if info, err := old.Info(t.Context()); err != nil || time.Until(info.Expires) < 50*time.Minute {
			t.Fatalf("%+v (%v)", info, err)
		}
		if again := m.session(t, weir.SessionOptions{User: "u"}); again.ID != old.ID {
			t.Fatal("the active session is another before its time")
		}
		m.expire(t, old)
		fresh := m.session(t, weir.SessionOptions{User: "u"})
		if fresh.ID == old.ID || len(textsOf(t, fresh)) != 0 {
			t.Fatal("the session that has expired is the active one")
		}
		if again := m.session(t, weir.SessionOptions{User: "u"}); again.ID != fresh.ID {
			t.Error("each time another session begins")
		}
	})
}

func TestExpiredSessionIsReadableUntilPruned(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		m := newExpiringSession(t, openStore(t, path))
		old := m.session(t, weir.SessionOptions{User: "u"})
		weirkit.SendAndWait(t, old, "before", weir.SendOptions{})
		m.expire(t, old)
		m.session(t, weir.SessionOptions{User: "u"})
		if texts := textsOf(t, m.session(t, weir.SessionOptions{ID: old.ID})); len(texts) != 2 {
			t.Errorf("what is left of the history: %v", texts)
		}
		if named := m.session(t, weir.SessionOptions{User: "u", Thread: old.Thread}); named.ID != old.ID {
			t.Error("the thread that is named is another")
		}
		gone, err := m.PruneSessions(t.Context(), store.PruneOptions{Now: time.Now()})
		if err != nil || gone.Sessions != 1 {
			t.Fatalf("%+v (%v)", gone, err)
		}
		if _, err := m.w.Session(t.Context(), m.f, weir.SessionOptions{ID: old.ID}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after pruning: %v", err)
		}
	})
}

func TestRoundExtendsExpiredSession(t *testing.T) {
	t.Parallel()
	m := newExpiringSession(t, memory.New())
	s := m.session(t, weir.SessionOptions{})
	m.expire(t, s)
	weirkit.SendAndWait(t, s, "still here", weir.SendOptions{})
	if again := m.session(t, weir.SessionOptions{}); again.ID != s.ID {
		t.Error("a session that has just had a round is not the active one")
	}
}

// expiringStore is what the test of expiry needs of either store.
type expiringStore interface {
	weir.Store
	ExpireSession(ctx context.Context, id string, at time.Time) error
	PruneSessions(ctx context.Context, p store.PruneOptions) (store.DeleteResult, error)
}

func openStore(t *testing.T, path string) expiringStore {
	t.Helper()
	if path == "" {
		return memory.New()
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const ageFlow = `
weir: 1
name: age
inputs: {message: {type: text, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "Age?", history: true, schema: {type: integer, minimum: 0}}}
outputs: {age: "{{ ask.value }}"}
`

// TestAnswerIsNotRepeatedAfterLaterRounds has a process die before it
// noted that a message was an answer, while another that did not fit waited before
// it: that one has the next round, and the answer must not have the one after.
func TestAnswerIsNotRepeatedAfterLaterRounds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	id := dieWithAnotherBefore(t, path)
	w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, ageFlow)
	s, err := w.Session(t.Context(), f, weir.SessionOptions{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	// The round of what waited first asks, and is answered; then this has a round.
	for _, message := range []string{"50", "last"} {
		if state := weirkit.SendAndWait(t, s, message, weir.SendOptions{}); state.Status != engine.Completed && state.Status != engine.Paused {
			t.Fatalf("%+v", state)
		}
	}
	rounds, err := s.Rounds(t.Context(), "", 0)
	if err != nil || len(rounds) != 3 {
		t.Errorf("%d rounds, want those of go, of hello and of last (%v)", len(rounds), err)
	}
	if texts := fmt.Sprint(textsOf(t, s)); strings.Count(texts, "user 36") != 1 {
		t.Error("the answer was given more than once, or never: ", texts)
	}
}

func dieWithAnotherBefore(t *testing.T, path string) string {
	t.Helper()
	inner, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &dyingStore{Store: inner, dead: make(chan struct{})}
	w, err := weir.Open(weir.Options{Store: d})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("age.yaml", []byte(ageFlow))
	if err != nil {
		t.Fatal(err)
	}
	s := weirkit.OpenSession(t, w, f)
	weirkit.SendAndWait(t, s, "go", weir.SendOptions{})
	if _, err := d.Enqueue(t.Context(), store.QueuedMessage{ID: "hello", Session: s.ID, Value: map[string]any{"message": "hello"}, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	turn := send(t, s, "36", weir.SendOptions{ID: "m1"})
	<-d.dead
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Wait(t.Context()); !errors.Is(err, runner.ErrClosed) {
		t.Fatal(err)
	}
	return s.ID
}
