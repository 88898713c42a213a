package main

import (
	"strings"

	"github.com/weir-run/weir"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// requiredTools are the tools that a flow, or one that it uses, may offer a model, as far as the file says.
type requiredTools struct {
	all   bool // whatever is offered
	names map[string]bool
}

// requiredToolsOf reads a flow; nil needs nothing.
func requiredToolsOf(f *weir.Flow) requiredTools {
	n := requiredTools{names: make(map[string]bool)}
	if f == nil {
		return n
	}
	for _, used := range f.Dependencies() {
		names, all := weir.ToolsNamed(used)
		n.all = n.all || all
		for _, name := range names {
			if strings.HasPrefix(name, "mcp:") || strings.HasPrefix(name, "mcp__") {
				n.names[name] = true
			}
		}
	}
	return n
}

// tool reports whether a tool of a server is needed.
func (n requiredTools) tool(server, name string) bool {
	return n.all || n.names[mcptool.FlowName(server, name)] || n.names[mcptool.ModelName(server, name)]
}

// server reports whether any tool of a server is.
func (n requiredTools) server(name string) bool {
	if n.all {
		return true
	}
	for need := range n.names {
		if strings.HasPrefix(need, mcptool.FlowName(name, "")) || strings.HasPrefix(need, mcptool.ModelName(name, "")) {
			return true
		}
	}
	return false
}
