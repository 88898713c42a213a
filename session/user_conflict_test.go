package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// planFlow asks before it changes a plan from what it has read.
const planFlow = `
weir: 1
name: planning
inputs: {message: {type: text, required: true}}
state:
  plan: {scope: user, initial: [], onConflict: ON_CONFLICT}
  rounds: {scope: user, initial: 0, reducer: sum}
nodes:
  ask: {type: userInput, with: {prompt: "Go?"}}
  note: {type: transform, after: ask, with: {state: {plan: "state.plan + [run.inputs.message]", rounds: "1"}}}
outputs: {plan: "{{ state.plan }}"}
`

func openPlanning(t *testing.T, path, onConflict string) (*weir.Weir, *weir.Flow) {
	t.Helper()
	return openVisits(t, path, strings.Replace(planFlow, "ON_CONFLICT", onConflict, 1))
}

// pausedRound sends a message whose round then waits for an answer.
func pausedRound(t *testing.T, w *weir.Weir, f *weir.Flow, thread string) *weir.Session {
	t.Helper()
	s := sessionOf(t, w, f, "ada", thread)
	if st := weirkit.SendAndWait(t, s, thread, weir.SendOptions{}); st.Status != engine.Paused {
		t.Fatal(st.Status, st.Error)
	}
	return s
}

// checkPlan compares the values of ada.
func checkPlan(t *testing.T, w *weir.Weir, want string) {
	t.Helper()
	if got := userStateOf(t, w, "ada"); got != want {
		t.Errorf("the user has %s, expected %s", got, want)
	}
}

// checkEnd compares how a run ended; code is that of its error.
func checkEnd(t *testing.T, r *weir.Result, status engine.Status, code string) {
	t.Helper()
	got := ""
	if r.Error != nil {
		got = r.Error.Code
	}
	if r.Status != status || got != code {
		t.Errorf("%s %v, expected %s %s", r.Status, r.Error, status, code)
	}
}

// setPlan sets the value by hand.
func setPlan(t *testing.T, w *weir.Weir, f *weir.Flow, v any) {
	t.Helper()
	if err := w.SetUserState(t.Context(), f, "ada", map[string]any{"plan": []any{v}}, "root"); err != nil {
		t.Fatal(err)
	}
}

func TestRunThatLosesTheRaceForAValueFails(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := openPlanning(t, path, "fail")
		one, two := pausedRound(t, w, f, "one"), pausedRound(t, w, f, "two")
		run, err := w.Start(t.Context(), f, weir.Start{User: "ada", Inputs: map[string]any{"message": "alone"}})
		if err != nil {
			t.Fatal(err)
		}
		asked := weirkit.Wait(t, run)
		st := weirkit.SendAndWait(t, one, "go", weir.SendOptions{})
		checkEnd(t, &st.Result, engine.Completed, "")
		st = weirkit.SendAndWait(t, two, "go", weir.SendOptions{})
		checkEnd(t, &st.Result, engine.Failed, engine.CodeStateChanged)
		if !strings.Contains(st.Error.Message, `"plan" was changed by run `) {
			t.Error(st.Error)
		}
		if err := run.Answer(t.Context(), asked.Interrupts[0].ID, "go"); err != nil {
			t.Fatal(err)
		}
		alone := weirkit.Wait(t, run)
		checkEnd(t, &alone, engine.Failed, engine.CodeStateChanged)
		checkPlan(t, w, `{"plan":["one"],"rounds":1}`)
		checkNothingWaits(t, two)
		pausedRound(t, w, f, "two")
		st = weirkit.SendAndWait(t, two, "go", weir.SendOptions{})
		checkEnd(t, &st.Result, engine.Completed, "")
		checkPlan(t, w, `{"plan":["one","two"],"rounds":2}`)
	})
}

func checkNothingWaits(t *testing.T, s *weir.Session) {
	t.Helper()
	if q, err := s.QueuedMessages(t.Context()); err != nil || len(q) != 0 {
		t.Error("the session has messages that wait:", q, err)
	}
}

// changesOfPlan change the value in each way, and return the new one.
func changesOfPlan() map[string]func(t *testing.T, w *weir.Weir, f *weir.Flow) (plan string) {
	return map[string]func(t *testing.T, w *weir.Weir, f *weir.Flow) string{
		"by a run": func(t *testing.T, w *weir.Weir, f *weir.Flow) string {
			t.Helper()
			st := weirkit.SendAndWait(t, pausedRound(t, w, f, "other"), "go", weir.SendOptions{})
			checkEnd(t, &st.Result, engine.Completed, "")
			return `"first","other",`
		},
		"by hand": func(t *testing.T, w *weir.Weir, f *weir.Flow) string {
			t.Helper()
			setPlan(t, w, f, "set")
			return `"set",`
		},
		"by removal": func(t *testing.T, w *weir.Weir, f *weir.Flow) string {
			t.Helper()
			if err := w.ResetUserState(t.Context(), f.Name, "ada", []string{"plan"}, "root"); err != nil {
				t.Fatal(err)
			}
			return ""
		},
	}
}

