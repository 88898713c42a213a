package runner_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// TestPartialAnswerOfAClosedProcessIsKept closes a process during a model call, in each place where one can be: the record has
// what had arrived, once, and no history has it, also after the call was made again.
func TestPartialAnswerOfAClosedProcessIsKept(t *testing.T) {
	t.Parallel()
	for _, l := range recoveryCases() {
		if len(l.repeatedEffects) == 0 || !strings.HasPrefix(l.repeatedEffects[0], "asked ") {
			continue // no model call is in flight
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			reached := make(chan struct{})
			w := &recoveryWorld{dir: t.TempDir(), firstProcess: true, reached: func() { close(reached) }}
			eng, err := l.start(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			<-reached
			if err := eng.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			next := &recoveryWorld{dir: w.dir, recover: l.messages == nil && l.uses == ""}
			eng = openWorld(t, next)
			if next.recover {
				l.checkOutcome(t, eng, next)
			}
			checkPartialNotes(t, eng)
		})
	}
}

func checkPartialNotes(t *testing.T, eng *weir.Weir) {
	t.Helper()
	list, err := eng.Runs(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for i := range list {
		v, err := eng.Inspect(t.Context(), list[i].ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range history.CutOffs(v) {
			if c.Text == "partial " {
				kept++
			}
		}
		checkNoPartialMessage(t, v)
	}
	if kept != 1 {
		t.Errorf("the record has %d partial answers", kept)
	}
}

func checkNoPartialMessage(t *testing.T, v *runner.RunView) {
	t.Helper()
	for id, c := range v.Contexts {
		for k := range c.History.Len() {
			if m, err := c.History.Read(k); err != nil || strings.Contains(m.Text, "partial") {
				t.Errorf("the history %s has %+v %v", id, m, err)
			}
		}
	}
}
