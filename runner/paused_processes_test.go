package runner_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store/sqlite"
)

// openProcesses opens one file n times, as so many processes would.
func openProcesses(t *testing.T, n int, model weir.Provider) []*weir.Weir {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.db")
	var all []*weir.Weir
	for range n {
		s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, weirkit.Open(t, weir.Options{Store: s, Providers: map[string]weir.Provider{"p": model}}))
	}
	return all
}

// answerAndWait answers a question of the run r and waits until it is paused
// again or has ended.
func answerAndWait(t *testing.T, w *weir.Weir, ask, said string) *weir.Run {
	t.Helper()
	run, err := w.Answer(t.Context(), "r", ask, said, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return run
}

// A process continues from what it left of a paused run, and with what others
// committed since.
func TestProcessesAnsweringInTurnShareHistoryAndBudget(t *testing.T) {
	const turns = 40
	model := &weirkit.LastRequestModel{}
	all := openProcesses(t, 2, model)
	f := weirkit.Parse(t, all[0], fmt.Sprintf(`
weir: 1
name: talk
context: {model: p/m}
budget: {maxCalls: %d}
nodes:
  chat:
    type: loop
    with:
      until: "false"
      max: 1000
      body:
        nodes:
          ask: {type: userInput, with: {history: true}}
          reply: {type: llmRequest, after: ask}
        outputs: {said: "{{ reply.text }}"}
`, turns))
	run, err := all[0].Start(t.Context(), f, weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := 1; ; i++ {
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i > turns+1 {
			if r.Status != engine.Failed || r.Usage.Calls != turns {
				t.Errorf("after %d turns the run is %s with %d calls, want failed at its budget of calls", i-1, r.Status, r.Usage.Calls)
			}
			break
		}
		if r.Status != engine.Paused {
			t.Fatalf("turn %d: %s %v", i, r.Status, r.Error)
		}
		said := fmt.Sprint("question ", i)
		run = answerAndWait(t, all[rnd.IntN(2)], r.Interrupts[0].ID, said)
		want = append(want, said)
		if i <= turns && !slices.Equal(model.Last, want) {
			t.Fatalf("turn %d: the model was sent %q, want %q", i, model.Last, want)
		}
		want = append(want, fmt.Sprint("answer ", i))
	}
}
