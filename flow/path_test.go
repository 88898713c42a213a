package flow_test

import (
	"testing"

	"github.com/weir-run/weir/flow"
)

func TestANodeIsFoundByThePathOfARun(t *testing.T) {
	t.Parallel()
	draft := &flow.Node{ID: "draft"}
	inner := &flow.Graph{Nodes: []*flow.Node{draft}}
	refine := &flow.Node{ID: "refine", Body: inner}
	root := &flow.Graph{Nodes: []*flow.Node{refine, {ID: "last"}}}
	for path, want := range map[string]*flow.Node{
		"refine": refine, "refine#2": refine, "refine#2/draft": draft, "refine/draft": draft, "refine/last": nil, "last/draft": nil, "": nil, "last": root.Nodes[1],
	} {
		n, g := root.NodeAt(path)
		if n != want {
			t.Errorf("at %q is %v, want %v", path, n, want)
		}
		if in := map[*flow.Node]*flow.Graph{nil: nil, draft: inner, refine: root, root.Nodes[1]: root}[want]; g != in {
			t.Errorf("the graph of %q is not the one that has the node", path)
		}
	}
}

func TestAPathLosesTheNumbersOfIterations(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"a": "a", "a/b": "a/b", "a#2/b": "a/b", "a#2/b#11/c": "a/b/c", "": "", "a#0": "a"} {
		if got := flow.WithoutIterations(path); got != want {
			t.Errorf("%q becomes %q, want %q", path, got, want)
		}
	}
}
