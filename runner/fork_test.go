package runner_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
)

// resultText returns what a run came to: its outputs, its state and all messages.
func resultText(t *testing.T, w *weir.Weir, r weir.Result) string {
	t.Helper()
	v, err := w.Inspect(t.Context(), r.Run, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v\n", r.Status, r.Outputs)
	for _, k := range v.Run.State().Keys() {
		x, _ := v.Run.State().Get(k)
		fmt.Fprintln(&b, k, x)
	}
	for _, id := range slices.Sorted(maps.Keys(v.Contexts)) {
		ms, err := v.Contexts[id].Messages()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(ms)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, id, string(text))
	}
	return regexp.MustCompile(`"[a-z]+\d*\.[a-z0-9]+/`).ReplaceAllString(b.String(), `"CHILD/`)
}

func TestForkAtAnyEventEqualsTheRun(t *testing.T) {
	t.Parallel()
	stores := map[string]func(t *testing.T) weir.Store{
		"memory": func(*testing.T) weir.Store { return memory.New() },
		"sqlite": func(t *testing.T) weir.Store {
			t.Helper()
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
	for kind, make := range stores {
		for name := range weirkit.ForkFlows() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				forkEverywhere(t, make(t), name)
			})
		}
	}
}

// forkEverywhere forks a travel at each of its events.
func forkEverywhere(t *testing.T, s weir.Store, name string) {
	t.Helper()
	w := weirkit.OpenForkWeir(t, s, &weirkit.EchoModel{})
	run, err := w.Start(t.Context(), weirkit.LoadForkFlow(t, w, name), weir.Start{ID: "original"})
	if err != nil {
		t.Fatal(err)
	}
	whole := weirkit.AnswerAll(t, w, run)
	if whole.Status != engine.Completed {
		t.Fatalf("%+v", whole)
	}
	want, journal := resultText(t, w, whole), weirkit.JournalText(t, s, "original")
	row, err := s.Run(t.Context(), "original")
	if err != nil {
		t.Fatal(err)
	}
	stride := int64(1)
	if testing.Short() {
		stride = 3
	}
	for at := int64(1); at <= row.Events; at += stride {
		fork, plan, err := w.Fork(t.Context(), "original", weir.ForkOptions{ID: fmt.Sprint("fork", at), At: at})
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		r := weirkit.AnswerAll(t, w, fork)
		if got := resultText(t, w, r); got != want {
			t.Fatalf("forked at %d of %d (%d):\n%s\nthe original:\n%s\nerror %v", at, row.Events, plan.At, got, want, r.Error)
		}
	}
	if now := weirkit.JournalText(t, s, "original"); now != journal {
		t.Error("the original was touched")
	}
	again, err := s.Run(t.Context(), "original")
	if err != nil {
		t.Fatal(err)
	}
	// These move when the original itself is left, which may be after its end is reported.
	again.Fence, again.Owner, again.Until = row.Fence, row.Owner, row.Until
	if !reflect.DeepEqual(again, row) {
		t.Errorf("the original's row was touched: %+v, was %+v", again, row)
	}
}
