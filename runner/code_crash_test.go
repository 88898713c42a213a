package runner_test

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

var codeStride = flag.Int("code.stride", 3, "a process dies after every so many commits of an agent that writes code")

// failingStore is a store that takes so many commits and no more, as if the process
// had died.
type failingStore struct {
	*sqlite.Store
	remaining int
}

func (f *failingStore) Append(ctx context.Context, appends []store.Append) []error {
	if f.remaining--; f.remaining < 0 {
		return slices.Repeat([]error{weirkit.ErrDied}, len(appends))
	}
	return f.Store.Append(ctx, appends)
}

// unlimited is more commits than a run of these tests has.
const unlimited = 1 << 20

// openFailing returns a Weir over a file that takes so many commits.
func openFailing(t *testing.T, file string, left int, x sandbox.Executor) *weir.Weir {
	t.Helper()
	s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{
		Store: &failingStore{s, left}, Executors: []sandbox.Executor{x}, Providers: map[string]weir.Provider{"script": recorded.NewScriptFiles()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// startInvoice starts the run "run" of the invoice flow whose code models write.
func startInvoice(t *testing.T, w *weir.Weir, inputs map[string]any) (*weir.Run, error) {
	t.Helper()
	script, err := filepath.Abs("../examples/invoice/written.script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Load("../examples/invoice/written.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return w.Start(t.Context(), f, weir.Start{ID: "run", Inputs: inputs, Model: "script/" + script})
}

// checkResumes has another process take the run up, which comes to this status by the
// steps of the documents, each recorded once.
func checkResumes(t *testing.T, w *weir.Weir, status weir.Status) {
	t.Helper()
	run, err := w.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Status != status {
		t.Fatalf("%s %v, %v", r.Status, r.Error, err)
	}
	if got := stepTable(t, w, "run"); !slices.Equal(got, writtenCode()) {
		t.Errorf("the steps are\n%s", strings.Join(got, "\n"))
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// isolatedPython is Python in sandboxes, where there can be any.
func isolatedPython(t *testing.T) *python.Executor {
	t.Helper()
	x := python.New(python.Options{})
	if err := x.Probe(t.Context()); err != nil {
		t.Skipf("code cannot be isolated here: %v", err)
	}
	return x
}

func TestAgentsSurviveProcessDeathAtEveryCommit(t *testing.T) {
	x := isolatedPython(t)
	commits, died, stride := 1, 0, *codeStride
	for ; ; commits += stride {
		file := filepath.Join(t.TempDir(), "weir.db")
		first := openFailing(t, file, commits, x)
		run, err := startInvoice(t, first, map[string]any{"text": "A Ltd. Total: 5 EUR"})
		if err == nil {
			_, err = run.Wait(t.Context())
		}
		if closed := first.Close(t.Context()); err == nil {
			if closed != nil {
				t.Error(closed)
			}
			break // all was written before
		}
		died++
		checkResumes(t, openFailing(t, file, unlimited, x), engine.Completed)
	}
	if died < 10/stride {
		t.Errorf("a process may die in %d commits of the run, expected more", died)
	}
}

// dyingExecutor is an executor in which a process is stopped at an execution.
type dyingExecutor struct {
	sandbox.Executor
	at   int
	runs int
	in   chan struct{}
}

func (d *dyingExecutor) Run(ctx context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	if d.runs++; d.runs == d.at {
		close(d.in)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.Executor.Run(ctx, job)
}

func TestStepsAreRecordedOnceAfterProcessDeath(t *testing.T) {
	x := isolatedPython(t)
	for at := 1; at <= 4; at++ { // analysis, first program, second program, decision
		file := filepath.Join(t.TempDir(), "weir.db")
		d := &dyingExecutor{Executor: x, at: at, in: make(chan struct{})}
		first := openFailing(t, file, unlimited, d)
		if _, err := startInvoice(t, first, map[string]any{"pdf": map[string]any{"path": "invoice.pdf"}}); err != nil {
			t.Fatal(err)
		}
		<-d.in
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		counted := &dyingExecutor{Executor: x}
		checkResumes(t, openFailing(t, file, unlimited, counted), engine.Paused)
		if counted.runs != 5-at {
			t.Errorf("stopped in execution %d, %d ran after it; expected %d", at, counted.runs, 5-at)
		}
	}
}
