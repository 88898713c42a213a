package flow_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
)

const child = `
weir: 1
name: child
inputs: {word: {type: text, required: true}}
nodes:
  say: {type: template, in: {w: "{{ run.inputs.word }}"}, with: {text: "{{ inputs.w }}!"}}
  same: {type: transform, in: {w: "{{ run.inputs.word }}"}, with: {expr: inputs.w}}
outputs: {said: "{{ say.text }}", both: "{{ say.text }} and {{ say.text }}", any: "{{ same.value }}", four: 4}
`

const middle = `
weir: 1
name: middle
inputs: {word: {type: text, required: true}}
nodes:
  low: {type: flow, in: {word: "{{ run.inputs.word }}"}, with: {flow: ../child.yaml}}
outputs: {said: "{{ low.said }}"}
`

const parent = `
weir: 1
name: parent
nodes:
  one: {type: workflow, in: {word: a}, with: {flow: ./child.yaml}}
  two: {type: flow, in: {word: "{{ one.said }}"}, with: {flow: deep/middle.yaml}}
  again: {type: flow, with: {flow: ./parent.yaml}}
outputs: {said: "{{ two.said }}"}
`

func sharedState() flow.MemFiles {
	return flow.MemFiles{"at/child.yaml": child, "at/deep/middle.yaml": middle, "at/parent.yaml": parent}
}

