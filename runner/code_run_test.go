package runner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// runCode runs a flow on sandboxes of this machine.
func runCode(t *testing.T, flow string, c weirtest.Case) weirtest.Result {
	t.Helper()
	x := isolatedPython(t)
	c.Executors = []sandbox.Executor{x}
	return weirtest.Flow(t, flow, c)
}

// codeOf returns a flow of the nodes, each with code.
func codeOf(state, nodes string) string {
	return "weir: 1\nname: coded\nstate: {" + state + "}\nnodes:\n" + nodes
}

func TestCodeReadsStateAndWritesChanges(t *testing.T) {
	r := runCode(t, codeOf("", `
  a:
    type: action
    with:
      code: |
        context['deep']['list'].append(3)
        del context['gone']
        context['new'] = {'x': [1, 2.5, None, True, 'ü']}
        context['kept']
`), weirtest.Case{State: map[string]any{"deep": map[string]any{"list": []any{1, 2}}, "gone": 1, "kept": "k"}})
	want := map[string]any{
		"deep": map[string]any{"list": []any{int64(1), int64(2), int64(3)}}, "kept": "k",
		"new": map[string]any{"x": []any{int64(1), 2.5, nil, true, "ü"}},
	}
	if r.Status != engine.Completed || !reflect.DeepEqual(r.State, want) {
		t.Fatalf("%s %v: %v", r.Status, r.Error, r.State)
	}
	for _, e := range r.Events {
		if done, ok := e.(*engine.NodeCompleted); ok && len(done.State) != 3 {
			t.Errorf("written are %v, expected three changes", done.State)
		}
	}
}

