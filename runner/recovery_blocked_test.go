package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

const missingToolFlow = `
weir: 1
name: left
context: {model: p/m}
nodes:
  w: {type: first}
  get: {type: httpRequest, after: w.error, with: {url: "http://127.0.0.1:1", headers: {Authorization: "{{ secrets.TOKEN }}"}}}
  say: {type: llmRequest, after: w, in: {message: hold, tools: [look]}}
outputs: {text: "{{ say.text }}"}
`

func TestRunIsNotContinuedWithoutItsRequirements(t *testing.T) {
	t.Parallel()
	for lacks, word := range map[string]string{"node type": "first", "tool": "tool look", "provider": "models p", "secret": "secret TOKEN"} {
		t.Run(lacks, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := recoveryCase{name: lacks, flow: missingToolFlow, want: "answer to hold", onceEffects: []string{"first"}, repeatedEffects: []string{"asked hold"}}
			startProcess(t, dir, l.name, "WEIR_HOLDS=1", "WEIR_FLOW="+missingToolFlow).kill(t)
			lacking := openWorld(t, &recoveryWorld{dir: dir, recover: true, lacks: lacks})
			waitUntil(t, "the run is listed as blocked", func() bool { return len(lacking.Blocked()) > 0 })
			b := lacking.Blocked()[0]
			if b.Run != "therun" || b.Poisoned || !strings.Contains(strings.Join(b.Missing, "; "), word) {
				t.Errorf("blocked is %+v, which does not name %q", b, word)
			}
			if what, err := lacking.Missing(t.Context(), "therun"); err != nil || !strings.Contains(strings.Join(what, "; "), word) {
				t.Errorf("missing: %q %v", what, err)
			}
			r, err := lacking.Runs(t.Context(), store.Filter{})
			if err != nil || r[0].Crashes != 0 || !runner.OwnerDead(r[0].Owner) {
				t.Errorf("the run was touched: %+v %v", r, err)
			}
			w := &recoveryWorld{dir: dir, recover: true}
			whole := openWorld(t, w)
			l.checkOutcome(t, whole, w)
			if b := whole.Blocked(); len(b) > 0 {
				t.Errorf("blocked where nothing is missing: %+v", b)
			}
		})
	}
}

const crashingFlow = `
weir: 1
name: deadly
nodes:
  w: {type: deadly}
outputs: {text: "{{ w.text }}"}
`

// deathsUntilIdle starts processes that recover the runs in dir until one ends
// without an error, and counts those that the deadly node ended.
func deathsUntilIdle(t *testing.T, dir string) (died int) {
	t.Helper()
	for range 10 {
		p := exec.Command(os.Args[0], "-test.run=^TestProcessOfRecovery$")
		p.Env = append(os.Environ(), "WEIR_LEFT=recover until idle", "WEIR_DIR="+dir, "WEIR_RECOVER=1")
		out, err := p.CombinedOutput()
		if err == nil {
			break
		}
		if !strings.Contains(string(out), "deadly node") {
			t.Fatalf("the process ended otherwise: %s", out)
		}
		died++
	}
	return died
}

func TestRunThatKillsThreeProcessesIsQuarantined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const neighbours = 3
	start := startProcess(t, dir, "neighbours", "WEIR_HOLDS=1")
	start.kill(t)
	died := deathsUntilIdle(t, dir)
	if died != 2 { // and the first
		t.Errorf("the run ended %d processes after the first", died)
	}
	w := &recoveryWorld{dir: dir, deadly: false}
	eng := openWorld(t, w)
	runs, err := eng.Runs(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		r := &runs[i]
		switch {
		case r.ID == "deadly" && (r.Crashes < 3 || r.Owner != "" || r.Head.Status != engine.Running):
			t.Errorf("the run that ends processes: %+v", r)
		case r.ID != "deadly" && r.Head.Status != engine.Completed:
			t.Errorf("its neighbour %s is %s after %d crashes", r.ID, r.Head.Status, r.Crashes)
		}
	}
	if len(runs) != neighbours+1 {
		t.Fatalf("%d runs", len(runs))
	}
	_, err = eng.Continue(t.Context(), "deadly")
	if !errors.Is(err, runner.ErrPoisoned) || !strings.Contains(fmt.Sprint(err), "poisoned") {
		t.Errorf("continued by itself: %v", err)
	}
	run, err := eng.Resume(t.Context(), "deadly") // by a person, who has repaired it
	if err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Errorf("resumed it came to %v %v", r, err)
	}
	row, err := eng.Runs(t.Context(), store.Filter{Flow: "deadly"})
	if err != nil || row[0].Crashes != 0 {
		t.Errorf("crashes after it has gone on: %+v %v", row, err)
	}
}