// TestRoundThatLosesTheRaceIsRepeated changes the value in each way while a round waits.
func TestRoundThatLosesTheRaceIsRepeated(t *testing.T) {
	t.Parallel()
	for name, change := range changesOfPlan() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores(t, func(t *testing.T, path string) {
				t.Helper()
				w, f := openPlanning(t, path, "retryRound")
				weirkit.SendAndWait(t, pausedRound(t, w, f, "first"), "go", weir.SendOptions{})
				s := pausedRound(t, w, f, "mine")
				plan := `{"plan":[` + change(t, w, f) + `"mine"]`
				st := weirkit.SendAndWait(t, s, "go", weir.SendOptions{}) // the repeated round asks again
				if st.Status != engine.Paused || st.Round != 2 {
					t.Fatal(st.Status, st.Round, st.Error)
				}
				st = weirkit.SendAndWait(t, s, "go", weir.SendOptions{})
				checkEnd(t, &st.Result, engine.Completed, "")
				if got := outputsOf(t, &st); got != plan+"}" {
					t.Error(got)
				}
				if got := userStateOf(t, w, "ada"); !strings.HasPrefix(got, plan) {
					t.Error(got)
				}
			})
		})
	}
}

// TestParallelRoundsChangeOneValueInTurn sends many messages at the same time, each in a session
// of its own. Each round has its change in the value exactly if it completed.
func TestParallelRoundsChangeOneValueInTurn(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		text := strings.Replace(strings.Replace(planFlow, "ON_CONFLICT", "retryRound", 1), "  ask: {type: userInput, with: {prompt: \"Go?\"}}\n", "", 1)
		w, f := openVisits(t, path, strings.Replace(text, "after: ask, ", "", 1))
		const sessions = 8
		completed := make([]bool, sessions)
		inParallel(sessions, func(i int) {
			s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ada", Thread: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
				return
			}
			st, err := send(t, s, fmt.Sprint("m", i), weir.SendOptions{}).Wait(t.Context())
			switch {
			case err != nil:
				t.Error(err)
			case st.Status == engine.Completed:
				completed[i] = true
			case st.Error.Code != engine.CodeStateChanged:
				t.Error(st.Error)
			}
		})
		list, err := w.UserState(t.Context(), "ada")
		if err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		plan, n := list[0].Value.([]any), 0
		for i, done := range completed {
			if got := slices.Contains(plan, any(fmt.Sprint("m", i))); got != done {
				t.Errorf("m%d is in the plan: %v, and its round completed: %v", i, got, done)
			}
			if done {
				n++
			}
		}
		if len(plan) != n || list[1].Value != int64(n) || n == 0 || list[0].Version != int64(n) {
			t.Errorf("%d rounds completed: %+v", n, list)
		}
	})
}

func TestARoundIsRepeatedSoManyTimes(t *testing.T) {
	t.Parallel()
	w, f := openPlanning(t, "", "retryRound")
	s := pausedRound(t, w, f, "mine")
	for round := 2; round <= 6; round++ {
		setPlan(t, w, f, round)
		if st := weirkit.SendAndWait(t, s, "go", weir.SendOptions{}); st.Status != engine.Paused || st.Round != round {
			t.Fatal(round, st.Round, st.Status, st.Error)
		}
	}
	setPlan(t, w, f, 7)
	st := weirkit.SendAndWait(t, s, "go", weir.SendOptions{})
	checkEnd(t, &st.Result, engine.Failed, engine.CodeStateChanged)
	if !strings.Contains(st.Error.Hint, "5 times") {
		t.Error(st.Error.Hint)
	}
	checkNothingWaits(t, s)
}

// openGated opens a Weir with a flow whose rounds for the message "first" wait for the gate.
func openGated(t *testing.T, path string, gate, entered chan struct{}) (*weir.Weir, *weir.Flow) {
	t.Helper()
	text := strings.NewReplacer("ON_CONFLICT", "retryRound", `ask: {type: userInput, with: {prompt: "Go?"}}`, `ask: {type: gate, in: {message: "{{ run.inputs.message }}"}}`).Replace(planFlow)
	o := weir.Options{Types: []weir.Type{weir.Func("gate", func(_ weir.Ctx, in heard) (said, error) {
		if in.Message == "first" {
			entered <- struct{}{}
			<-gate
		}
		return said{in.Message}, nil
	})}}
	if path != "" {
		o.Store = weirkit.OpenSQLite(t, path)
	}
	w := weirkit.Open(t, o)
	return w, weirkit.Parse(t, w, text)
}

