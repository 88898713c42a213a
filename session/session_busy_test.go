package session_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
)

// sending is how often, and from where, one message is sent under one id.
type sending struct {
	times     int
	together  bool
	processes int
}

// TestBusyPolicyHoldsForRepeatedSends sends one message under one id while
// a round is running: once, twice, many times at once, and so in two processes.
func TestBusyPolicyHoldsForRepeatedSends(t *testing.T) {
	t.Parallel()
	for _, busy := range []string{flow.BusyQueue, flow.BusyReject, flow.BusyFork} {
		for name, how := range map[string]sending{
			"once": {1, false, 1}, "twice": {2, false, 1}, "many times at once": {4, true, 1},
			"in two processes": {2, false, 2}, "in two processes at once": {4, true, 2},
		} {
			t.Run(busy+" "+name, func(t *testing.T) {
				t.Parallel()
				sendWhileBusy(t, busy, how)
			})
		}
	}
}

func sendWhileBusy(t *testing.T, busy string, how sending) {
	t.Helper()
	path := t.TempDir() + "/weir.db"
	g := newBlockedModel()
	w, f := weirkit.OpenTalk(t, path, g, weirkit.TalkFlow)
	s := weirkit.OpenSession(t, w, f)
	first := send(t, s, "one", weir.SendOptions{})
	<-g.called
	sessions := []*weir.Session{s}
	if how.processes == 2 {
		w2, f2 := weirkit.OpenTalk(t, path, g, weirkit.TalkFlow)
		sessions = append(sessions, weirkit.OpenSession(t, w2, f2))
	}
	turns, errs := sendAll(t, sessions, how, weir.SendOptions{ID: "m2", Busy: busy})
	close(g.open)
	await(t, first)
	if busy == flow.BusyReject {
		for _, err := range errs {
			if !errors.Is(err, store.ErrBusy) {
				t.Error(err)
			}
		}
		wantTexts(t, s, "user one", "assistant 1: one")
		return
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	checkSaidOnce(t, s, turns, busy == flow.BusyFork)
	if active := weirkit.OpenSession(t, w, f); active.ID != s.ID {
		t.Errorf("the active session is %s, not %s", active.ID, s.ID)
	}
}

func sendAll(t *testing.T, sessions []*weir.Session, how sending, o weir.SendOptions) ([]*weir.Reply, []error) {
	t.Helper()
	turns, errs := make([]*weir.Reply, how.times), make([]error, how.times)
	var wg sync.WaitGroup
	for i := range how.times {
		wg.Go(func() { turns[i], errs[i] = sessions[i%len(sessions)].Send(t.Context(), "two", o) })
		if !how.together {
			wg.Wait()
		}
	}
	wg.Wait()
	return turns, errs
}

// checkSaidOnce requires all replies to be of one round, in the session or in one fork.
func checkSaidOnce(t *testing.T, s *weir.Session, turns []*weir.Reply, aside bool) {
	t.Helper()
	run, in := "", turns[0].Session
	for _, turn := range turns {
		state := await(t, turn)
		if run == "" {
			run = state.Run
		}
		if state.Run != run || turn.Session.ID != in.ID || state.Status != engine.Completed {
			t.Errorf("%+v in session %s, want run %s in session %s", state, turn.Session.ID, run, in.ID)
		}
	}
	if (in.ID != s.ID) != aside {
		t.Errorf("it was said in %s", in.ID)
	}
	rounds, err := in.Rounds(t.Context(), "", 0)
	want := 2
	if aside {
		want = 1
	}
	if err != nil || len(rounds) != want {
		t.Errorf("%d rounds (%v)", len(rounds), err)
	}
	if got := strings.Count(fmt.Sprint(textsOf(t, in)), "user two"); got != 1 {
		t.Errorf("it is %d times in the history", got)
	}
}

// TestSessionForkIsActiveOnlyAfterActivate holds for a fork by hand and for
// one that a busy session makes, also where another session was active before.
func TestSessionForkIsActiveOnlyAfterActivate(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
		s := weirkit.OpenSession(t, w, f)
		weirkit.SendAndWait(t, s, "one", weir.SendOptions{})
		newest, err := w.Session(t.Context(), f, weir.SessionOptions{User: s.User, New: true})
		if err != nil {
			t.Fatal(err)
		}
		fork, err := s.Fork(t.Context(), -1)
		if err != nil {
			t.Fatal(err)
		}
		if active := weirkit.OpenSession(t, w, f); active.ID != newest.ID {
			t.Errorf("a fork of %s has made %s the active session, not %s", s.ID, active.ID, newest.ID)
		}
		if err := fork.Activate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if active := weirkit.OpenSession(t, w, f); active.ID != fork.ID {
			t.Errorf("the active session is %s, not the fork that was activated", active.ID)
		}
	})
}

// TestMessagesConvertToEveryInputType sends a text and a message to flows
// whose input for it has each of the types that take one.
func TestMessagesConvertToEveryInputType(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"text", "message", "any"} {
		w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, strings.Replace(weirkit.TalkFlow, "type: text", "type: "+typ, 1))
		s := weirkit.OpenSession(t, w, f)
		for i, said := range []any{"hello", convo.Message{Role: convo.User, Text: "hello"}} {
			state := weirkit.SendAndWait(t, s, said, weir.SendOptions{})
			if want := fmt.Sprintf("%d: hello", 2*i+1); state.Status != engine.Completed || state.Text != want {
				t.Errorf("%s, %T: %+v %+v, want %q", typ, said, state, state.Error, want)
			}
		}
	}
}
