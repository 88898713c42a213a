package follow

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// agentType is the node type of sub-agents; nodes that run a flow are sub-agents too.
const agentType = "agent"

// Agents numbers the sub-agents of a session by their paths: for an agent node its path without iteration numbers,
// for a child run its path with them, nested child runs as "review>ask".
type Agents struct{ numbers map[string]int }

// NewAgents numbers paths from 1.
func NewAgents(paths []string) *Agents {
	a := &Agents{make(map[string]int, len(paths))}
	for i, path := range paths {
		a.numbers[path] = i + 1
	}
	return a
}

// The range of numbers for sub-agents that are not known from the flow: child runs in iterations, and flows that
// models called as tools. The number is derived from the path alone, so that it is the same in every process.
const firstCalled, lastCalled = 1_000, 1_000_000_000

// Number returns the number of a sub-agent.
func (a *Agents) Number(path string) int {
	if n := a.numbers[path]; n > 0 {
		return n
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(path))
	return firstCalled + int(h.Sum64()%(lastCalled-firstCalled))
}

// ChildPath returns the path of a child run from how it was started and the path of its parent run: that of the node
// that runs the flow; for a child run started by an agent, that of the call or entry and the flow. It is unique among
// the child runs and agents of the tree.
func ChildPath(above string, start *engine.RunStarted) string {
	path := start.Caller + childSeparator + start.Flow
	if i := strings.LastIndexByte(start.Node, ':'); i >= 0 && start.Caller == "" {
		path = start.Node[:i]
		if start.Node[i+1:] != engine.ChildName+"#1" { // an agent's child runs are not the only ones of the first attempt
			path = start.Node
		}
	}
	if above == "" {
		return path
	}
	return above + childSeparator + path
}

// AgentsOf returns the sub-agents of a flow and of the flows that it uses, appended to the earlier ones: nodes of the
// type agent, and nodes outside iterations that run a flow, in the order of the flow. A known one keeps its position.
func AgentsOf(f *flow.Flow, before []string) []string {
	w := agentCollector{paths: slices.Clone(before)}
	w.graph("", &f.Graph, false)
	return w.paths
}

// agentCollector collects the sub-agents of flows.
type agentCollector struct {
	paths []string
	in    []*flow.Flow // enclosing flows, so that recursion ends
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

// childSeparator separates the path of a node and a path in its child run.
const childSeparator = ">"

// splitIteration returns the iteration of a path, with the "/" at its end, "" at the root; composite is the path of
// the node that iterates.
func splitIteration(path string) (prefix, composite string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", ""
	}
	prefix = path[:i+1]
	return prefix, path[:max(strings.LastIndexByte(prefix, '#'), 0)]
}

// compositeOf returns the path of the composite that an iteration belongs to.
func compositeOf(iteration string) string {
	return iteration[:max(strings.LastIndexByte(iteration, '#'), 0)]
}

// lastPart returns the path's last part.
func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
