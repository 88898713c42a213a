package follow

import (
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/flow"
)

// agentType is the node type whose nodes are sub-agents, beside those that run a
// flow.
const agentType = "agent"

// Agents are the sub-agents of a session, by their paths: that of a node without
// the numbers of iterations, and down into child runs, as "review>ask". The first
// has the number 1. They are safe for concurrent use.
type Agents struct {
	mu    sync.Mutex
	paths []string
}

// NewAgents are those with the numbers 1, 2 and so on.
func NewAgents(paths []string) *Agents { return &Agents{paths: slices.Clone(paths)} }

// Number is the number of a sub-agent. One that is not known gets the next.
func (a *Agents) Number(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.paths, path); i >= 0 {
		return i + 1
	}
	a.paths = append(a.paths, path)
	return len(a.paths)
}

// Paths are those of all there are by now.
func (a *Agents) Paths() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.paths)
}

// AgentsOf are the sub-agents of a flow and of the flows that it uses, after those
// that were there before: nodes of the type agent, and those that run a flow, in
// the order of the file. One that is there keeps its place.
func AgentsOf(f *flow.Flow, before []string) []string {
	w := walk{paths: slices.Clone(before)}
	w.graph("", &f.Graph)
	return w.paths
}

// walk gathers the sub-agents of flows.
type walk struct {
	paths []string
	in    []*flow.Flow // those around, so that one that uses itself ends
}

func (w *walk) graph(above string, g *flow.Graph) {
	for _, n := range g.Nodes {
		path := above + n.ID
		if (n.Type == agentType || n.Uses != nil) && !slices.Contains(w.paths, path) {
			w.paths = append(w.paths, path)
		}
		if n.Body != nil {
			w.graph(path+"/", n.Body)
		}
		if n.Uses != nil && !slices.Contains(w.in, n.Uses) {
			w.in = append(w.in, n.Uses)
			w.graph(path+below, &n.Uses.Graph)
			w.in = w.in[:len(w.in)-1]
		}
	}
}

// below stands between the path of a node and a path in the run that it began.
const below = ">"

// static is a path without the numbers of iterations.
func static(path string) string {
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

// definition is the node of a flow at a path, and the graph that it is in; nil
// where the flow has none there.
func definition(f *flow.Flow, path string) (*flow.Node, *flow.Graph) {
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

// scope is the iteration that a path is in, with the "/" at its end, "" at the
// root; composite is the path of the node whose iteration that is.
func scope(path string) (prefix, composite string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", ""
	}
	prefix = path[:i+1]
	return prefix, path[:strings.LastIndexByte(prefix, '#')]
}

// leaf is the path's last part.
func leaf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
