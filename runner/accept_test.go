package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/memory"
)

// typeSaying returns the node type "says" of a process: its version and its ports.
func typeSaying[In, Out any](version int, out Out) weir.Type {
	return weir.Func("says", func(weir.Ctx, In) (Out, error) { return out, nil }).Version(version)
}

type (
	textIn struct {
		Text string `weir:"text,optional"`
	}
	textOut struct {
		Text string `weir:"text"`
	}
	// Ports that are new do not change what is recorded.
	toneOptionalIn struct {
		Text string `weir:"text,optional"`
		Tone string `weir:"tone,optional"`
	}
	toneOut struct {
		Text string `weir:"text"`
		Tone string `weir:"tone"`
	}
	// Ports that are different do.
	requiredTextIn struct {
		Text string `weir:"text"`
	}
	numberIn struct {
		Text float64 `weir:"text,optional"`
	}
	toneRequiredIn struct {
		Text string `weir:"text,optional"`
		Tone string `weir:"tone"`
	}
	listOut struct {
		Text []string `weir:"text"`
	}
)

// acceptCase is a process whose node type is not that of the process which started
// the runs.
type acceptCase struct {
	typ     weir.Type
	loads   bool   // the flow loads with it
	refused string // what the refusal names, "" if the run is continued
	accepts bool   // on request it is
}

func acceptCases() map[string]acceptCase {
	return map[string]acceptCase{
		"unchanged":            {typeSaying[textIn](1, textOut{"new"}), true, "", true},
		"other version":        {typeSaying[textIn](2, textOut{"new"}), true, "says was version 1 and is 2", true},
		"new optional input":   {typeSaying[toneOptionalIn](1, textOut{"new"}), true, "says: the input tone was added", true},
		"new output":           {typeSaying[textIn](1, toneOut{"new", ""}), true, "says: the output tone was added", true},
		"version and new port": {typeSaying[toneOptionalIn](2, textOut{"new"}), true, "says was version 1 and is 2", true},
		"input is required":    {typeSaying[requiredTextIn](1, textOut{"new"}), true, "says: the input text has changed (was text, is text required)", false},
		"output of other type": {typeSaying[textIn](1, listOut{[]string{"new"}}), true, "says: the output text has changed (was text required, is list required)", false},
		"input of other type":  {typeSaying[numberIn](1, textOut{"new"}), false, "number", false},
		"new required input":   {typeSaying[toneRequiredIn](1, textOut{"new"}), false, "tone", false},
		"no such type":         {nil, false, "says", false},
	}
}

const acceptChild = "weir: 1\nname: child\nnodes:\n  a: {type: says, in: {text: hey}}\n  ask: {type: userInput, after: a, with: {prompt: Sure?}}\n" +
	"  b: {type: says, in: {text: \"{{ ask.text }}\"}}\noutputs: {said: \"{{ b.text }}\"}\n"

func acceptFlows() map[string]string {
	const head = "weir: 1\nname: rec\nnodes:\n  a: {type: says, in: {text: hey}}\n"
	return map[string]string{
		"paused":    head + "  ask: {type: userInput, after: a, with: {prompt: Sure?}}\n  b: {type: says, in: {text: \"{{ ask.text }}\"}}\noutputs: {first: \"{{ a.text }}\", said: \"{{ b.text }}\"}\n",
		"iterating": head + "  each:\n    type: forEach\n    in: {items: [1]}\n    with:\n      body:\n        nodes:\n          ask: {type: userInput, with: {prompt: Sure?}}\n          b: {type: says, in: {text: \"{{ ask.text }}\"}}\n        outputs: {r: \"{{ b.text }}\"}\noutputs: {first: \"{{ a.text }}\", said: \"{{ each.results[0].r }}\"}\n",
		"parent":    head + "  c: {type: flow, after: a, with: {flow: child}}\noutputs: {first: \"{{ a.text }}\", said: \"{{ c.said }}\"}\n",
	}
}

