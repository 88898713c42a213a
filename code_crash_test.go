package weir_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// failing is a store that takes so many commits and no more, as if the process
// had died.
type failing struct {
	*sqlite.Store
	left int
}

var errDied = errors.New("the process died")

func (f *failing) Append(ctx context.Context, appends []store.Append) []error {
	if f.left--; f.left < 0 {
		return slices.Repeat([]error{errDied}, len(appends))
	}
	return f.Store.Append(ctx, appends)
}

func TestAProcessMayDieAtAnyCommitOfTheAgents(t *testing.T) {
	x := python.New(python.Options{})
	if err := x.Probe(t.Context()); err != nil {
		t.Skipf("code cannot be isolated here: %v", err)
	}
	script, err := filepath.Abs("examples/invoice/written.script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	died := 0
	for most := 1; ; most++ {
		file := filepath.Join(t.TempDir(), "weir.db")
		open := func(left int) *weir.Weir {
			s, err := sqlite.Open(ctx, file, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w, err := weir.Open(weir.Options{
				Store: &failing{s, left}, Executors: []sandbox.Executor{x}, Providers: map[string]weir.Provider{"script": recorded.NewFiles()},
			})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		first := open(most)
		f, err := first.Load("examples/invoice/written.yaml")
		if err != nil {
			t.Fatal(err)
		}
		run, err := first.Start(ctx, f, weir.Start{ID: "run", Inputs: map[string]any{"text": "A Ltd. Total: 5 EUR"}, Model: "script/" + script})
		if err == nil {
			_, err = run.Wait(ctx)
		}
		_ = first.Close(ctx) // it cannot write any more
		if err == nil {
			break // all was written before
		}
		died++
		second := open(1000)
		run, err = second.Resume(ctx, "run")
		if err != nil {
			t.Fatalf("after %d commits: %v", most, err)
		}
		r, err := run.Wait(ctx)
		if err != nil || r.Status != engine.Completed {
			t.Fatalf("after %d commits: %s %v, %v", most, r.Status, r.Error, err)
		}
		if got := stepTable(t, second, "run"); !slices.Equal(got, written()) {
			t.Errorf("after %d commits the steps are\n%s", most, strings.Join(got, "\n"))
		}
		if err := second.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if died < 10 {
		t.Errorf("the run has %d commits in which a process may die, expected more", died)
	}
	t.Logf("died at each of %d commits", died)
}
