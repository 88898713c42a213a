package graph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/graph"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

const loop = `
weir: 1
name: 'a "loop" & more'
nodes:
  start: {type: transform, with: {expr: "1"}}
  check: {type: decision, after: start, with: {expr: "true"}}
  end:
    type: loop
    description: says <hello>
    after: check.true
    in: {n: "{{ start.value }}"}
    with:
      max: 2
      body:
        nodes:
          first: {type: transform, in: {n: "{{ inputs.n }}"}, with: {expr: inputs.n}}
          second: {type: transform, in: {n: "{{ first.value }}"}, with: {expr: inputs.n}}
        outputs: {n: "{{ second.value }}"}
  talk: {type: llmRequest, after: check.false, in: {message: hi}}
  more: {type: llmRequest, in: {context: "{{ talk.context }}", message: ho}}
`

func catalogue(t *testing.T) *node.Catalogue {
	t.Helper()
	c, err := node.NewCatalogue(builtin.Types()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t *testing.T, text string) *flow.Flow {
	t.Helper()
	f, err := flow.Parse("test.yaml", []byte(text), catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func want(t *testing.T, got []byte, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(string(got), p) {
			t.Errorf("the drawing lacks %q:\n%s", p, got)
		}
	}
}

func TestMermaidHasBranchesContextsAndBodies(t *testing.T) {
	t.Parallel()
	want(t, graph.Mermaid(parse(t, loop)), "flowchart TD\n", `{"check<br/>decision"}`, `-.->|"true"| `, " ==> ",
		`["end · loop"]`, `_0["first<br/>transform"]`, "_0 --> ", "  end\n")
}

func TestDOTHasClustersForBodies(t *testing.T) {
	t.Parallel()
	want(t, graph.DOT(parse(t, loop)), `digraph "a \"loop\" & more" {`, "subgraph cluster_", `[style=dashed, label="false"]`,
		`label="first\ntransform"`)
}

func TestSVGIsWellFormedAndTheSameEveryTime(t *testing.T) {
	t.Parallel()
	f := parse(t, loop)
	svg := graph.SVG(f, catalogue(t))
	wellFormed(t, svg)
	want(t, svg, "<title>a &#34;loop&#34; &amp; more</title>", "says &lt;hello&gt;", `class="body"`, `class="line context"`, ">first</text>")
	if !bytes.Equal(svg, graph.SVG(f, catalogue(t))) {
		t.Error("two drawings of one flow differ")
	}
}

func TestANodeThatRunsAFlowIsABoxThatNamesIt(t *testing.T) {
	t.Parallel()
	files := flow.MemFiles{"child.yaml": "weir: 1\nname: child\nnodes: {a: {type: start}}\n"}
	text := "weir: 1\nname: parent\nnodes: {do: {type: flow, with: {flow: ./child.yaml}}}\n"
	f, err := flow.Source{Files: files}.Parse("parent.yaml", []byte(text), catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	want(t, graph.Mermaid(f), `n0[["do<br/>flow ./child.yaml"]]`)
	want(t, graph.DOT(f), `label="do\nflow ./child.yaml", peripheries=2`)
	svg := graph.SVG(f, catalogue(t))
	wellFormed(t, svg)
	want(t, svg, ">flow ./child.yaml</text>", `rx="5" fill="none"`)
}

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

// rect is a node's box, read back from the drawing.
type rect struct{ x, y, w, h float64 }

func TestBoxesOfRandomFlowsDoNotOverlapAndLinesLeadDown(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(40)
		var b strings.Builder
		b.WriteString("weir: 1\nname: random\nnodes:\n")
		for i := range n {
			fmt.Fprintf(&b, "  node%d:\n    type: transform\n    with: {expr: \"1\"}\n", i)
			after := map[string]bool{}
			for range r.IntN(4) {
				if i > 0 {
					after[fmt.Sprintf("node%d", r.IntN(i))] = true
				}
			}
			if len(after) > 0 {
				var list []string
				for a := range after {
					list = append(list, a)
				}
				fmt.Fprintf(&b, "    after: [%s]\n", strings.Join(list, ", "))
			}
		}
		svg := graph.SVG(parse(t, b.String()), nil)
		wellFormed(t, svg)
		checkBoxes(t, seed, n, svg)
	}
}

func checkBoxes(t *testing.T, seed uint64, n int, svg []byte) {
	t.Helper()
	var boxes []rect
	for line := range strings.Lines(string(svg)) {
		if _, rest, ok := strings.Cut(line, `<rect class="node" `); ok {
			var b rect
			if _, err := fmt.Sscanf(rest, `x="%f" y="%f" width="%f" height="%f"`, &b.x, &b.y, &b.w, &b.h); err != nil {
				t.Fatal(err)
			}
			boxes = append(boxes, b)
		}
		if _, d, ok := strings.Cut(line, ` d="M`); ok && strings.HasPrefix(line, `<path class="line`) {
			checkLine(t, seed, d)
		}
	}
	if len(boxes) != n {
		t.Fatalf("seed %d: %d boxes for %d nodes", seed, len(boxes), n)
	}
	for i, a := range boxes {
		for _, b := range boxes[i+1:] {
			if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
				t.Errorf("seed %d: boxes %v and %v overlap", seed, a, b)
			}
		}
	}
}

func checkLine(t *testing.T, seed uint64, path string) {
	t.Helper()
	var x, y, last float64
	if _, err := fmt.Sscanf(path, "%f %f", &x, &y); err != nil {
		t.Fatal(err)
	}
	ends := strings.Fields(strings.TrimSuffix(strings.TrimSpace(path), `"/>`))
	if _, err := fmt.Sscanf(ends[len(ends)-1], "%f", &last); err != nil {
		t.Fatal(err)
	}
	if last <= y {
		t.Errorf("seed %d: a line leads up from %v to %v", seed, y, last)
	}
}

func TestBodiesAreFoldedUntilTheyAreOpened(t *testing.T) {
	t.Parallel()
	f := parse(t, loop)
	find := func(l *graph.Layout) *graph.LayoutNode {
		for i := range l.Nodes {
			if l.Nodes[i].ID == "end" {
				return &l.Nodes[i]
			}
		}
		t.Fatal("the loop is not drawn")
		return nil
	}
	whole, folded, opened := find(graph.LayoutOf(f, nil)), find(graph.FoldedLayoutOf(f, nil, nil)), find(graph.FoldedLayoutOf(f, nil, []string{"end"}))
	if folded.Body != nil || folded.Folded != 2 || folded.Height >= whole.Height {
		t.Errorf("folded: %+v", folded)
	}
	if opened.Body == nil || opened.Folded != 0 || opened.Height != whole.Height || len(opened.Body.Nodes) != 2 {
		t.Errorf("opened: %+v", opened)
	}
}
