package codegen_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/weirtest"
)

// dataOf returns the pieces of data in the trajectory of a run, each with what leads to it
// and some of its attributes.
func dataOf(t *testing.T, w *weir.Weir, run string) (out []string) {
	t.Helper()
	g, err := w.Trajectory(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[trajectory.ID]string{}
	for _, n := range g.Nodes {
		names[n.ID] = n.Name
	}
	for _, n := range g.Nodes {
		if !n.ID.Type().IsData() {
			continue
		}
		line := fmt.Sprint(n.ID.Type(), " ", n.Name)
		for _, e := range g.Edges {
			if e.Target == n.ID {
				line = fmt.Sprint(names[e.Source], " ", e.Relationship, " ", line)
			}
		}
		for _, k := range []string{"as", "size", "code"} {
			if v, ok := n.Attributes[k]; ok {
				line += fmt.Sprint(" ", k, "=", v)
			}
		}
		out = append(out, strings.TrimSpace(line))
	}
	slices.Sort(out)
	return out
}

func TestGeneratedCodeIsAScriptInTheTrajectory(t *testing.T) {
	s := newLearningCase(t)
	bare := func(code string) string {
		return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(code, "```python\n"), "```"))
	}
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
	s.setTurns(analysis, lookAtData, "```python\ncontext['amount'] = float('none')\n```", readAmount, goodVerdict)
	if r, _ := s.run(learning, invoice()); r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error)
	}
	equal(t, "the scripts", dataOf(t, s.w, "r1"), []string{
		"read generates Script read code=" + bare(readAmount),
		"read generates Script read data_analysis code=" + bare(lookAtData),
	})
	s.learnCode(learning, readAmount, map[string]any{"invoice": "7 EUR"})
	s.setTurns(goodVerdict)
	if r, _ := s.run(learning, invoice()); r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error)
	}
	equal(t, "the scripts that were learned", dataOf(t, s.w, "r3"), []string{"read has_script Script read code=" + bare(readAmount)})
}

// newFileWeir returns a Weir that runs code.
func newFileWeir(t *testing.T, o weir.Options) *weir.Weir {
	t.Helper()
	x := python.New(python.Options{})
	if err := x.Probe(t.Context()); err != nil {
		t.Skipf("code cannot be isolated here: %v", err)
	}
	o.Executors = []sandbox.Executor{x}
	w, err := weir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	return w
}

func TestCodeFilesAreInTheTrajectory(t *testing.T) {
	dir := t.TempDir()
	const text = `
weir: 1
name: files
inputs: {pdf: {type: file}, text: {type: file}, path: {type: file}, plain: {type: text}, none: {type: file}}
nodes:
  read:
    type: action
    with:
      files:
        one.txt: sub/one.txt
        pdf: "{{ run.inputs.pdf }}"
        text: "{{ run.inputs.text }}"
        path: "{{ run.inputs.path }}"
        plain: "{{ run.inputs.plain }}"
        none: "{{ has(run.inputs.none) ? run.inputs.none : null }}"
      code: context['n'] = len(files)
  wrong:
    type: decision
    after: read
    with: {files: {gone.txt: gone.txt}, code: "context['branch_decision'] = True"}
    onError: {value: "false"}
outputs: {n: "{{ read.value.n }}"}
`
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"flow.yaml": text, "sub/one.txt": "1", "two.txt": "2"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newFileWeir(t, weir.Options{})
	f, err := w.Load(filepath.Join(dir, "flow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Start(t.Context(), f, weir.Start{ID: "r", Inputs: map[string]any{
		"pdf": map[string]any{"name": "bill.pdf", "base64": base64.StdEncoding.EncodeToString([]byte("%PDF"))}, "text": map[string]any{"text": "hello"},
		"path": map[string]any{"path": "two.txt"}, "plain": "sub/one.txt",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := r.Wait(t.Context()); err != nil || res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error, err)
	}
	equal(t, "the data", dataOf(t, w, "r"), []string{
		"read has_additional_file File bill.pdf as=pdf size=4",
		"read has_additional_file File sub/one.txt as=plain", // and as one.txt: it is one file
		"read has_additional_file File text as=text size=5",
		"read has_additional_file File two.txt as=path",
		"read has_script Script read code=context['n'] = len(files)",
	})
}

func TestGeneratorToolArtifactsAreInTheTrajectory(t *testing.T) {
	look := &weir.Tool{Name: "look_up", Call: func(_ context.Context, c tool.Call) (string, error) {
		return "EUR stands behind the amount", c.Declare(trajectory.Artifact{Type: trajectory.Knowledge, Name: "EUR"})
	}}
	turns := append(append(weirtest.Says(noAnalysis), weirtest.Calls("look_up", map[string]any{"what": "EUR"})), weirtest.Says(readAmount, goodVerdict)...)
	w := newFileWeir(t, weir.Options{Tools: []*weir.Tool{look}, Replay: recorded.NewScriptedTurns(turns, nil)})
	f, err := w.Parse("flow.yaml", []byte(strings.Replace(readingFlow, "learn: false}", "learn: false, tools: [look_up]}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Start(t.Context(), f, weir.Start{ID: "r", Inputs: invoice()})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := r.Wait(t.Context()); err != nil || res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error, err)
	}
	if got := dataOf(t, w, "r"); len(got) != 2 || got[1] != "read tool_output Knowledge EUR" {
		t.Errorf("the data is %q", got)
	}
}
