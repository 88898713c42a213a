package builtin_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/weirtest"
)

// storedFlows returns the normal forms of a flow and of those that it uses, by fingerprint.
func storedFlows(t *testing.T, f *flow.Flow) func(string) ([]byte, error) {
	t.Helper()
	kept := make(map[string][]byte)
	for _, used := range f.Dependencies() {
		normal, err := used.Normal()
		if err != nil {
			t.Fatal(err)
		}
		kept[used.Fingerprint()] = normal
	}
	return func(fp string) ([]byte, error) {
		if kept[fp] == nil {
			return nil, fmt.Errorf("flow %s: %w", fp, store.ErrNotFound)
		}
		return kept[fp], nil
	}
}

// replayedView returns what a replayed run shows.
func replayedView(t *testing.T, plan *engine.Plan, events []engine.Event) map[string]any {
	t.Helper()
	r := engine.NewRun("run", plan)
	for i, e := range events {
		if err := r.Apply(e); err != nil {
			t.Fatalf("event %d, %s: %v", i+1, e.Kind(), err)
		}
	}
	state := make(map[string]any)
	for _, k := range r.State().Keys() {
		state[k], _ = r.State().Get(k)
	}
	return map[string]any{
		"status": r.Status(), "nodes": r.Nodes(), "outputs": r.Outputs(), "state": state, "usage": r.Usage(),
		"interrupts": r.Interrupts(), "failure": r.Failure(), "children": r.OpenChildren(),
	}
}

func TestRecordReadsTheSameWithoutItsNodeTypes(t *testing.T) {
	for _, s := range builtin.Catalogue().Specs() {
		for _, e := range s.Examples {
			t.Run(s.Name+"/"+e.Name, func(t *testing.T) {
				r := weirtest.Flow(t, e.Flow, weirtest.Case{
					Tools: exampleTools(t, e), User: e.User, Executors: []sandbox.Executor{python.New(python.Options{})}, Files: e.Files,
					In: e.Inputs, Answers: e.Answers, Script: weirtest.Says(e.Script...),
				})
				checkRecord(t, s, e, r.Events)
			})
		}
	}
}

func checkRecord(t *testing.T, s *flow.TypeSpec, e flow.Example, events []engine.Event) {
	t.Helper()
	f, err := flow.Source{Files: flow.MemFiles(e.Files)}.Parse("flow.yaml", []byte(e.Flow), builtin.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	live, err := runner.Prepare(f, builtin.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	want := replayedView(t, live.Plan, events)
	_, data, err := flow.SpecsOf(f, builtin.Catalogue()).Encode()
	if err != nil {
		t.Fatal(err)
	}
	specs, err := flow.DecodeSpecs(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, record := range map[string]flow.RecordedFlows{
		"with the specs":                   {ByFingerprint: storedFlows(t, f), Specs: specs},
		"with the types and without specs": {ByFingerprint: storedFlows(t, f), Types: builtin.Catalogue()},
		"with neither":                     {ByFingerprint: storedFlows(t, f)},
	} {
		t.Run(name, func(t *testing.T) {
			p, inferred := readBack(t, f, record)
			if len(inferred) > 0 && s.Name == "cache" {
				return // which ports are lazy cannot be inferred from the edges
			}
			if got := replayedView(t, p.Plan, events); !reflect.DeepEqual(got, want) {
				t.Errorf("read\n%v\nwas\n%v", got, want)
			}
		})
	}
}

// readBack reads the flow from the record, checks that it is the flow that was
// kept, and returns it prepared, with what was inferred about its node types.
func readBack(t *testing.T, f *flow.Flow, record flow.RecordedFlows) (*runner.Program, []string) {
	t.Helper()
	read, inferred, err := record.Read(f.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	if guesses := record.Specs == nil && record.Types == nil; guesses == (len(inferred) == 0) {
		t.Errorf("inferred %v", inferred)
	}
	was, _ := f.Normal()
	if is, err := read.Normal(); err != nil || string(is) != string(was) {
		t.Errorf("the normal form read is not the one kept: %v\n%s\n%s", err, is, was)
	}
	p, err := runner.NewRecordedProgram(read, "", inferred)
	if err != nil {
		t.Fatal(err)
	}
	return p, inferred
}
