package session_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// countingFlow counts its rounds in the state of the session, then has a node that may fail.
const countingFlow = `
weir: 1
name: count
inputs: {message: {type: text, required: true}}
state:
  rounds: {scope: session, initial: 0, reducer: sum, schema: {type: integer}}
  said: {scope: session, reducer: append}
  last: {scope: session}
  seen: {initial: 0, reducer: sum}
nodes:
  count: {type: count, in: {message: "{{ run.inputs.message }}"}}
  check: {type: check, in: {message: "{{ count.text }}"}}
outputs: {rounds: "{{ state.rounds }}", seen: "{{ state.seen }}"}
`

type (
	heard struct{ Message string }
	said  struct{ Text string }
)

// countingTypes returns the node types of countingFlow. The node check fails with the message
// "fail" while failing is set.
func countingTypes(failing *atomic.Bool) []weir.Type {
	return []weir.Type{
		weir.Func("count", func(ctx weir.Ctx, in heard) (said, error) {
			st := ctx.State()
			if in.Message == "forget" {
				st.Delete("last")
				return said{in.Message}, nil
			}
			return said{in.Message}, errors.Join(st.Set("rounds", 1), st.Set("seen", 1), st.Set("said", in.Message), st.Set("last", in.Message))
		}),
		weir.Func("check", func(_ weir.Ctx, in heard) (said, error) {
			if in.Message == "fail" && failing.Load() {
				return said{}, errors.New("it fails")
			}
			return said{in.Message}, nil
		}),
	}
}

// openCounting opens a Weir with the types of countingFlow, and parses countingFlow.
func openCounting(t *testing.T, path string, failing *atomic.Bool) (*weir.Weir, *weir.Flow) {
	t.Helper()
	o := weir.Options{Types: countingTypes(failing)}
	if path != "" {
		o.Store = weirkit.OpenSQLite(t, path)
	}
	w := weirkit.Open(t, o)
	return w, weirkit.Parse(t, w, countingFlow)
}

// stateOf returns the state of a session as JSON, key by key.
func stateOf(t *testing.T, s *weir.Session) string {
	t.Helper()
	list, err := s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]engine.Value{}
	for _, v := range list {
		m[v.Key] = v.Value
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSessionStateLivesAsLongAsTheSession(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		failing := new(atomic.Bool)
		failing.Store(true)
		w, f := openCounting(t, path, failing)
		s := weirkit.OpenSession(t, w, f)
		says := func(message, outputs, state string) {
			t.Helper()
			st := weirkit.SendAndWait(t, s, message, weir.SendOptions{})
			if got := outputsOf(t, &st); got != outputs {
				t.Errorf("%s: outputs %s, expected %s", message, got, outputs)
			}
			if got := stateOf(t, s); got != state {
				t.Errorf("%s: state %s, expected %s", message, got, state)
			}
		}
		says("a", `{"rounds":1,"seen":1}`, `{"last":"a","rounds":1,"said":["a"]}`)
		says("b", `{"rounds":2,"seen":1}`, `{"last":"b","rounds":2,"said":["a","b"]}`)
		says("fail", `{}`, `{"last":"b","rounds":2,"said":["a","b"]}`)
		says("c", `{"rounds":3,"seen":1}`, `{"last":"c","rounds":3,"said":["a","b","c"]}`)
		says("forget", `{"rounds":3,"seen":0}`, `{"rounds":3,"said":["a","b","c"]}`)
	})
}

func TestRetriedRoundContinuesWithItsOwnState(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		failing := new(atomic.Bool)
		failing.Store(true)
		w, f := openCounting(t, path, failing)
		s := weirkit.OpenSession(t, w, f)
		weirkit.SendAndWait(t, s, "a", weir.SendOptions{})
		failed := weirkit.SendAndWait(t, s, "fail", weir.SendOptions{})
		failing.Store(false)
		r, err := w.Resume(t.Context(), failed.Run)
		if err == nil {
			err = r.OverrideNode(t.Context(), "retry", "check", nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if done, err := r.Wait(t.Context()); err != nil || done.Status != engine.Completed {
			t.Fatal(done, err)
		}
		if got := stateOf(t, s); got != `{"last":"fail","rounds":2,"said":["a","fail"]}` {
			t.Error(got)
		}
	})
}

func TestFailedRoundCannotContinueAfterTheStateWasSet(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		failing := new(atomic.Bool)
		failing.Store(true)
		w, f := openCounting(t, path, failing)
		s := weirkit.OpenSession(t, w, f)
		failed := weirkit.SendAndWait(t, s, "fail", weir.SendOptions{})
		if err := s.EditState(t.Context(), session.StateEdit{Set: map[string]any{"rounds": 7}}); err != nil {
			t.Fatal(err)
		}
		failing.Store(false)
		r, err := w.Resume(t.Context(), failed.Run)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.OverrideNode(t.Context(), "retry", "check", nil); !errors.Is(err, store.ErrSessionAdvanced) {
			t.Error(err)
		}
		st := weirkit.SendAndWait(t, s, "a", weir.SendOptions{})
		if got := outputsOf(t, &st); got != `{"rounds":8,"seen":1}` {
			t.Error(got)
		}
	})
}