func TestWaitAfterCloseSaysHowToContinue(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	w := &recoveryWorld{dir: t.TempDir(), firstProcess: true, reached: func() { close(reached) }}
	eng := openWorld(t, w)
	l := recoveryCases()[0]
	f, err := l.load(eng)
	if err != nil {
		t.Fatal(err)
	}
	run, err := eng.Start(t.Context(), f, weir.Start{ID: "therun"})
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	if err := eng.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if !errors.Is(err, runner.ErrStopped) || !strings.Contains(fmt.Sprint(err), "weir resume therun") || r.Status != engine.Running {
		t.Errorf("Wait returned %s and %v", r.Status, err)
	}
}

func TestCloseDrainsEffectsInFlight(t *testing.T) {
	t.Parallel()
	reached, free := make(chan struct{}), make(chan struct{})
	w := &recoveryWorld{dir: t.TempDir(), drain: time.Minute, slow: func() { close(reached); <-free }}
	eng := openWorld(t, w)
	f, err := eng.Parse("slow.yaml", []byte(`
weir: 1
name: slow
context: {model: p/m}
nodes:
  one: {type: llmRequest, in: {message: slow}}
  two: {type: llmRequest, after: one, in: {message: second}}
outputs: {text: "{{ two.text }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Start(t.Context(), f, weir.Start{ID: "therun"}); err != nil {
		t.Fatal(err)
	}
	<-reached
	closed := make(chan error, 1)
	go func() { closed <- eng.Close(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-closed:
		t.Fatalf("closed while a call was in flight: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(free)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if one, two := w.effects("asked slow"), w.effects("asked second"); one != 1 || two != 0 {
		t.Errorf("the call in flight was made %d times and the next one %d times", one, two)
	}
	next := &recoveryWorld{dir: w.dir, recover: true}
	again := openWorld(t, next)
	waitUntil(t, "the run completes", func() bool {
		r, err := again.Runs(t.Context(), store.Filter{})
		return err == nil && r[0].Head.Status == engine.Completed
	})
	if one, two := next.effects("asked slow"), next.effects("asked second"); one != 1 || two != 1 {
		t.Errorf("in both processes the first call was made %d times and the second %d times", one, two)
	}
}

func TestPartialAnswerOfCancelledTurnIsKept(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	w := &recoveryWorld{dir: t.TempDir(), firstProcess: true, reached: func() { close(reached) }}
	eng := openWorld(t, w)
	l := recoveryCases()[0]
	f, err := l.load(eng)
	if err != nil {
		t.Fatal(err)
	}
	run, err := eng.Start(t.Context(), f, weir.Start{ID: "therun"})
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	if err := run.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Cancelled {
		t.Fatalf("%s %v", r.Status, err)
	}
	v, err := eng.Inspect(t.Context(), "therun", 0)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if n, ok := e.(*engine.NoteRecorded); ok {
				text, _ := runner.PartialOf(n)
				kept = append(kept, n.Path+": "+text)
			}
		}
	}
	if fmt.Sprint(kept) != "[say: partial ]" {
		t.Errorf("kept %q", kept)
	}
	for i := range v.Contexts["main"].History.Len() {
		if m, err := v.Contexts["main"].History.Read(i); err != nil || strings.Contains(m.Text, "partial") {
			t.Errorf("the history has %+v %v", m, err)
		}
	}
}
