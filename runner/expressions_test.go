package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
)

const runMembersFlow = `
weir: 1
name: members
inputs:
  message: {type: text}
nodes:
  direct:
    type: transform
    in: {id: "{{ run.id }}", session: "{{ run.session }}", round: "{{ run.round }}"}
    with: {expr: "[inputs.id, run.flow, run.user, inputs.session, inputs.round, run.session]"}
  branch: {type: decision, with: {expr: "run.session == null ? 'none' : 'some'", branches: [none, some]}}
  child: {type: flow, with: {flow: child.yaml}}
outputs:
  direct: "{{ direct.value }}"
  branch: "{{ branch.result }}"
  child: "{{ child.members }}"
  grandchild: "{{ child.inner }}"
  here: "{{ [run.session, run.round, run.id] }}"
`

const childMembersFlow = `
weir: 1
name: child
nodes:
  read: {type: transform, with: {expr: "[run.id, run.flow, run.user, run.session, run.round]"}}
  deeper: {type: flow, with: {flow: grandchild.yaml}}
outputs: {members: "{{ read.value }}", inner: "{{ deeper.members }}"}
`

const grandchildMembersFlow = `
weir: 1
name: grandchild
nodes:
  read: {type: transform, with: {expr: "[run.id, run.flow, run.user, run.session, run.round]"}}
outputs: {members: "{{ read.value }}"}
`