func TestForkedSessionStartsWithTheStateOfItsRoundBoundary(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		talk := strings.Replace(countingFlow, "  check:", "  hear: {type: llmRequest, after: count, in: {message: \"{{ run.inputs.message }}\"}}\n  check:", 1)
		talk = strings.Replace(talk, "inputs:", "context: {model: echo/m}\ninputs:", 1)
		o := weir.Options{Types: countingTypes(new(atomic.Bool)), Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}}}
		if path != "" {
			o.Store = weirkit.OpenSQLite(t, path)
		}
		w := weirkit.Open(t, o)
		s := weirkit.OpenSession(t, w, weirkit.Parse(t, w, talk))
		for _, m := range []string{"a", "b", "c"} { // two messages a round
			weirkit.SendAndWait(t, s, m, weir.SendOptions{})
		}
		want := []string{
			`{}`, `{}`, `{"last":"a","rounds":1,"said":["a"]}`, `{"last":"a","rounds":1,"said":["a"]}`,
			`{"last":"b","rounds":2,"said":["a","b"]}`, `{"last":"b","rounds":2,"said":["a","b"]}`, `{"last":"c","rounds":3,"said":["a","b","c"]}`,
		}
		checkForkedStates(t, w, s, want)
	})
}

// checkForkedStates forks a session of three rounds at each of its positions, where the states
// must be those of want.
func checkForkedStates(t *testing.T, w *weir.Weir, s *weir.Session, want []string) {
	t.Helper()
	forkAt := func(s *weir.Session, at int, want string) *weir.Session {
		t.Helper()
		fork, err := s.Fork(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if got := stateOf(t, fork); got != want {
			t.Errorf("fork at %d: %s, expected %s", at, got, want)
		}
		return fork
	}
	var forks []*weir.Session
	for at, state := range want {
		forks = append(forks, forkAt(s, at, state))
	}
	weirkit.SendAndWait(t, forks[5], "x", weir.SendOptions{})
	weirkit.SendAndWait(t, s, "d", weir.SendOptions{})
	if got := stateOf(t, forks[5]); got != `{"last":"x","rounds":3,"said":["a","b","x"]}` {
		t.Error("of the fork", got)
	}
	if got := stateOf(t, s); got != `{"last":"d","rounds":4,"said":["a","b","c","d"]}` {
		t.Error("of the parent", got)
	}
	forkAt(forks[5], 3, want[3]) // before the fork's own messages
	run := weirkit.SendAndWait(t, s, "e", weir.SendOptions{}).Run
	r, _, err := w.Fork(t.Context(), run, weir.ForkOptions{From: "count"})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := r.Wait(t.Context()); err != nil || done.Status != engine.Completed {
		t.Fatal(done, err)
	}
	if got := stateOf(t, s); got != `{"last":"e","rounds":5,"said":["a","b","c","d","e"]}` {
		t.Error("after a fork of a round", got)
	}
}

func TestIncompatibleSessionStateIsRefusedBeforeTheRound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, old, now, problem string }{
		{"schema", "schema: {type: integer}", "schema: {type: string}", "string"},
		{"reducer", "reducer: sum, schema: {type: integer}", "reducer: max", "sum"},
		{"reducer added", "last: {scope: session}", "last: {scope: session, reducer: append}", "last"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			stores(t, func(t *testing.T, path string) {
				t.Helper()
				checkRefusedState(t, path, strings.Replace(countingFlow, tc.old, tc.now, 1), tc.problem)
			})
		})
	}
}

// checkRefusedState requires the state of a session to be refused once its flow has changed, for
// a reason, and to be accepted after it was reset.
func checkRefusedState(t *testing.T, path, changed, problem string) {
	t.Helper()
	w, f := openCounting(t, path, new(atomic.Bool))
	s := weirkit.OpenSession(t, w, f)
	weirkit.SendAndWait(t, s, "a", weir.SendOptions{})
	s, err := s.WithFlow(t.Context(), weirkit.Parse(t, w, changed))
	if err != nil {
		t.Fatal(err)
	}
	_, err = send(t, s, "b", weir.SendOptions{}).Wait(t.Context())
	if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeStateUnfit || !strings.Contains(e.Message, problem) {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context())
	if err != nil || info.Rounds != 1 || info.Queued != 0 {
		t.Error(info, err)
	}
	if err := s.EditState(t.Context(), session.StateEdit{All: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := send(t, s, "b", weir.SendOptions{}).Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSessionStateIsBounded(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := openCounting(t, path, new(atomic.Bool))
		s := weirkit.OpenSession(t, w, f)
		st := weirkit.SendAndWait(t, s, strings.Repeat("x", flow.MaxScopedBytes/2), weir.SendOptions{}) // twice in the state
		if st.Status != engine.Failed || st.Error == nil || st.Error.Code != engine.CodeStateSize {
			t.Errorf("%+v", st.Result)
		}
		if got := stateOf(t, s); got != "{}" {
			t.Errorf("%.40s", got)
		}
		err := s.EditState(t.Context(), session.StateEdit{Set: map[string]any{"last": strings.Repeat("x", flow.MaxScopedBytes)}})
		if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeInput {
			t.Error(err)
		}
	})
}

func TestRunWithoutSessionHasSessionKeysInItsOwnState(t *testing.T) {
	t.Parallel()
	w, f := openCounting(t, "", new(atomic.Bool))
	for range 2 {
		r, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"message": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		done, err := r.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := weir.Output[int](done, "rounds"); err != nil || n != 1 {
			t.Error(n, err)
		}
	}
}

func outputsOf(t *testing.T, st *session.ReplyState) string {
	t.Helper()
	b, err := json.Marshal(st.Outputs)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
