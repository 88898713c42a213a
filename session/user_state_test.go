package session_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
)

// userFlow keeps values for the user with each reducer, then has a node that may fail.
const userFlow = `
weir: 1
name: visits
inputs: {message: {type: text, required: true}}
state:
  visits: {scope: user, initial: 10, reducer: sum, schema: {type: integer}}
  heard: {scope: user, initial: ["start"], reducer: append}
  low: {scope: user, reducer: min}
  high: {scope: user, reducer: max}
  facts: {scope: user, initial: {}, reducer: merge}
nodes:
  note:
    type: transform
    with:
      state:
        visits: "1"
        heard: run.inputs.message
        low: size(run.inputs.message)
        high: size(run.inputs.message)
        facts: "{run.inputs.message: run.session}"
  forget: {type: forgetAll, in: {message: "{{ run.inputs.message }}"}, after: note}
  check: {type: check, in: {message: "{{ forget.text }}"}}
outputs: {visits: "{{ state.visits }}", heard: "{{ has(state.heard) ? state.heard : [] }}"}
`

func openVisits(t *testing.T, path string, text string) (*weir.Weir, *weir.Flow) {
	t.Helper()
	failing := new(atomic.Bool)
	failing.Store(true)
	types := append(countingTypes(failing), weir.Func("forgetAll", func(ctx weir.Ctx, in heard) (said, error) {
		if in.Message == "forget" {
			for _, k := range []string{"heard", "low", "facts"} {
				ctx.State().Delete(k)
			}
		}
		return said{in.Message}, nil
	}))
	o := weir.Options{Types: types}
	if path != "" {
		o.Store = weirkit.OpenSQLite(t, path)
	}
	w := weirkit.Open(t, o)
	return w, weirkit.Parse(t, w, text)
}

