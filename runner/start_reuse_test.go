package runner_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
)

const reuseFlow = `
weir: 1
name: wash
context: {model: p/m, system: You wash cars.}
inputs: {car: {type: text, required: true}, wax: {type: bool, default: false}}
nodes:
  ask: {type: userInput, in: {car: "{{ run.inputs.car }}"}, with: {prompt: "Wash {{ inputs.car }}?"}}
  done: {type: llmRequest, after: ask, in: {message: "{{ run.inputs.wax ? 'Wax' : 'Wash' }}."}}
`

// requireFields fails if a type has an exported field that is not in the lists: each option of a start is compared, or
// stated not to be.
func requireFields[T any](t *testing.T, compared map[string][]func(*T), other ...string) {
	t.Helper()
	known := map[string]bool{}
	for name := range compared {
		known[name] = true
	}
	for _, name := range other {
		known[name] = true
	}
	typ := reflect.TypeFor[T]()
	for f := range typ.Fields() {
		if f.IsExported() && !known[f.Name] {
			t.Errorf("%s.%s is neither compared nor stated not to be", typ, f.Name)
		}
		delete(known, f.Name)
	}
	for name := range known {
		t.Errorf("%s has no field %s", typ, name)
	}
}

// checkReuse calls start again with each change, and expects that each is refused and the same call is not.
func checkReuse[T any](t *testing.T, given T, compared map[string][]func(*T), start func(T) error) {
	t.Helper()
	if err := start(given); err != nil {
		t.Fatal("the first:", err)
	}
	for name, changes := range compared {
		for i, change := range changes {
			o := given
			change(&o)
			err := start(o)
			if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeRequestReused || e.Hint == "" {
				t.Errorf("another %s (%d): %v", name, i, err)
			}
		}
	}
	if err := start(given); err != nil {
		t.Error("the same:", err)
	}
}

func startChanges() map[string][]func(*weir.Start) {
	return map[string][]func(*weir.Start){
		"Inputs": {
			func(s *weir.Start) { s.Inputs = map[string]any{"car": "bmw"} },
			func(s *weir.Start) { s.Inputs = map[string]any{"car": "vw", "wax": true} },
		},
		"State": {
			func(s *weir.Start) { s.State = nil },
			func(s *weir.Start) { s.State = map[string]any{"k": 2} },
			func(s *weir.Start) { s.State = map[string]any{"k": 1, "l": nil} },
		},
		"User":    {func(s *weir.Start) { s.User = "bert" }, func(s *weir.Start) { s.User = "" }},
		"Targets": {func(s *weir.Start) { s.Targets = []string{"done"} }, func(s *weir.Start) { s.Targets = nil }},
		"Breaks":  {func(s *weir.Start) { s.Breaks = []string{"done"} }},
		"Model":   {func(s *weir.Start) { s.Model = "p/other" }},
	}
}

// Each option of a start under a known id is compared with the first one, or stated not to be: origins differ in honest
// repetitions. A run that is a fork, or a child, is not the one that a start asks for.
func TestEveryOptionOfAStartUnderAKnownIDIsCompared(t *testing.T) {
	t.Parallel()
	requireFields(t, startChanges(), "ID", "Origin")
	given := weir.Start{ID: "r", Inputs: map[string]any{"car": "vw"}, State: map[string]any{"k": 1}, User: "ada", Targets: []string{"ask"}}
	start := func(w *weir.Weir, o weir.Start) error {
		run, err := w.Start(t.Context(), weirkit.Parse(t, w, reuseFlow), o)
		if err == nil {
			weirkit.Wait(t, run)
		}
		return err
	}
	models := map[string]weir.Provider{"p": &weirkit.EchoModel{}}
	w := weirkit.Open(t, weir.Options{Providers: models})
	checkReuse(t, given, startChanges(), func(o weir.Start) error { return start(w, o) })
	path := t.TempDir() + "/weir.db"
	checkReuse(t, given, startChanges(), func(o weir.Start) error {
		w, err := weir.Open(weir.Options{Store: weirkit.OpenSQLite(t, path), Providers: models})
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(start(w, o), w.Close(t.Context()))
	})
}

func forkChanges() map[string][]func(*weir.ForkOptions) {
	return map[string][]func(*weir.ForkOptions){
		"Inputs": {func(o *weir.ForkOptions) { o.Inputs = nil }, func(o *weir.ForkOptions) { o.Inputs = map[string]any{"wax": false} }},
		"State": {
			func(o *weir.ForkOptions) { o.State = nil },
			func(o *weir.ForkOptions) { o.State = map[string]any{"k": 3} },
			func(o *weir.ForkOptions) { o.State = map[string]any{"k": 2, "l": 1} },
		},
		"Model":  {func(o *weir.ForkOptions) { o.Model = "" }, func(o *weir.ForkOptions) { o.Model = "p/third" }},
		"Breaks": {func(o *weir.ForkOptions) { o.Breaks = nil }},
	}
}

// Each option of a fork under a known id is compared, or stated not to be. Where it begins, and its flow, are what it is
// a fork of: another one is refused as a run that is there (store.ErrExists).
func TestEveryOptionOfAForkUnderAKnownIDIsCompared(t *testing.T) {
	t.Parallel()
	requireFields(t, forkChanges(), "ID", "From", "At", "Flow", "By", "Origin")
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"p": &weirkit.EchoModel{}}})
	f := weirkit.Parse(t, w, reuseFlow)
	run, err := w.Start(t.Context(), f, weir.Start{ID: "r", Inputs: map[string]any{"car": "vw"}})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.Wait(t, run)
	given := weir.ForkOptions{
		ID: "k", From: "ask", Inputs: map[string]any{"wax": true}, State: map[string]any{"k": 2}, Model: "p/other", Breaks: []string{"done"},
	}
	checkReuse(t, given, forkChanges(), func(o weir.ForkOptions) error {
		fork, _, err := w.Fork(t.Context(), "r", o)
		if err == nil {
			weirkit.Wait(t, fork)
		}
		return err
	})
	_, err = w.Start(t.Context(), f, weir.Start{ID: "k", Inputs: map[string]any{"car": "vw", "wax": true}})
	if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeRequestReused {
		t.Errorf("a start under the id of a fork: %v", err)
	}
}
