package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

func openWorld(t *testing.T, w *recoveryWorld) *weir.Weir {
	t.Helper()
	eng, err := w.open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close(context.WithoutCancel(t.Context())) })
	return eng
}

// runOf returns the run, or the newest round, as the store has it.
func (l *recoveryCase) runOf(t *testing.T, eng *weir.Weir) (store.Run, bool) {
	t.Helper()
	f := store.Filter{Roots: true}
	if l.messages != nil {
		f.Session = "talk"
	}
	list, err := eng.Runs(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].Origin != "tool" && list[i].Parent == "" {
			return list[i], true
		}
	}
	return store.Run{}, false
}

// waitUntil waits for a condition that another goroutine makes true.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not after a minute: %s", what)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

// checkOutcome waits until what was left has come to what it should, and answers what it
// asks meanwhile.
func (l *recoveryCase) checkOutcome(t *testing.T, eng *weir.Weir, w *recoveryWorld) {
	t.Helper()
	answered := false
	waitUntil(t, "the run ends: "+l.name, func() bool {
		r, ok := l.runOf(t, eng)
		switch {
		case !ok || l.messages != nil && r.Round < len(l.messages):
			return false
		case l.want == "":
			return r.Head.Status == engine.Running && r.Head.Due > 0 && (r.Owner == "" || runner.OwnerDead(r.Owner))
		case r.Head.Status == engine.Paused && l.answer != nil && !answered && len(r.Head.Waiting) > 0:
			_, err := eng.Answer(t.Context(), r.ID, r.Head.Waiting[0].ID, l.answer, "me")
			answered = err == nil
		}
		return r.Head.Status.Ended()
	})
	if l.want == "" {
		return
	}
	r, _ := l.runOf(t, eng)
	v, err := eng.Inspect(t.Context(), r.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := v.Run.Outputs().Get("text")
	if r.Head.Status != engine.Completed || got != l.want {
		t.Errorf("%s: %s %v, outputs %v, want %q", l.name, r.Head.Status, r.Head.Error, v.Run.Outputs(), l.want)
	}
	for _, name := range l.onceEffects {
		if n := w.effects(name); n != 1 {
			t.Errorf("%s: %q took place %d times", l.name, name, n)
		}
	}
	for _, name := range l.repeatedEffects {
		if n := w.effects(name); n != 2 {
			t.Errorf("%s: %q took place %d times in two processes", l.name, name, n)
		}
	}
}

func TestRecoveryContinuesWorkOfKilledProcess(t *testing.T) {
	t.Parallel()
	for _, l := range recoveryCases() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			startProcess(t, dir, l.name, "WEIR_HOLDS=1").kill(t)
			w := &recoveryWorld{dir: dir, recover: true}
			l.checkOutcome(t, openWorld(t, w), w)
		})
	}
}

func TestRecoveryContinuesWorkOfClosedProcess(t *testing.T) {
	t.Parallel()
	for _, l := range recoveryCases() {
		if l.stopped {
			continue // does not close
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			startProcess(t, dir, l.name, "WEIR_HOLDS=1").close(t)
			w := &recoveryWorld{dir: dir, recover: true}
			l.checkOutcome(t, openWorld(t, w), w)
		})
	}
}