// sessionOf opens a session of a user and thread.
func sessionOf(t *testing.T, w *weir.Weir, f *weir.Flow, user, thread string) *weir.Session {
	t.Helper()
	s, err := w.Session(t.Context(), f, weir.SessionOptions{User: user, Thread: thread})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// userStateOf returns the state of a user as JSON, key by key, without the ids of sessions.
func userStateOf(t *testing.T, w *weir.Weir, user string) string {
	t.Helper()
	list, err := w.UserState(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]engine.Value{}
	for _, v := range list {
		m[v.Key] = v.Value
		if facts, ok := v.Value.(map[string]any); ok {
			for k := range facts {
				facts[k] = true
			}
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUserStateLivesOverAllSessionsOfTheUser(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := openVisits(t, path, userFlow)
		says := func(user, thread, message, outputs, state string) {
			t.Helper()
			st := weirkit.SendAndWait(t, sessionOf(t, w, f, user, thread), message, weir.SendOptions{})
			if got := outputsOf(t, &st); got != outputs {
				t.Errorf("%s: outputs %s, expected %s (%v)", message, got, outputs, st.Error)
			}
			if got := userStateOf(t, w, user); got != state {
				t.Errorf("%s: state %s, expected %s", message, got, state)
			}
		}
		says("ada", "one", "aa", `{"heard":["start","aa"],"visits":11}`, `{"facts":{"aa":true},"heard":["start","aa"],"high":2,"low":2,"visits":11}`)
		says("ada", "two", "b", `{"heard":["start","aa","b"],"visits":12}`, `{"facts":{"aa":true,"b":true},"heard":["start","aa","b"],"high":2,"low":1,"visits":12}`)
		says("ben", "one", "c", `{"heard":["start","c"],"visits":11}`, `{"facts":{"c":true},"heard":["start","c"],"high":1,"low":1,"visits":11}`)
		says("ada", "two", "fail", `{}`, `{"facts":{"aa":true,"b":true},"heard":["start","aa","b"],"high":2,"low":1,"visits":12}`)
		says("ada", "one", "forget", `{"heard":[],"visits":13}`, `{"high":6,"visits":13}`)
		says("ada", "one", "ddd", `{"heard":["start","ddd"],"visits":14}`, `{"facts":{"ddd":true},"heard":["start","ddd"],"high":6,"low":3,"visits":14}`)
		run, err := w.Start(t.Context(), f, weir.Start{User: "ada", Inputs: map[string]any{"message": "run"}})
		if err != nil {
			t.Fatal(err)
		}
		if r := weirkit.Wait(t, run); r.Status != engine.Completed {
			t.Fatal(r.Error)
		}
		if got := userStateOf(t, w, "ada"); !strings.Contains(got, `"visits":15`) {
			t.Error("after a run without a session:", got)
		}
	})
}

// TestParallelRoundsCombineTheirUserState holds many rounds open at the same time, each in a
// session of its own: all of them read the same values, and each write counts.
func TestParallelRoundsCombineTheirUserState(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		text := strings.Replace(userFlow, "  note:\n", "  ask: {type: userInput, with: {prompt: \"Go?\"}}\n  note:\n    after: ask\n", 1)
		w, f := openVisits(t, path, text)
		const sessions = 12
		inParallel(sessions, func(i int) {
			s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ada", Thread: strings.Repeat("t", i+1)})
			if err != nil {
				t.Error(err)
				return
			}
			st, err := send(t, s, strings.Repeat("x", i+1), weir.SendOptions{}).Wait(t.Context())
			if err != nil || len(st.Interrupts) != 1 {
				t.Error(st, err)
			}
		})
		inParallel(sessions, func(i int) {
			s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ada", Thread: strings.Repeat("t", i+1)})
			if err == nil {
				_, err = send(t, s, "go", weir.SendOptions{}).Wait(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
		list, err := w.UserState(t.Context(), "ada")
		if err != nil || len(list) != 5 {
			t.Fatal(list, err)
		}
		facts, heard := list[0].Value.(map[string]any), list[1].Value.([]any)
		if len(facts) != sessions || len(heard) != sessions+1 || list[2].Value != int64(sessions) || list[3].Value != int64(1) || list[4].Value != int64(10+sessions) {
			t.Errorf("%+v", list)
		}
	})
}

// inParallel calls act with the numbers below n, all at the same time.
func inParallel(n int, act func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { act(i) })
	}
	wg.Wait()
}

func TestUserStateIsCheckedSetAndBounded(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := openVisits(t, path, userFlow)
		s := sessionOf(t, w, f, "ada", "one")
		weirkit.SendAndWait(t, s, "a", weir.SendOptions{})
		s2 := withSummedLow(t, w, s)
		_, err := send(t, s2, "b", weir.SendOptions{}).Wait(t.Context())
		if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeStateUnfit || !strings.Contains(e.Message, "min") {
			t.Fatal(err)
		}
		if err := w.ResetUserState(t.Context(), "visits", "ada", []string{"low"}, "root"); err != nil {
			t.Fatal(err)
		}
		if st := weirkit.SendAndWait(t, s2, "b", weir.SendOptions{}); st.Status != engine.Completed {
			t.Error(st.Error)
		}
		if err := w.SetUserState(t.Context(), f, "ada", map[string]any{"visits": 40}, "root"); err != nil {
			t.Fatal(err)
		}
		checkUserValuesAreRefused(t, w, f, map[string]any{"visits": "many", "no": 1, "heard": []any{strings.Repeat("x", flow.MaxScopedBytes)}})
		st := weirkit.SendAndWait(t, s2, strings.Repeat("x", flow.MaxScopedBytes), weir.SendOptions{})
		if st.Status != engine.Failed || st.Error.Code != engine.CodeStateSize {
			t.Error(st.Status, st.Error)
		}
		if got := userStateOf(t, w, "ada"); !strings.Contains(got, `"visits":40`) {
			t.Error(got)
		}
		if x, err := w.DeleteUser(t.Context(), "ada", store.DeleteOptions{}); err != nil || x.UserValues == 0 {
			t.Error(x, err)
		}
		if got := userStateOf(t, w, ""); got != "{}" {
			t.Error(got)
		}
	})
}

// withSummedLow returns the session with a flow in which another reducer applies to low.
func withSummedLow(t *testing.T, w *weir.Weir, s *weir.Session) *weir.Session {
	t.Helper()
	changed := weirkit.Parse(t, w, strings.Replace(userFlow, "low: {scope: user, reducer: min}", "low: {scope: user, reducer: sum}", 1))
	with, err := s.WithFlow(t.Context(), changed)
	if err != nil {
		t.Fatal(err)
	}
	return with
}

func checkUserValuesAreRefused(t *testing.T, w *weir.Weir, f *weir.Flow, values map[string]any) {
	t.Helper()
	for key, value := range values {
		err := w.SetUserState(t.Context(), f, "ada", map[string]any{key: value}, "root")
		if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeInput {
			t.Error(key, err)
		}
	}
}

func TestUserStateNeedsAReducerThatCommutes(t *testing.T) {
	t.Parallel()
	w := weirkit.Open(t, weir.Options{})
	for reducer, ok := range map[string]bool{
		"": false, "reducer: replace": false, "reducer: sum": true, "reducer: min": true, "reducer: max": true, "reducer: append": true, "reducer: merge": true,
		"onConflict: fail": true, "onConflict: retryRound": true, "reducer: replace, onConflict: fail": true, "reducer: append, onConflict: retryRound": true,
	} {
		_, err := w.Parse("flow.yaml", []byte("weir: 1\nname: f\nstate: {k: {scope: user, "+reducer+"}}\nnodes: {a: {type: template, with: {text: x}}}\n"))
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), flow.CodeBadReducer) {
			t.Errorf("%q: %v", reducer, err)
		}
	}
}
