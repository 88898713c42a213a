package weir_test

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

const (
	blockingFlow = "weir: 1\nname: blocking\nnodes: {n: {type: block}}\n"
	askingFlow   = "weir: 1\nname: asking\nnodes: {ask: {type: userInput, with: {prompt: Go?}}}\n"
	// The first message answers the first question.
	askingTwiceFlow = "weir: 1\nname: twice\nnodes: {ask: {type: userInput, with: {prompt: Go?}}, again: {type: userInput, after: ask, with: {prompt: Sure?}}}\n"
	soonFlow        = "weir: 1\nname: soon\nnodes: {wait: {type: wait, with: {for: 1s}}}\n"
	lateFlow        = "weir: 1\nname: late\nnodes: {wait: {type: wait, with: {for: 1h}}}\n"
	parentFlow      = "weir: 1\nname: parent\nnodes: {sub: {type: flow, with: {flow: late}}}\n"
)

// stuckWorld is a database that processes open one after the other.
type stuckWorld struct {
	t    *testing.T
	path string
	// begun receives a value when the node of a blocking flow has begun.
	begun chan struct{}
}

func (k *stuckWorld) store() *sqlite.Store {
	k.t.Helper()
	s, err := sqlite.Open(k.t.Context(), k.path, sqlite.Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}

func (k *stuckWorld) open() *weir.Weir {
	k.t.Helper()
	type none struct{}
	block := weir.Func("block", func(ctx weir.Ctx, _ none) (none, error) {
		k.begun <- struct{}{}
		<-ctx.Done()
		return none{}, ctx.Err()
	})
	w, err := weir.Open(weir.Options{Store: k.store(), Types: []weir.Type{block}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

func (k *stuckWorld) start(w *weir.Weir, id, text string) {
	k.t.Helper()
	var uses []*weir.Flow
	if text == parentFlow {
		uses = append(uses, weirkit.Parse(k.t, w, lateFlow))
	}
	f, err := w.Parse(id+".yaml", []byte(text), uses...)
	if err == nil {
		_, err = w.Start(k.t.Context(), f, weir.Start{ID: id})
	}
	if err != nil {
		k.t.Fatal(err)
	}
	if text == blockingFlow {
		<-k.begun
	}
}

// until waits for a condition.
func (k *stuckWorld) until(what string, ok func() bool) {
	k.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			k.t.Fatalf("not after two minutes: %s", what)
		}
	}
}

// stuck returns the reasons of stuck runs by run.
func (k *stuckWorld) stuck(w *weir.Weir, o weir.StuckOptions) map[string]string {
	k.t.Helper()
	list, err := w.StuckRuns(k.t.Context(), o)
	if err != nil {
		k.t.Fatal(err)
	}
	out := make(map[string]string)
	for i := range list {
		r := &list[i]
		if out[r.Run] = r.Reason; r.Detail == "" || r.Next == "" || r.Since.IsZero() || r.Flow == "" {
			k.t.Errorf("run %s: %+v", r.Run, *r)
		}
	}
	return out
}

// acquireAndDie has processes of other machines acquire a run and end, one after the other.
func (k *stuckWorld) acquireAndDie(s *sqlite.Store, run string, owners ...string) {
	k.t.Helper()
	for _, owner := range owners {
		k.until("the lease can be acquired", func() bool {
			_, err := s.Acquire(k.t.Context(), run, owner, time.Millisecond)
			return err == nil
		})
	}
	k.until("the last lease expires", func() bool {
		row, err := s.Run(k.t.Context(), run)
		return err == nil && row.Expired
	})
}

// TestStuckRunsAreListedWithTheReason makes a run for each reason, and for each state that is none.
func TestStuckRunsAreListedWithTheReason(t *testing.T) {
	t.Parallel()
	k := &stuckWorld{t: t, path: filepath.Join(t.TempDir(), "weir.db"), begun: make(chan struct{}, 1)}
	first := k.open()
	for _, id := range []string{"left", "lost", "poisoned"} {
		k.start(first, id, blockingFlow)
	}
	k.start(first, "message", askingFlow)
	k.start(first, "asks", askingFlow)
	k.start(first, "soon", soonFlow)
	k.start(first, "late", lateFlow)
	k.start(first, "parent", parentFlow)
	k.until("all runs are where they wait", func() bool {
		rows, err := first.Runs(t.Context(), store.Filter{})
		waiting := 0
		for i := range rows {
			if rows[i].Head.Due > 0 || rows[i].Head.Status == weir.Paused {
				waiting++
			}
		}
		return err == nil && waiting == 5
	})
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := k.store()
	k.acquireAndDie(s, "lost", "there:1:a")
	k.acquireAndDie(s, "poisoned", "there:1:a", "there:2:b", "there:3:c", "there:4:d")
	if err := s.Post(t.Context(), store.Post{Run: "message", Kind: "answer", Name: "ask:ask#1", Value: "yes", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	second := k.open()
	k.start(second, "works", blockingFlow)
	want := map[string]string{
		"left": weir.StuckNoProcess, "lost": weir.StuckOwnerLost, "poisoned": weir.StuckPoisoned, "message": weir.StuckNoProcess, "soon": weir.StuckNoProcess,
	}
	k.until("the timer of one run is due", func() bool { return k.stuck(second, weir.StuckOptions{})["soon"] != "" })
	if got := k.stuck(second, weir.StuckOptions{}); !maps.Equal(got, want) {
		t.Errorf("stuck are %v, want %v", got, want)
	}
	if got := k.stuck(second, weir.StuckOptions{Limit: 1}); !maps.Equal(got, map[string]string{"left": weir.StuckNoProcess}) {
		t.Errorf("the oldest is %v", got)
	}
	if got := k.stuck(second, weir.StuckOptions{For: time.Hour}); len(got) != 0 {
		t.Errorf("stuck for an hour are %v", got)
	}
}

// sessions opens sessions, by name, with the flows of the same names.
func (k *stuckWorld) sessions(w *weir.Weir, flows map[string]string) map[string]*weir.Session {
	k.t.Helper()
	out := make(map[string]*weir.Session)
	for name, text := range flows {
		f, err := w.Parse(name+".yaml", []byte(text))
		if err == nil {
			out[name], err = w.Session(k.t.Context(), f, weir.SessionOptions{New: true, User: "ada"})
		}
		if err != nil {
			k.t.Fatal(err)
		}
	}
	return out
}

// send sends a message to a session, in another process than the one that opened it.
func (k *stuckWorld) send(w *weir.Weir, session, text string) *weir.Reply {
	k.t.Helper()
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		k.t.Fatal(err)
	}
	s, err := w.Session(k.t.Context(), f, weir.SessionOptions{ID: session})
	if err != nil {
		k.t.Fatal(err)
	}
	r, err := s.Send(k.t.Context(), "hello", weir.SendOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

// enqueue stores messages of processes that have ended, by name of the session: m-NAME.
func (k *stuckWorld) enqueue(sessions map[string]*weir.Session, at map[string]time.Time) {
	k.t.Helper()
	s := k.store()
	for name, sent := range at {
		if _, err := s.Enqueue(k.t.Context(), store.QueuedMessage{ID: "m-" + name, Session: sessions[name].ID, Value: "hello", At: sent}); err != nil {
			k.t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		k.t.Fatal(err)
	}
}

// stuckMessages returns the session and status of stuck messages, by message.
func (k *stuckWorld) stuckMessages(w *weir.Weir, o weir.StuckOptions) map[string]string {
	k.t.Helper()
	list, err := w.StuckRuns(k.t.Context(), o)
	if err != nil {
		k.t.Fatal(err)
	}
	out := make(map[string]string)
	for i := range list {
		r := &list[i]
		if r.Reason != weir.StuckMessage { // the lease of a run can expire on a loaded machine
			continue
		}
		out[r.Message] = r.Session + " " + r.Status.String()
		if r.User != "ada" || r.Flow == "" || r.Detail == "" || r.Next == "" || r.Since.IsZero() || (r.Run == "") != (r.Status.String() == "pending") {
			k.t.Errorf("%+v", *r)
		}
	}
	return out
}

// TestStuckMessagesOfSessionsAreListed has a message wait in a session in each state, and lists those that no process takes.
func TestStuckMessagesOfSessionsAreListed(t *testing.T) {
	t.Parallel()
	k := &stuckWorld{t: t, path: filepath.Join(t.TempDir(), "weir.db"), begun: make(chan struct{}, 1)}
	first := k.open()
	sessions := k.sessions(first, map[string]string{"waits": askingFlow, "asks": askingTwiceFlow, "works": blockingFlow, "new": askingFlow, "empty": askingFlow})
	if _, err := k.send(first, sessions["asks"].ID, askingTwiceFlow).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.send(k.open(), sessions["works"].ID, blockingFlow)
	<-k.begun
	hourAgo := time.Now().Add(-time.Hour)
	k.enqueue(sessions, map[string]time.Time{"waits": hourAgo, "asks": hourAgo, "works": hourAgo, "new": time.Now().Add(time.Hour)})
	third := k.open()
	want := map[string]string{"m-waits": sessions["waits"].ID + " pending", "m-asks": sessions["asks"].ID + " paused"}
	var got map[string]string
	for end := time.Now().Add(2 * time.Minute); !maps.Equal(got, want); <-time.After(50 * time.Millisecond) { // a sender has a few seconds to start a round
		if got = k.stuckMessages(third, weir.StuckOptions{}); time.Now().After(end) {
			t.Fatalf("stuck are %v, want %v", got, want)
		}
	}
	if got := k.stuckMessages(third, weir.StuckOptions{For: 30 * time.Minute}); !maps.Equal(got, map[string]string{"m-waits": want["m-waits"]}) {
		t.Errorf("stuck for half an hour are %v", got)
	}
	if got := k.stuckMessages(third, weir.StuckOptions{Limit: 1}); len(got) != 1 {
		t.Errorf("with a limit of one: %v", got)
	}
	for id := range want {
		if _, err := third.Unqueue(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if got := k.stuckMessages(third, weir.StuckOptions{}); len(got) != 0 {
		t.Errorf("without the messages: %v", got)
	}
}
