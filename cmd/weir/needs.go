package main

import (
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flow"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// needs are the tools that a flow may offer a model, as far as the file says.
type needs struct {
	all   bool // whatever is offered
	names map[string]bool
}

// needsOf reads a flow; nil needs nothing.
func needsOf(f *weir.Flow) needs {
	n := needs{names: make(map[string]bool)}
	if f != nil {
		n.graph(&f.Graph)
	}
	return n
}

func (n *needs) graph(g *flow.Graph) {
	for _, x := range g.Nodes {
		list := x.With["tools"]
		if _, chosen := list.([]any); x.Type == "tools" && !chosen {
			n.all = true
		}
		n.named(list)
		for _, b := range x.In {
			if b.Name == "tools" {
				n.named(b.Value)
			}
		}
		if x.Body != nil {
			n.graph(x.Body)
		}
	}
}

// named collects the names of tools of servers.
func (n *needs) named(v any) {
	switch t := v.(type) {
	case string:
		if strings.HasPrefix(t, "mcp:") || strings.HasPrefix(t, "mcp__") {
			n.names[t] = true
		}
	case []any:
		for _, e := range t {
			n.named(e)
		}
	}
}

// tool reports whether a tool of a server is needed.
func (n needs) tool(server, name string) bool {
	return n.all || n.names[mcptool.FlowName(server, name)] || n.names[mcptool.WireName(server, name)]
}

// server reports whether any tool of a server is.
func (n needs) server(name string) bool {
	if n.all {
		return true
	}
	for need := range n.names {
		if strings.HasPrefix(need, mcptool.FlowName(name, "")) || strings.HasPrefix(need, mcptool.WireName(name, "")) {
			return true
		}
	}
	return false
}
