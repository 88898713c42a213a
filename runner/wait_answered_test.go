package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
)

// A run that waits for a person is answered in another process, by its own id or by that of the
// child that asks, and waited for in the first.
func TestWaitReturnsNoQuestionThatWasAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"loop", "branches", "agent", "child"} {
		for _, ofChild := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", ofChild), func(t *testing.T) {
				t.Parallel()
				ws, s := openTwo(t)
				answerElsewhere(t, ws, s, name, ofChild)
			})
		}
	}
}

// answerElsewhere starts a flow in the first process, answers in the second, and waits in the first.
func answerElsewhere(t *testing.T, ws [2]*weir.Weir, s weir.Store, name string, ofChild bool) {
	t.Helper()
	run, err := ws[0].Start(t.Context(), weirkit.LoadForkFlow(t, ws[0], name), weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	for answered := map[string]bool{}; ; {
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != engine.Paused {
			if r.Status != engine.Completed || len(answered) == 0 {
				t.Errorf("the run %s after %d answers: %v", r.Status, len(answered), r.Error)
			}
			return
		}
		i := r.Interrupts[0]
		if answered[i.ID] {
			t.Fatalf("%s was answered before", i.ID)
		}
		answered[i.ID] = true
		asks, id := "r", i.ID
		if ofChild {
			asks, id = askingRun(t, s, asks, id)
		}
		if _, err := ws[1].Answer(t.Context(), asks, id, "re: "+i.Prompt, ""); err != nil {
			t.Fatalf("answer %s of %s: %v", id, asks, err)
		}
	}
}

// askingRun returns the run that asks a question of a run, and the id of the question there.
func askingRun(t *testing.T, s weir.Store, run, id string) (asks, question string) {
	t.Helper()
	above, below, ofChild := strings.Cut(id, ">")
	if !ofChild {
		return run, id
	}
	child := ""
	for c, err := range s.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if w, ok := e.(*engine.NodeWaiting); ok && w.Path == above && w.Interrupts[0].Child != nil {
				child = w.Interrupts[0].Child.Run
			}
		}
	}
	return askingRun(t, s, child, below)
}
