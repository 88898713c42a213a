package follow

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// agentType is the node type whose nodes are sub-agents, beside those that run a
// flow.
const agentType = "agent"

// Agents number the sub-agents of a session by their paths: that of an agent node
// without the numbers of iterations, that of a child run with them, and down into
// child runs, as "review>ask".
type Agents struct{ numbers map[string]int }

// NewAgents gives paths the numbers 1, 2 and so on.
func NewAgents(paths []string) *Agents {
	a := &Agents{make(map[string]int, len(paths))}
	for i, path := range paths {
		a.numbers[path] = i + 1
	}
	return a
}

// The numbers of sub-agents that are not known from the flow: child runs in
// iterations, and flows that models called as tools. They follow from the path and
// nothing else, so that every process finds the same.
const firstCalled, lastCalled = 1_000, 1_000_000_000

// Number is the number of a sub-agent.
func (a *Agents) Number(path string) int {
	if n := a.numbers[path]; n > 0 {
		return n
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(path))
	return firstCalled + int(h.Sum64()%(lastCalled-firstCalled))
}

// ChildPath is the path of a child run, by how it started, of a run with the path
// above: that of the node that runs the flow; where an agent began it, that of its
// call or entry and the flow. No other child run of the tree has it, and no agent.
func ChildPath(above string, start *engine.RunStarted) string {
	path := start.Caller + childSeparator + start.Flow
	if i := strings.LastIndexByte(start.Node, ':'); i >= 0 && start.Caller == "" {
		path = start.Node[:i]
		if start.Node[i+1:] != engine.ChildName+"#1" { // not the first attempt's only child: an agent's are not
			path = start.Node
		}
	}
	if above == "" {
		return path
	}
	return above + childSeparator + path
}

// AgentsOf are the sub-agents of a flow and of the flows that it uses, after those
// that were there before: nodes of the type agent, and those that run a flow and are
// in no iteration, in the order of the flow. One that is there keeps its place.
func AgentsOf(f *flow.Flow, before []string) []string {
	w := agentCollector{paths: slices.Clone(before)}
	w.graph("", &f.Graph, false)
	return w.paths
}

// agentCollector gathers the sub-agents of flows.
type agentCollector struct {
	paths []string
	in    []*flow.Flow // those around, so that one that uses itself ends
}

func (w *agentCollector) graph(above string, g *flow.Graph, iterated bool) {
	for _, n := range g.Nodes {
		path := above + n.ID
		runs := n.Uses != nil && !iterated
		if (n.Type == agentType || runs) && !slices.Contains(w.paths, path) {
			w.paths = append(w.paths, path)
		}
		if n.Body != nil {
			w.graph(path+"/", n.Body, true)
		}
		if runs && !slices.Contains(w.in, n.Uses) {
			w.in = append(w.in, n.Uses)
			w.graph(path+childSeparator, &n.Uses.Graph, false)
			w.in = w.in[:len(w.in)-1]
		}
	}
}

// childSeparator stands between the path of a node and a path in the run that it began.
const childSeparator = ">"

// withoutIterations is a path without the numbers of iterations.
func withoutIterations(path string) string {
	if !strings.Contains(path, "#") {
		return path
	}
	var b strings.Builder
	for i, part := range strings.Split(path, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		id, _, _ := strings.Cut(part, "#")
		b.WriteString(id)
	}
	return b.String()
}

// findNode is the node of a flow at a path, and the graph that it is in; nil
// where the flow has none there.
func findNode(f *flow.Flow, path string) (*flow.Node, *flow.Graph) {
	g := &f.Graph
	for {
		id, rest, inner := strings.Cut(path, "/")
		id, _, _ = strings.Cut(id, "#")
		n := g.Node(id)
		if n == nil || !inner {
			return n, g
		}
		if g = n.Body; g == nil {
			return nil, nil
		}
		path = rest
	}
}

// splitIteration is the iteration that a path is in, with the "/" at its end, "" at the
// root; composite is the path of the node whose iteration that is.
func splitIteration(path string) (prefix, composite string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", ""
	}
	prefix = path[:i+1]
	return prefix, path[:max(strings.LastIndexByte(prefix, '#'), 0)]
}

// lastPart is the path's last part.
func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