// TestRunContinuesWithChangedNodeTypesOnlyIfAccepted enumerates differences of a node
// type and runs that wait, in a body and in a child run too.
func TestRunContinuesWithChangedNodeTypesOnlyIfAccepted(t *testing.T) {
	t.Parallel()
	for name, c := range acceptCases() {
		for id, text := range acceptFlows() {
			t.Run(name+", "+id, func(t *testing.T) {
				t.Parallel()
				s := weirkit.SharedMemory{Store: memory.New()}
				interrupt := pauseUnderOldTypes(t, s, id, text)
				o := weir.Options{Store: s}
				if c.typ != nil {
					o.Types = []weir.Type{c.typ}
				}
				w, err := weir.Open(o)
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a store that stays
				c.check(t, w, id, interrupt)
			})
		}
	}
}

// pauseUnderOldTypes starts a run that comes to wait, and returns what it waits for.
func pauseUnderOldTypes(t *testing.T, s weir.Store, id, text string) string {
	t.Helper()
	w, err := weir.Open(weir.Options{Store: s, Types: []weir.Type{typeSaying[textIn](1, textOut{"old"})}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a store that stays
	child, err := w.Parse("child", []byte(acceptChild))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("rec.yaml", []byte(text), child)
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || len(r.Interrupts) != 1 {
		t.Fatal(r, err)
	}
	return r.Interrupts[0].ID
}

func (c *acceptCase) check(t *testing.T, w *weir.Weir, id, interrupt string) {
	t.Helper()
	answer := func() (weir.Result, error) {
		run, err := w.Answer(t.Context(), id, interrupt, "yes", "ada")
		if err != nil {
			return weir.Result{}, err
		}
		return run.Wait(t.Context())
	}
	before := eventsOf(t, w, id)
	if c.refused != "" {
		_, err := answer()
		c.checkRefused(t, w, id, err)
	}
	changes, err := w.AcceptChanges(t.Context(), id, "ada")
	if accepted := err == nil; accepted != c.accepts {
		t.Fatalf("accepting came to %v, %v", changes, err)
	}
	if !c.accepts || c.refused == "" {
		if now := eventsOf(t, w, id); len(changes) > 0 || !slices.Equal(before, now) {
			t.Errorf("something was recorded: %v, %v", changes, now)
		}
	}
	if !c.accepts {
		return
	}
	if c.refused != "" && !strings.Contains(fmt.Sprint(changes), c.refused) {
		t.Errorf("accepted %q, expected %q", changes, c.refused)
	}
	if again, err := w.AcceptChanges(t.Context(), id, "ada"); len(again) > 0 || err != nil {
		t.Errorf("accepted again: %v, %v", again, err)
	}
	r, err := answer()
	if err != nil {
		t.Fatal(err)
	}
	continued(t, r)
	if _, err := w.AcceptChanges(t.Context(), id, "ada"); !errors.Is(err, runner.ErrStatus) {
		t.Errorf("accepting for a completed run: %v", err)
	}
}

// checkRefused checks the refusal of an answer, and that resuming is refused too.
func (c *acceptCase) checkRefused(t *testing.T, w *weir.Weir, id string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), c.refused) {
		t.Fatalf("the answer came to %v, expected %q", err, c.refused)
	}
	if changed, ok := errors.AsType[*runner.DependenciesChanged](err); ok != c.loads || ok && changed.Breaks == c.accepts {
		t.Errorf("the refusal is %#v", err)
	}
	if _, err := w.Resume(t.Context(), id); err == nil {
		t.Error("it is resumed")
	}
}

// continued checks that the run continued where it was.
func continued(t *testing.T, r weir.Result) {
	t.Helper()
	if r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error)
	}
	for out, want := range map[string]string{"first": "old", "said": "new"} { // what has completed is not done again
		if got, _ := r.Outputs.Get(out); got != want {
			t.Errorf("output %s is %v, expected %s", out, got, want)
		}
	}
}

// eventsOf returns the kinds of a run's events.
func eventsOf(t *testing.T, w *weir.Weir, id string) (kinds []string) {
	t.Helper()
	v, err := w.Inspect(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Commits {
		for _, e := range c.Events {
			kinds = append(kinds, e.Kind())
		}
	}
	return kinds
}