func parseUsing(tb testing.TB, s flow.Source, name, data string) *flow.Flow {
	tb.Helper()
	f, err := s.Parse(name, []byte(data), testCatalogue())
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func TestAFlowPinsTheFlowsItUses(t *testing.T) {
	f := parseUsing(t, flow.Source{Files: sharedState()}, "at/parent.yaml", parent)
	var uses []string
	for _, u := range f.Uses {
		uses = append(uses, u.Ref+" "+u.Flow.Name+" "+filepath.ToSlash(u.Flow.File))
	}
	if got, want := strings.Join(uses, ", "), "./child.yaml child at/child.yaml, deep/middle.yaml middle at/deep/middle.yaml"; got != want {
		t.Errorf("it uses %s, expected %s", got, want)
	}
	if f.Node("again").With["flow"] != flow.Self || f.UsedFlow(flow.Self) != f || f.Node("again").Uses != f {
		t.Errorf("its own path is %v, expected %s", f.Node("again").With["flow"], flow.Self)
	}
	if f.UsedFlow("deep/middle.yaml").UsedFlow("../child.yaml") != f.UsedFlow("./child.yaml") {
		t.Error("one file was read twice")
	}
	if f.UsedFlow("child.yaml") != nil {
		t.Error("a reference that no node has stands for a flow")
	}
	var names []string
	for _, c := range f.Dependencies() {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "child middle parent" {
		t.Errorf("the closure is %s", got)
	}
}

func TestTheFingerprintCoversWhatAFlowUses(t *testing.T) {
	files := sharedState()
	before := parseUsing(t, flow.Source{Files: files}, "at/parent.yaml", parent)
	files["at/child.yaml"] = "# a comment\n" + child
	if same := parseUsing(t, flow.Source{Files: files}, "at/parent.yaml", parent); same.Fingerprint() != before.Fingerprint() {
		t.Error("a comment in a used flow changes the fingerprint")
	}
	files["at/child.yaml"] = strings.Replace(child, "!", "?", 1)
	after := parseUsing(t, flow.Source{Files: files}, "at/parent.yaml", parent)
	if after.Fingerprint() == before.Fingerprint() || after.UsedFlow("deep/middle.yaml").Fingerprint() == before.UsedFlow("deep/middle.yaml").Fingerprint() {
		t.Error("a change two flows down leaves the fingerprint as it is")
	}
}

func TestNormalFormResolvesPinnedFlowsByFingerprint(t *testing.T) {
	f := parseUsing(t, flow.Source{Files: sharedState()}, "at/parent.yaml", parent)
	kept := map[string]string{}
	for _, c := range f.Dependencies() {
		kept[c.Fingerprint()] = normal(t, c)
	}
	store := flow.Source{ByFingerprint: func(sum string) ([]byte, error) {
		text, ok := kept[sum]
		if !ok {
			return nil, errors.New("nothing is kept under it")
		}
		return []byte(text), nil
	}}
	back := parseUsing(t, store, "parent", normal(t, f))
	if back.Fingerprint() != f.Fingerprint() || normal(t, back) != normal(t, f) {
		t.Errorf("came back as\n%s\nfrom\n%s", normal(t, back), normal(t, f))
	}
	if len(back.Dependencies()) != 3 || back.UsedFlow("./child.yaml") != back.UsedFlow("deep/middle.yaml").UsedFlow("../child.yaml") {
		t.Error("the closure is not the same, or one flow was read twice")
	}
	built, err := flow.Build(f, testCatalogue())
	if err != nil || built.Fingerprint() != f.Fingerprint() {
		t.Errorf("built again it is another flow: %v", err)
	}
	delete(kept, f.UsedFlow("./child.yaml").Fingerprint())
	_, err = store.Parse("parent", []byte(normal(t, f)), testCatalogue())
	if err == nil || !strings.Contains(err.Error(), flow.CodeUnknownFlow) || !strings.Contains(err.Error(), "nothing is kept") {
		t.Errorf("a flow that is not kept: %v", err)
	}
}

const stepping = `
weir: 1
name: stepping
nodes:
  work: {type: steps, with: {steps: [{flow: ./plain.yaml}, {}, {flow: stepping.yaml}, {flow: plain.yaml}]}}
`

func TestAFlowPinsTheFlowsThatItsSettingsNameInLists(t *testing.T) {
	files := flow.MemFiles{"plain.yaml": "weir: 1\nname: plain\nnodes: {n: {type: start}}\n", "stepping.yaml": stepping}
	f := parseUsing(t, flow.Source{Files: files}, "stepping.yaml", stepping)
	work := f.Node("work")
	if len(work.Runs) != 2 || work.Runs[0].Name != "plain" || work.Runs[1] != f {
		t.Errorf("the node may run %v", work.Runs)
	}
	if len(f.Uses) != 2 || f.UsedFlow("./plain.yaml") != f.UsedFlow("plain.yaml") || f.UsedFlow("plain.yaml") == nil {
		t.Errorf("it uses %v", f.Uses)
	}
	if !strings.Contains(normal(t, f), `{"flow": "self"}`) {
		t.Errorf("its own path is not self in\n%s", normal(t, f))
	}
	before := f.Fingerprint()
	files["plain.yaml"] = strings.Replace(files["plain.yaml"], "n:", "m:", 1)
	if after := parseUsing(t, flow.Source{Files: files}, "stepping.yaml", stepping); after.Fingerprint() == before {
		t.Error("a change of a named flow leaves the fingerprint as it is")
	}
	files["child.yaml"] = child
	_, err := flow.Source{Files: files}.Parse("bad.yaml", []byte(strings.NewReplacer("./plain", "no", "{flow: plain", "{flow: child").Replace(stepping)), testCatalogue())
	for _, want := range []string{`bad.yaml:5:45: the flow file "no.yaml" does not exist`, `bad.yaml:5:89: the flow has inputs`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q in: %v", want, err)
		}
	}
}

func TestOutputsOfAUsedFlowHaveTheTypesTheyAreReadFrom(t *testing.T) {
	f := parseUsing(t, flow.Source{}, "child.yaml", child)
	for name, want := range map[string]flow.PortType{"said": "text", "both": "text", "any": "any", "four": "number", "none": "any"} {
		if got := f.OutputType(name); got != want {
			t.Errorf("%s is %s, expected %s", name, got, want)
		}
	}
}

func TestFlowsAreGivenInGoByName(t *testing.T) {
	c := parseUsing(t, flow.Source{}, "child.yaml", child)
	text := strings.Replace(strings.Replace(parent, "./child.yaml", "shout", 1), "deep/middle.yaml", "shout", 1)
	text = strings.Replace(text, "./parent.yaml", "self", 1)
	f := parseUsing(t, flow.Source{Flows: map[string]*flow.Flow{"shout": c}}, "parent.yaml", text)
	if len(f.Uses) != 1 || f.Uses[0].Flow != c {
		t.Errorf("it uses %v", f.Uses)
	}
	_, err := flow.Parse("parent.yaml", []byte(text), testCatalogue())
	if err == nil || !strings.Contains(err.Error(), `the flow "shout" does not exist`) {
		t.Errorf("without it: %v", err)
	}
}

func TestLoadReadsUsedFlowFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range sharedState() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := flow.Load(filepath.Join(dir, "at", "parent.yaml"), testCatalogue())
	if err != nil || len(f.Dependencies()) != 3 {
		t.Fatalf("%v", err)
	}
	if err := os.Rename(filepath.Join(dir, "at", "child.yaml"), filepath.Join(dir, "at", "chidl.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err = flow.Load(filepath.Join(dir, "at", "parent.yaml"), testCatalogue())
	if err == nil || !strings.Contains(err.Error(), "did you mean ./chidl.yaml?") || !strings.Contains(err.Error(), "did you mean ../chidl.yaml?") {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "at", "child.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = flow.Load(filepath.Join(dir, "at", "parent.yaml"), testCatalogue())
	if err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a folder for a file: %v", err)
	}
}

// nestedFlows is n flows, each using the next.
func nestedFlows(n int) flow.MemFiles {
	files := flow.MemFiles{}
	for i := range n {
		files[fmt.Sprintf("f%d.yaml", i)] = fmt.Sprintf("weir: 1\nname: f%d\nnodes:\n  n: {type: flow, with: {flow: f%d.yaml}}\n", i, i+1)
	}
	files[fmt.Sprintf("f%d.yaml", n)] = "weir: 1\nname: last\nnodes: {n: {type: start}}\n"
	return files
}

func TestDependenciesOfAFlowAreBounded(t *testing.T) {
	files := nestedFlows(flow.MaxUses)
	parseUsing(t, flow.Source{Files: files}, "f0.yaml", files["f0.yaml"])
	files = nestedFlows(flow.MaxUses + 1)
	_, err := flow.Source{Files: files}.Parse("f0.yaml", []byte(files["f0.yaml"]), testCatalogue())
	if err == nil || !strings.Contains(err.Error(), "deeper than 16") {
		t.Errorf("one flow deeper: %v", err)
	}
	wide := func(n int) (flow.MemFiles, string) {
		files, text := flow.MemFiles{}, "weir: 1\nname: wide\nnodes:\n"
		for i := range n {
			files[fmt.Sprintf("f%d.yaml", i)] = "weir: 1\nname: leaf\nnodes: {n: {type: start}}\n"
			text += fmt.Sprintf("  n%d: {type: flow, with: {flow: f%d.yaml}}\n", i, i)
		}
		return files, text
	}
	files, text := wide(flow.MaxFlows)
	parseUsing(t, flow.Source{Files: files}, "wide.yaml", text)
	files, text = wide(flow.MaxFlows + 1)
	_, err = flow.Source{Files: files}.Parse("wide.yaml", []byte(text), testCatalogue())
	if err == nil || !strings.Contains(err.Error(), "more than 200 flows") {
		t.Errorf("one flow more: %v", err)
	}
}
