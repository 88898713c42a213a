package runner

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
)

// ToolNames returns the names of tools that the nodes of a graph say a model may
// call, in alphabetical order; all says that one may call whatever is offered.
// Names that come by a value as the flow runs are not among them, nor are those
// of flows that the graph's nodes run.
func ToolNames(g *flow.Graph) (names []string, all bool) {
	n := toolNameSet{}
	n.graph(g)
	slices.Sort(n.names)
	return slices.Compact(n.names), n.all
}

type toolNameSet struct {
	names []string
	all   bool
}

func (n *toolNameSet) graph(g *flow.Graph) {
	for _, x := range g.Nodes {
		n.node(x)
	}
}

func (n *toolNameSet) node(x *flow.Node) {
	list := x.With["tools"]
	if _, chosen := list.([]any); (x.Type == "tools" || x.Type == "semanticTools") && !chosen {
		n.all = true
	}
	n.value(list)
	switch x.Type {
	case "semanticTools":
		n.value(x.With["always"])
	case "tool":
		n.value(x.With["tool"])
	case "remember", "extractMemories":
		n.value("memoryWrite")
	case "recall":
		n.value("memoryRead")
	case "forget":
		n.value("memoryForget")
	case "identifyUser":
		n.value("identifyUser")
	}
	for _, b := range x.In {
		if b.Name == "tools" {
			n.value(b.Value)
		}
	}
	for _, queue := range []string{"pre", "todo", "post"} {
		n.entries(x.With[queue])
	}
	if x.Body != nil {
		n.graph(x.Body)
	}
}

// entries collects the names in the entries of an agent's queue.
func (n *toolNameSet) entries(queue any) {
	list, _ := queue.([]any)
	for _, e := range list {
		if o, ok := e.(map[string]any); ok {
			if name, ok := o["tool"].(string); ok {
				n.value(name)
			}
		}
	}
}

// value collects the names that stand there.
func (n *toolNameSet) value(v any) {
	switch t := v.(type) {
	case string:
		if !strings.Contains(t, "{{") && t != "auto" {
			n.names = append(n.names, t)
		}
	case []any:
		for _, e := range t {
			n.value(e)
		}
	}
}

// childFlows adds what the flows name that the node runs, or one in it, and those that
// they run.
func (n *toolNameSet) childFlows(x *flow.Node) {
	if x.Uses != nil {
		for _, f := range x.Uses.Dependencies() {
			n.graph(&f.Graph)
		}
	}
	for _, run := range x.Runs {
		for _, f := range run.Dependencies() {
			n.graph(&f.Graph)
		}
	}
	if x.Body != nil {
		for _, inner := range x.Body.Nodes {
			n.childFlows(inner)
		}
	}
}

// NodeTools are the tools that a node, or its branches, name.
type NodeTools struct {
	Node  *flow.Node
	Names []string
}

// NamedTools lists the nodes of a graph, and of the bodies in it, that name tools, with the
// names. Names that come by a value as the flow runs are not among them.
func NamedTools(g *flow.Graph) (out []NodeTools) {
	for _, n := range g.Nodes {
		own := *n
		own.Body = nil
		set := toolNameSet{}
		set.node(&own)
		slices.Sort(set.names)
		if names := slices.Compact(set.names); len(names) > 0 {
			out = append(out, NodeTools{n, names})
		}
		if n.Body != nil {
			out = append(out, NamedTools(n.Body)...)
		}
	}
	return out
}

// BranchTools lists the nodes of a graph with branches that may only read, and the names
// of tools in them and in the flows that they run. Names that come by a value as the flow runs are
// not among them.
func BranchTools(g *flow.Graph) (out []NodeTools) {
	for _, n := range g.Nodes {
		if n.Body == nil {
			continue
		}
		if n.Branches == nil || n.With[flow.AllowEffects] == true {
			out = append(out, BranchTools(n.Body)...)
			continue
		}
		set := toolNameSet{}
		set.graph(n.Body)
		set.childFlows(n)
		slices.Sort(set.names)
		out = append(out, NodeTools{n, slices.Compact(set.names)})
	}
	return out
}