// TestPrintedTextIsStreamedUnderTheKeyOfItsEffect compares what a reader sees of a program
// while it runs with what the journal has of it afterwards.
func TestPrintedTextIsStreamedUnderTheKeyOfItsEffect(t *testing.T) {
	w, err := weir.Open(weir.Options{Executors: []sandbox.Executor{isolatedPython(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the run has ended
	f := weirkit.Parse(t, w, codeOf("", `
  a: {type: action, with: {code: "import sys\nprint('größer')\nprint('careful', file=sys.stderr)\nprint('two')\ncontext['x'] = 1"}}
`))
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	live, ended := map[string]string{}, false
	for it, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := it.Event.(type) {
		case nil:
			if it.Chunk == nil || it.Path != "a" || ended {
				t.Fatalf("live output: %+v, after the effect: %t", it, ended)
			}
			live[it.Effect+" stdout"] += it.Chunk.Stdout
			live[it.Effect+" stderr"] += it.Chunk.Stderr
		case *engine.EffectCompleted:
			ended = true
			r, _ := e.Result.(map[string]any)
			if r["stdout"] != "größer\ntwo\n" || r["stdout"] != live[e.Key+" stdout"] || r["stderr"] != live[e.Key+" stderr"] {
				t.Errorf("the result of %s is %v, what was seen %v", e.Key, r, live)
			}
		}
	}
	if !ended {
		t.Error("no effect has completed")
	}
}

func TestParallelCodeMergesWithReducersAndConflictsWithout(t *testing.T) {
	const nodes = `
  a: {type: action, with: {code: "context['total'] += 5; context['log'].append('a'); context['by']['a'] = 1"}}
  b: {type: action, with: {code: "context['total'] += 7; context['log'].append('b'); context['by']['b'] = 2"}}
`
	r := runCode(t, codeOf("total: {reducer: sum, initial: 10}, log: {reducer: append, initial: [start]}, by: {reducer: merge, initial: {}}", nodes), weirtest.Case{})
	log, _ := r.State["log"].([]any)
	if r.Status != engine.Completed || r.State["total"] != int64(22) || len(log) != 3 || log[0] != "start" ||
		!reflect.DeepEqual(r.State["by"], map[string]any{"a": int64(1), "b": int64(2)}) {
		t.Fatalf("%s %v: %v", r.Status, r.Error, r.State)
	}
	r = runCode(t, codeOf("total: {initial: 10}, log: {initial: []}, by: {initial: {}}", nodes), weirtest.Case{})
	if r.Error == nil || r.Error.Code != engine.CodeStateConflict || !strings.Contains(r.Error.Message, "a") || !strings.Contains(r.Error.Message, "b") {
		t.Errorf("two unordered writers: %s %v", r.Status, r.Error)
	}
	r = runCode(t, codeOf("log: {reducer: append, initial: [start]}", "  a: {type: action, with: {code: \"context['log'].clear()\"}}\n"), weirtest.Case{})
	if r.Error == nil || r.Error.Code != engine.CodeStateReducer || !strings.Contains(r.Error.Message, "log") {
		t.Errorf("a list that is appended to is emptied: %s %v", r.Status, r.Error)
	}
}

func TestStateSchemasApplyToCode(t *testing.T) {
	r := runCode(t, codeOf("amount: {schema: {type: number, minimum: 0}}", "  a: {type: action, with: {code: \"context['amount'] = -1\"}}\n"), weirtest.Case{})
	if r.Error == nil || r.Error.Code != engine.CodeValue || !strings.Contains(r.Error.Message, "amount") {
		t.Errorf("%s %v", r.Status, r.Error)
	}
}

func TestBranchDecisionIsNotKeptInState(t *testing.T) {
	// Two decisions beside each other, a stale value, and one that an action sets.
	r := runCode(t, codeOf("", `
  spoil: {type: action, with: {code: "context['branch_decision'] = 'no'; context['x'] = 5"}}
  a: {type: decision, after: spoil, with: {branches: [yes, no], code: "context['branch_decision'] = 'yes' if context['x'] > 1 else 'no'"}}
  b: {type: decision, after: spoil, with: {branches: [1, 2], code: "context['branch_decision'] = 2"}}
  c: {type: decision, after: spoil, with: {code: "import json; print(json.dumps({'context_updates': {'branch_decision': True, 'seen': 'branch_decision' in context}}))"}}
  end: {type: template, after: [a.yes, b.2, c.true], join: all, with: {text: "{{ state.seen }}"}}
outputs: {end: "{{ end.text }}"}
`), weirtest.Case{State: map[string]any{"branch_decision": "no"}})
	if r.Status != engine.Completed || r.Outputs["end"] != "false" || !reflect.DeepEqual(r.State, map[string]any{"branch_decision": "no", "x": int64(5), "seen": false}) {
		t.Errorf("%s %v: %v, %v", r.Status, r.Error, r.Outputs, r.State)
	}
	for code, want := range map[string]string{
		"pass":                                engine.CodeBranchMissing,
		"context['branch_decision'] = 'up'":   engine.CodeBranch,
		"context['branch_decision'] = None":   engine.CodeBranchMissing,
		"raise KeyError('x')":                 engine.CodeCodeFailed,
		"context['x'] = float('nan')":         engine.CodeCodeValue,
		"def (":                               engine.CodeCodeInvalid,
		"while True: pass":                    engine.CodeCodeTimeout,
		"import socket; socket.create_server": engine.CodeBranchMissing,
	} {
		r := runCode(t, codeOf("", "  a:\n    type: decision\n    with:\n      timeout: 1\n      code: |\n        "+code+"\n"), weirtest.Case{State: map[string]any{"branch_decision": "true"}})
		if r.Error == nil || r.Error.Code != want {
			t.Errorf("%s: %s %v, expected %s", code, r.Status, r.Error, want)
		}
	}
}

func TestCodeNeedsAnExecutor(t *testing.T) {
	r := weirtest.Flow(t, codeOf("", "  a: {type: action, with: {code: \"x = 1\"}}\n"), weirtest.Case{})
	if r.Error == nil || r.Error.Code != engine.CodeSandboxUnavailable || !strings.Contains(r.Error.Hint, "weir doctor") {
		t.Errorf("%s %v", r.Status, r.Error)
	}
	r = runCode(t, codeOf("", "  a: {type: action, with: {executor: e2b, code: \"x = 1\"}}\n"), weirtest.Case{})
	if r.Error == nil || r.Error.Code != engine.CodeSandboxUnavailable || !strings.Contains(r.Error.Message, "e2b") || !strings.Contains(r.Error.Message, "python") {
		t.Errorf("%s %v", r.Status, r.Error)
	}
}

// withFiles returns a folder with a flow that reads a file, and what is around it.
func withFiles(t *testing.T, files string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"outside.txt": "outside", "flows/a.txt": "inside", "flows/sub/b.txt": "below",
		"flows/f.yaml": codeOf("", "  a:\n    type: action\n    with:\n      files: "+files+"\n      code: |\n        context['read'] = {n: open(p).read() for n, p in files.items()}\n") +
			"inputs: {doc: {type: any}}\n",
	} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside.txt", filepath.Join(dir, "flows/link.txt")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "flows/f.yaml")
}

func TestCodeReadsOnlyDeclaredFiles(t *testing.T) {
	const given = `{x: "{{ has(run.inputs.doc) ? run.inputs.doc : null }}"}`
	for _, c := range []struct {
		files string
		doc   any
		read  any
		fault string
	}{
		{"{x: a.txt, y: sub/b.txt}", nil, map[string]any{"x": "inside", "y": "below"}, ""},
		{"{x: ../outside.txt}", nil, map[string]any{"x": "outside"}, ""}, // the flow's author says so
		{"{x: lost.txt}", nil, nil, "does not exist"},
		{"{x: sub}", nil, nil, "is not a file"},
		{given, nil, map[string]any{}, ""},
		{given, "sub/b.txt", map[string]any{"x": "below"}, ""},
		{given, map[string]any{"path": "a.txt"}, map[string]any{"x": "inside"}, ""},
		{given, map[string]any{"text": "said"}, map[string]any{"x": "said"}, ""},
		{given, map[string]any{"base64": "c2FpZA=="}, map[string]any{"x": "said"}, ""},
		{given, map[string]any{"base64": "?"}, nil, "base64"},
		{given, "../outside.txt", nil, "folder of the flow's file"},
		{given, "link.txt", nil, "folder of the flow's file"},
		{given, "/etc/passwd", nil, "folder of the flow's file"},
		{given, 5, nil, "expected a path"},
	} {
		w := withPython(t, weir.Options{})
		f, err := w.Load(withFiles(t, c.files))
		if err != nil {
			t.Fatal(err)
		}
		inputs := map[string]any{}
		if c.doc != nil {
			inputs["doc"] = c.doc
		}
		run, err := w.Start(t.Context(), f, weir.Start{Inputs: inputs})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v, err := w.Inspect(t.Context(), r.Run, 0)
		if err != nil {
			t.Fatal(err)
		}
		read, _ := v.Run.State().Get("read")
		if c.fault == "" && !reflect.DeepEqual(read, c.read) {
			t.Errorf("%s with %v: %v, %v", c.files, c.doc, read, r.Error)
		}
		if c.fault != "" && (r.Error == nil || r.Error.Code != engine.CodeInput || !strings.Contains(r.Error.Message, c.fault)) {
			t.Errorf("%s with %v: %s %v, expected %q", c.files, c.doc, r.Status, r.Error, c.fault)
		}
	}
}

func TestPauseForApprovalRecordsStepsOnce(t *testing.T) {
	look := &weir.Tool{Name: "look_up", Approve: tool.ApproveAlways, Call: func(context.Context, tool.Call) (string, error) { return "EUR", nil }}
	r := runCode(t, `
weir: 1
name: asking
context: {model: script/demo}
nodes:
  a: {type: action, with: {prompt: "Set amount to 5.", tools: [look_up], learn: false}}
`, weirtest.Case{
		Tools: []*weir.Tool{look}, Answers: map[string]any{"a": "approve"},
		Script: append(append(weirtest.Says(`{"needs_analysis": true}`, "```\nprint('nothing')\n```"), weirtest.Calls("look_up", map[string]any{})),
			weirtest.Says("```\ncontext['amount'] = 5\n```", `{"valid": true}`)...),
		Timeout: 60 * time.Second,
	})
	n := 0
	for _, e := range r.Events {
		if _, ok := e.(*engine.StepRecorded); ok {
			n++
		}
	}
	if r.Status != engine.Completed || n != 6 || len(r.Requests) != 5 {
		t.Errorf("%s %v: %d steps, %d calls", r.Status, r.Error, n, len(r.Requests))
	}
}

func TestManualRetryContinuesWithFurtherAttempts(t *testing.T) {
	model := &replaceableModel{}
	w := withPython(t, weir.Options{Replay: model})
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: again
context: {model: script/demo}
nodes:
  a: {type: action, with: {prompt: "Set amount to 5.", attempts: 2, learn: false}}
outputs: {v: "{{ a.value }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	model.Provider = recorded.NewScriptedTurns(weirtest.Says(`{"needs_analysis": false}`, "```\n1/0\n```", "```\n[][1]\n```"), nil)
	run, err := w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Error == nil || r.Error.Code != engine.CodeGeneration {
		t.Fatalf("%s %v, %v", r.Status, r.Error, err)
	}
	model.Provider = recorded.NewScriptedTurns(weirtest.Says("```\ncontext['amount'] = 5\n```", `{"valid": true}`), nil)
	if run, err = w.OverrideNode(t.Context(), "run", "retry", "a", nil, "ada"); err == nil {
		r, err = run.Wait(t.Context())
	}
	if err != nil || r.Status != engine.Completed {
		t.Fatalf("%s %v, %v", r.Status, r.Error, err)
	}
	got := stepTable(t, w, "run")
	if want := "a 6 output_validation 3 success"; len(got) != 12 || got[len(got)-1] != want {
		t.Errorf("the steps are\n%s", strings.Join(got, "\n"))
	}
}

// replaceableModel is a model that others take the place of.
type replaceableModel struct{ weir.Provider }

func TestChildRunResolvesFilesFromItsOwnFolderInAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sub/a.txt":  "below",
		"sub/c.yaml": "weir: 1\nname: child\nnodes:\n  a: {type: action, with: {files: {a: a.txt}, code: \"print(open(files['a']).read())\"}}\noutputs: {read: \"{{ a.stdout }}\"}\n",
		"p.yaml": "weir: 1\nname: parent\nnodes:\n  ask: {type: userInput, with: {prompt: \"Go on?\"}}\n" +
			"  c: {type: flow, after: ask, with: {flow: sub/c.yaml}}\noutputs: {read: \"{{ c.read }}\"}\n",
	} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	db := func() weir.Store {
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, "weir.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := withPython(t, weir.Options{Store: db()})
	f, err := first.Load(filepath.Join(dir, "p.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := first.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := withPython(t, weir.Options{Store: db()}) // it has the flows from the store alone
	if run, err = second.Resume(t.Context(), "run"); err == nil {
		err = run.Answer(t.Context(), "ask:ask#1", "yes")
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if read, _ := r.Outputs.Get("read"); err != nil || r.Status != engine.Completed || read != "below\n" {
		t.Errorf("%s %v, %v: %v", r.Status, r.Error, err, read)
	}
}
