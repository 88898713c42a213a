package session_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// suspendableStore is the store of a process that is suspended once: after it has read a
// queue, or before a commit of a round.
type suspendableStore struct {
	*sqlite.Store
	inQueue, inAppend atomic.Bool
	at, resume        chan struct{}
	once              sync.Once
}

// Capabilities has sessions use the methods of this store.
func (s *suspendableStore) Capabilities() store.Capabilities {
	c := s.Store.Capabilities()
	c.Sessions = s
	return c
}

func (s *suspendableStore) suspend() {
	s.once.Do(func() {
		close(s.at)
		<-s.resume
	})
}

func (s *suspendableStore) Queue(ctx context.Context, id string) ([]store.QueuedMessage, error) {
	list, err := s.Store.Queue(ctx, id)
	if s.inQueue.Load() && len(list) > 0 {
		s.suspend()
	}
	return list, err
}

func (s *suspendableStore) Append(ctx context.Context, as []store.Append) []error {
	if s.inAppend.Load() {
		s.suspend()
	}
	return s.Store.Append(ctx, as)
}

// leaseStealingStore is the store of a process to which all leases of others have run out.
type leaseStealingStore struct{ *sqlite.Store }

func (l leaseStealingStore) Acquire(ctx context.Context, run, owner string, ttl time.Duration) (store.Lease, error) {
	r, err := l.Run(ctx, run)
	if err != nil {
		return store.Lease{}, err
	}
	return l.Seize(ctx, run, r.Owner, owner, ttl)
}

func openOn(t *testing.T, s weir.Store, flow string) (*weir.Weir, *weir.Flow) {
	t.Helper()
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	f, err := w.Parse("flow.yaml", []byte(flow))
	if err != nil {
		t.Fatal(err)
	}
	return w, f
}

func openDatabase(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const nameFlow = `
weir: 1
name: names
inputs: {message: {type: text, required: true}}
nodes:
  age: {type: userInput, with: {prompt: "Age?", schema: {type: integer, minimum: 0}}}
  name: {type: userInput, after: age, with: {prompt: "Name?"}}
outputs: {name: "{{ name.text }}"}
`

// TestMessageIsNotRefusedForAnsweredQuestion suspends a process
// after it has read that its message does not fit the open question. Another process
// answers that question; the message fits the next one.
func TestMessageIsNotRefusedForAnsweredQuestion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	st := &suspendableStore{Store: openDatabase(t, path), at: make(chan struct{}), resume: make(chan struct{})}
	w, f := openOn(t, st, nameFlow)
	s := weirkit.OpenSession(t, w, f)
	weirkit.SendAndWait(t, s, "go", weir.SendOptions{})
	q := store.QueuedMessage{ID: "m1", Session: s.ID, Value: map[string]any{"message": "Bob"}, At: time.Now()}
	if _, err := st.Enqueue(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	st.inQueue.Store(true)
	turn := send(t, s, "Bob", weir.SendOptions{ID: "m1"})
	<-st.at
	w2, f2 := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, nameFlow)
	if state := await(t, send(t, weirkit.OpenSession(t, w2, f2), "36", weir.SendOptions{})); len(state.Interrupts) != 1 || state.Interrupts[0].Prompt != "Name?" {
		t.Fatalf("%+v", state)
	}
	close(st.resume)
	state := await(t, turn)
	if name, err := weir.Output[string](state.Result, "name"); err != nil || name != "Bob" {
		t.Errorf("%q %v: %+v", name, err, state)
	}
}

// TestSuspendedSenderSeesRoundFinishedElsewhere suspends a process
// in the middle of a round until another has ended it and has had a round of its own.
func TestSuspendedSenderSeesRoundFinishedElsewhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	st := &suspendableStore{Store: openDatabase(t, path), at: make(chan struct{}), resume: make(chan struct{})}
	w, f := openOn(t, st, weirkit.TalkFlow)
	s := weirkit.OpenSession(t, w, f)
	weirkit.SendAndWait(t, s, "zero", weir.SendOptions{})
	st.inAppend.Store(true)
	turn := send(t, s, "one", weir.SendOptions{ID: "m1"})
	<-st.at
	w2, f2 := openOn(t, leaseStealingStore{openDatabase(t, path)}, weirkit.TalkFlow)
	if state := await(t, send(t, weirkit.OpenSession(t, w2, f2), "two", weir.SendOptions{})); state.Text != "5: two" {
		t.Fatalf("%+v", state)
	}
	close(st.resume)
	if state := await(t, turn); state.Status != engine.Completed || state.Text != "3: one" || state.Round != 2 {
		t.Errorf("%+v", state)
	}
	wantTexts(t, s, "user zero", "assistant 1: zero", "user one", "assistant 3: one", "user two", "assistant 5: two")
}

// TestMessagesOfDeadProcessAreContinued has another process take over what a
// process that is gone has sent: in a session without any round, and behind one.
func TestMessagesOfDeadProcessAreContinued(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	st := &noRoundsStore{Store: openDatabase(t, path)}
	w, f := openOn(t, st, weirkit.TalkFlow)
	s := weirkit.OpenSession(t, w, f)
	st.rounds.Store(true)
	for _, text := range []string{"one", "two", "three"} {
		send(t, s, text, weir.SendOptions{})
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w2, _ := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	turns, err := w2.ContinueSession(t.Context(), s.ID)
	if err != nil || len(turns) != 3 {
		t.Fatal(len(turns), err)
	}
	for _, turn := range turns {
		if state := await(t, turn); state.Status != engine.Completed {
			t.Errorf("%+v", state)
		}
	}
	wantTexts(t, turns[0].Session, "user one", "assistant 1: one", "user two", "assistant 3: two", "user three", "assistant 5: three")
	if turns, err = w2.ContinueSession(t.Context(), s.ID); err != nil || len(turns) != 0 {
		t.Error(len(turns), err)
	}
}

// noRoundsStore is a store in which no round can begin.
type noRoundsStore struct {
	*sqlite.Store
	rounds atomic.Bool
}

// Capabilities has sessions use the methods of this store.
func (f *noRoundsStore) Capabilities() store.Capabilities {
	c := f.Store.Capabilities()
	c.Sessions = f
	return c
}

func (f *noRoundsStore) Append(ctx context.Context, as []store.Append) []error {
	if f.rounds.Load() {
		errs := make([]error, len(as))
		for i := range errs {
			errs[i] = weirkit.ErrDied
		}
		return errs
	}
	return f.Store.Append(ctx, as)
}