// openMembers opens a store with the flow that reads what expressions know of a run.
func openMembers(t *testing.T) (*weir.Weir, *weir.Flow) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"root.yaml": runMembersFlow, "child.yaml": childMembersFlow, "grandchild.yaml": grandchildMembersFlow} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := weirkit.Open(t, weir.Options{Store: weirkit.OpenSQLite(t, filepath.Join(dir, "weir.db"))})
	f, err := w.Load(filepath.Join(dir, "root.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return w, f
}

func TestExpressionsReadTheRunItsUserSessionAndRound(t *testing.T) {
	w, f := openMembers(t)
	s := weirkit.OpenSession(t, w, f)
	for round := 1; round <= 2; round++ {
		got := weirkit.SendAndWait(t, s, "hello", weir.SendOptions{}).Result
		checkMembers(t, got, "anna", s.ID, fmt.Sprint(round), "some")
	}
}

func TestOutsideOfSessionsTheSessionAndTheRoundAreNull(t *testing.T) {
	w, f := openMembers(t)
	run, err := w.Start(t.Context(), f, weir.Start{User: "ute"})
	if err != nil {
		t.Fatal(err)
	}
	checkMembers(t, weirkit.Wait(t, run), "ute", "<nil>", "<nil>", "none")
}

// checkMembers requires the members of run in the root, and in its child and grandchild.
func checkMembers(t *testing.T, got weir.Result, user, session, round, branch string) {
	t.Helper()
	if got.Status != engine.Completed {
		t.Fatalf("%s: %v", got.Status, got.Error)
	}
	out := got.Outputs.Map()
	text := func(name string) string { return strings.Trim(fmt.Sprint(out[name]), "[]") }
	run := strings.Fields(text("here"))[2]
	if want := fmt.Sprintf("%s %s %s", session, round, run); text("here") != want {
		t.Errorf("in outputs: %s; want %s", text("here"), want)
	}
	if want := fmt.Sprintf("%s members %s %s %s %s", run, user, session, round, session); text("direct") != want {
		t.Errorf("in a node: %s; want %s", text("direct"), want)
	}
	if out["branch"] != branch {
		t.Errorf("in a condition: %v; want %s", out["branch"], branch)
	}
	seen := map[string]bool{run: true}
	for name, flow := range map[string]string{"child": "child", "grandchild": "grandchild"} {
		id, rest, _ := strings.Cut(text(name), " ")
		if want := fmt.Sprintf("%s %s %s %s", flow, user, session, round); rest != want {
			t.Errorf("in the %s: %s; want %s", name, rest, want)
		}
		if seen[id] {
			t.Errorf("the %s has the id %s of another run", name, id)
		}
		seen[id] = true
	}
}

// What expressions read of time and identity is the same before and after a question, a
// restart and an inspection.
func TestNowAndUUIDsAreTheSameAfterARestart(t *testing.T) {
	const text = `
weir: 1
name: stamps
nodes:
  ask:
    type: userInput
    in: {id: "{{ uuid(1) }}", at: "{{ now }}"}
    with: {prompt: "{{ inputs.id }} {{ inputs.at }} {{ uuid(1) }} {{ now }}"}
  other: {type: template, with: {text: "{{ uuid(1) }}"}}
outputs: {a: "{{ uuid(1) }}", b: "{{ uuid('x') }}", same: "{{ uuid(1) == uuid(1) }}", at: "{{ now }}", other: "{{ other.text }}"}
`
	path := filepath.Join(t.TempDir(), "weir.db")
	prompt := func(r weir.Result) string {
		t.Helper()
		if len(r.Interrupts) != 1 {
			t.Fatalf("%s, waits for %v", r.Status, r.Interrupts)
		}
		return r.Interrupts[0].Prompt
	}
	w, f := weirkit.OpenTalk(t, path, nil, text)
	run, err := w.Start(t.Context(), f, weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	first := prompt(weirkit.Wait(t, run))
	parts := strings.Fields(first)
	id := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if len(parts) != 4 || !id.MatchString(parts[0]) || !id.MatchString(parts[2]) || parts[0] == parts[2] || parts[1] != parts[3] {
		t.Fatalf("the prompt is %q", first)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w2, _ := weirkit.OpenTalk(t, path, nil, text)
	run, err = w2.Resume(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if again := prompt(weirkit.Wait(t, run)); again != first {
		t.Errorf("after a restart the prompt is %q; want %q", again, first)
	}
	got := weirkit.AnswerAll(t, w2, run).Outputs.Map()
	for _, name := range []string{"a", "b", "other"} {
		if s, _ := got[name].(string); !id.MatchString(s) || s == parts[0] || s == parts[2] {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if got["same"] != true || got["a"] == got["b"] || got["a"] == got["other"] || !strings.HasSuffix(fmt.Sprint(got["at"]), "Z") {
		t.Errorf("outputs are %v", got)
	}
}

// An optional reference to a node that was skipped means the same in inputs and outputs.
func TestOptionalReferencesMeanTheSameInInputsAndOutputs(t *testing.T) {
	const text = `
weir: 1
name: optional
inputs: {go: {type: bool, required: true}}
nodes:
  check: {type: decision, with: {expr: run.inputs.go}}
  some: {type: transform, after: check.true, with: {expr: "{'name': 'Ada', 'list': [1, 2]}"}}
  read:
    type: transform
    in:
      a: "{{ some.?value.name.orValue('none') }}"
      b: "{{ some?.value?.gone.orValue('none') }}"
      c: "{{ some.?value.list[-1].orValue(0) }}"
      d: "{{ has(some.value) ? some.value.name : 'none' }}"
      e: "{{ some?.value }}"
      f: "Hello {{ some?.value?.name.orValue('you') }}"
    with: {expr: "[inputs.a, inputs.b, inputs.c, inputs.d, has(inputs.e), inputs.f]"}
outputs:
  read: "{{ read.value }}"
  a: "{{ some.?value.name.orValue('none') }}"
  b: "{{ some?.value?.gone.orValue('none') }}"
  c: "{{ some.?value.list[-1].orValue(0) }}"
  d: "{{ has(some.value) ? some.value.name : 'none' }}"
  e: "{{ some?.value }}"
  f: "Hello {{ some?.value?.name.orValue('you') }}"
`
	w := weirkit.Open(t, weir.Options{})
	f := weirkit.Parse(t, w, text)
	for given, want := range map[bool]string{
		true:  "[Ada none 2 Ada true Hello Ada]",
		false: "[none none 0 none false Hello you]",
	} {
		run, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"go": given}})
		if err != nil {
			t.Fatal(err)
		}
		r := weirkit.Wait(t, run)
		out := r.Outputs.Map()
		_, has := out["e"]
		got := fmt.Sprint([]any{out["a"], out["b"], out["c"], out["d"], has, out["f"]})
		if fmt.Sprint(out["read"]) != want || got != want {
			t.Errorf("go %v: %s: in inputs %v, in outputs %v; want %s (%v)", given, r.Status, out["read"], got, want, r.Error)
		}
		if why := r.Absent.Map()["e"]; !given && !strings.Contains(fmt.Sprint(why), "the optional value some?.value has no value") {
			t.Errorf("the output e is absent since %v", why)
		}
	}
}

// A required port cannot be left without a value.
func TestAnOptionalValueForARequiredPortIsAnError(t *testing.T) {
	w := weirkit.Open(t, weir.Options{})
	r := weirkit.Wait(t, weirkit.StartText(t, w, `
weir: 1
name: required
nodes:
  each:
    type: forEach
    in: {items: "{{ state.?items }}"}
    with: {body: {nodes: {a: {type: template, with: {text: x}}}, outputs: {result: "{{ a.text }}"}}}
`))
	if r.Error == nil || r.Error.Code != "unresolved_reference" || !strings.Contains(r.Error.Message, "the optional value has no value") {
		t.Errorf("%s: %v", r.Status, r.Error)
	}
}
