package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"pgregory.net/rapid"
)

// randomFlow is a flow that is easy to change: nodes that each read some before them,
// inputs of the run and, where they are alone in it, the conversation.
type randomFlow struct {
	inputs map[string]string
	nodes  []randomNode
}

type randomNode struct {
	id, text string
	kind     string // template, ask, branch, model, loop
	from     []string
	input    string // of the run, "" for none
}

// text returns the sketch as a flow file.
func (s *randomFlow) text() string {
	var b strings.Builder
	b.WriteString("weir: 1\nname: sketch\ncontext: {model: p/m, budget: {window: 100000}}\ninputs:\n")
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&b, "  %s: {type: text, default: %s}\n", name, s.inputs[name])
	}
	b.WriteString("nodes:\n")
	last := "" // in the conversation
	for i, n := range s.nodes {
		fmt.Fprintf(&b, "  %s:\n", n.id)
		in := "x: start"
		text := "{{ inputs.x }} " + n.text
		for j, from := range n.from {
			in += fmt.Sprintf(", x%d: \"{{ %s }}\"", j, s.port(from))
			text += fmt.Sprintf(" <{{ inputs.x%d }}>", j)
		}
		if n.input != "" {
			text += " {{ run.inputs." + n.input + " }}"
		}
		switch n.kind {
		case "model":
			after := ""
			if last != "" {
				after = ", after: " + last
			}
			said := n.text
			for _, from := range n.from {
				said += " {{ " + s.port(from) + " }}"
			}
			if n.input != "" {
				said += " {{ run.inputs." + n.input + " }}"
			}
			fmt.Fprintf(&b, "    {type: llmRequest, in: {message: %q}%s}\n", said, after)
			last = n.id
		case "loop":
			fmt.Fprintf(&b, "    {type: loop, in: {%s}, with: {max: 2, body: {nodes: {t: {type: template, in: {%s}, with: {text: %q}}}, outputs: {text: \"{{ t.text }}\"}}}}\n",
				in, inner(len(n.from)), text)
		default:
			fmt.Fprintf(&b, "    {type: template, in: {%s}, with: {text: %q}}\n", in, text)
		}
		_ = i
	}
	b.WriteString("outputs:\n")
	for _, n := range s.nodes {
		fmt.Fprintf(&b, "  %s: \"{{ %s }}\"\n", n.id, s.port(n.id))
	}
	return b.String()
}

func inner(n int) string {
	in := `x: "{{ inputs.x }}"`
	for j := range n {
		in += fmt.Sprintf(`, x%d: "{{ inputs.x%d }}"`, j, j)
	}
	return in
}

func (s *randomFlow) port(id string) string { return id + ".text" }

func drawNode(t *rapid.T, id string, before []string) randomNode {
	n := randomNode{
		id: id, text: rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "text"),
		kind:  rapid.SampledFrom([]string{"template", "model", "template", "loop"}).Draw(t, "kind"),
		input: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "input"),
	}
	for _, b := range before {
		if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
			n.from = append(n.from, b)
		}
	}
	return n
}

func drawFlow(t *rapid.T) *randomFlow {
	s := &randomFlow{inputs: map[string]string{"a": "one", "b": "two"}}
	var ids []string
	for i := range rapid.IntRange(2, 7).Draw(t, "nodes") {
		id := fmt.Sprint("n", i)
		s.nodes = append(s.nodes, drawNode(t, id, ids))
		ids = append(ids, id)
	}
	return s
}

// edit changes a copy of the sketch somewhere.
func (s *randomFlow) edit(t *rapid.T) *randomFlow {
	c := &randomFlow{inputs: map[string]string{"a": s.inputs["a"], "b": s.inputs["b"]}, nodes: slices.Clone(s.nodes)}
	for i := range rapid.IntRange(1, 3).Draw(t, "edits") {
		at := rapid.IntRange(0, len(c.nodes)-1).Draw(t, "at")
		switch rapid.IntRange(0, 5).Draw(t, "edit") {
		case 0:
			c.nodes[at].text += "x"
		case 1: // a new node at the end
			var ids []string
			for _, n := range c.nodes {
				ids = append(ids, n.id)
			}
			c.nodes = append(c.nodes, drawNode(t, fmt.Sprint("m", i), ids))
		case 2: // one without a reader is dropped
			id := c.nodes[at].id
			if len(c.nodes) > 2 && !slices.ContainsFunc(c.nodes, func(n randomNode) bool { return slices.Contains(n.from, id) }) {
				c.nodes = slices.Delete(c.nodes, at, at+1)
			}
		case 3:
			c.nodes[at].input = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "input")
		case 4:
			c.inputs[rapid.SampledFrom([]string{"a", "b"}).Draw(t, "default")] = "three"
		case 5:
			c.nodes[at].from = slices.Clone(c.nodes[at].from[:len(c.nodes[at].from)/2])
		}
	}
	return c
}

// A fork under a changed flow comes to what a fresh run of that flow comes to,
// whatever was changed, and does no node again that it says is reused.
func TestForkUnderChangedFlowEqualsFreshRun(t *testing.T) {
	t.Parallel()
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"p": &weirkit.EchoModel{}}})
	reused, forks := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		s := drawFlow(t)
		was := parsed(t, w, s)
		base := runNamed(t, w, was, "base")
		if base.Status != engine.Completed {
			t.Fatalf("%+v\n%s", base, s.text())
		}
		changed := s.edit(t)
		is := parsed(t, w, changed)
		if is.Fingerprint() == was.Fingerprint() {
			return
		}
		want := runNamed(t, w, is, "fresh")
		fork, plan, err := w.Fork(ctx, base.Run, weir.ForkOptions{Flow: is})
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, s.text(), changed.text())
		}
		got, err := fork.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Status, got.Outputs) != fmt.Sprint(want.Status, want.Outputs) {
			t.Fatalf("the fork came to\n%v %v %v\na fresh run to\n%v %v\nplan %+v\n%s\n%s", got.Status, got.Outputs, got.Error, want.Status, want.Outputs, plan.Nodes, s.text(), changed.text())
		}
		forks++
		reused += checkReused(t, w, fork.ID, plan)
	})
	if reused == 0 || forks == 0 {
		t.Errorf("%d forks reused %d nodes: nothing was tested", forks, reused)
	}
}

func runNamed(t *rapid.T, w *weir.Weir, f *weir.Flow, name string) weir.Result {
	run, err := w.Start(context.Background(), f, weir.Start{ID: fmt.Sprintf("%s%x", name, rand.Uint64())})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkReused counts the nodes that a plan says are reused, none of which the fork
// may start.
func checkReused(t *rapid.T, w *weir.Weir, id string, plan *weir.ForkPlan) (reused int) {
	v, err := w.Inspect(context.Background(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	started := make(map[string]bool)
	for _, c := range v.Commits {
		for i, e := range c.Events {
			if st, ok := e.(*engine.NodeStarted); ok && c.First+int64(i) > plan.At {
				started[st.Path] = true
			}
		}
	}
	for _, n := range plan.Nodes {
		if n.Reuse == runner.NodeReused {
			reused++
			if started[n.Path] {
				t.Fatalf("%s is said to be reused and was started", n.Path)
			}
		}
	}
	return reused
}

func parsed(t *rapid.T, w *weir.Weir, s *randomFlow) *weir.Flow {
	f, err := w.Parse("sketch", []byte(s.text()))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.text())
	}
	return f
}