// TestARepeatedRoundPrecedesTheMessagesThatWait has a round lose the race while a later message waits.
func TestARepeatedRoundPrecedesTheMessagesThatWait(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		gate, entered := make(chan struct{}), make(chan struct{}, 8)
		w, f := openGated(t, path, gate, entered)
		s := sessionOf(t, w, f, "ada", "one")
		first, second := send(t, s, "first", weir.SendOptions{}), send(t, s, "second", weir.SendOptions{})
		<-entered
		was := first.Run()
		setPlan(t, w, f, "set")
		close(gate)
		a, err := first.Wait(t.Context())
		b, err2 := second.Wait(t.Context())
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		checkEnd(t, &a.Result, engine.Completed, "")
		checkEnd(t, &b.Result, engine.Completed, "")
		if a.Round != 2 || a.Run == was || b.Round != 3 {
			t.Errorf("rounds %d and %d", a.Round, b.Round)
		}
		checkPlan(t, w, `{"plan":["set","first","second"],"rounds":2}`)
		v, err := w.Inspect(t.Context(), was, 0)
		if err != nil || v.Run.Status() != engine.Failed {
			t.Error(err)
		}
		again, err := send(t, s, "first", weir.SendOptions{ID: first.Message}).Wait(t.Context())
		if err != nil || again.Run != a.Run || again.Status != engine.Completed {
			t.Error("sent again:", again, err)
		}
	})
}

func TestOnConflictIsForValuesOfUsers(t *testing.T) {
	t.Parallel()
	w := weirkit.Open(t, weir.Options{})
	for _, key := range []string{"onConflict: fail", "scope: session, onConflict: retryRound", "scope: user, onConflict: retry", "scope: user, onConflict: 1"} {
		_, err := w.Parse("flow.yaml", []byte("weir: 1\nname: f\nstate: {k: {"+key+"}}\nnodes: {a: {type: template, with: {text: x}}}\n"))
		if err == nil || !strings.Contains(err.Error(), flow.CodeBadValue) || !strings.Contains(err.Error(), "onConflict") {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// staleStore hides what others have changed of the state of users, for so many reads.
type staleStore struct {
	*memory.Store
	mu    sync.Mutex
	stale int
	seen  []store.UserValue
}

func (s *staleStore) Capabilities() store.Capabilities {
	c := s.Store.Capabilities()
	c.UserState = s
	return c
}

// hide hides all values from so many reads.
func (s *staleStore) hide(reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale, s.seen = reads, nil
}

func (s *staleStore) UserState(ctx context.Context, user, flow string) ([]store.UserValue, error) {
	now, err := s.Store.UserState(ctx, user, flow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale > 0 {
		s.stale--
		return s.seen, err
	}
	s.seen = now
	return now, err
}

// TestTheCommitDecidesTheRace has the runner see no change before it commits: the store refuses the
// commit, and the run fails.
func TestTheCommitDecidesTheRace(t *testing.T) {
	t.Parallel()
	for _, stale := range []int{1, 2, 4} { // the last one has the commit tried again
		for onConflict, want := range map[string]engine.Status{"fail": engine.Failed, "retryRound": engine.Paused} {
			s := &staleStore{Store: memory.New()}
			w := weirkit.Open(t, weir.Options{Store: s})
			f := weirkit.Parse(t, w, strings.Replace(planFlow, "ON_CONFLICT", onConflict, 1))
			talk := pausedRound(t, w, f, "mine")
			setPlan(t, w, f, "set")
			s.hide(stale)
			st := weirkit.SendAndWait(t, talk, "go", weir.SendOptions{})
			if st.Status != want {
				t.Errorf("%s, %d stale reads: %s %v", onConflict, stale, st.Status, st.Error)
			}
			checkPlan(t, w, `{"plan":["set"]}`)
			rounds, err := talk.Rounds(t.Context(), "", 10)
			if err != nil {
				t.Fatal(err)
			}
			v, err := w.Inspect(t.Context(), rounds[len(rounds)-1].ID, 0)
			if err != nil {
				t.Fatal(err)
			}
			first := weir.Result{Status: v.Run.Status(), Error: v.Run.Failure()}
			checkEnd(t, &first, engine.Failed, engine.CodeStateChanged)
		}
	}
}
