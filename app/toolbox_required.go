package app

import (
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// requiredTools are the tools that a flow, or a flow that it uses, may offer to a model, as
// far as this can be read from the files.
type requiredTools struct {
	all   bool // any tool that is offered
	names map[string]bool
}

// requiredToolsOf returns the required tools of flows; nil needs none.
func requiredToolsOf(flows ...*weir.Flow) requiredTools {
	n := requiredTools{names: make(map[string]bool)}
	for _, f := range flows {
		if f == nil {
			continue
		}
		for _, used := range f.Dependencies() {
			n.add(runner.ToolNames(&used.Graph))
		}
	}
	return n
}

func (n *requiredTools) add(names []string, all bool) {
	n.all = n.all || all
	for _, name := range names {
		if strings.HasPrefix(name, "mcp:") || strings.HasPrefix(name, "mcp__") {
			n.names[name] = true
		}
	}
}

// tool reports whether a tool of a server is required.
func (n requiredTools) tool(server, name string) bool {
	return n.all || n.names[mcptool.FlowName(server, name)] || n.names[mcptool.ModelName(server, name)]
}

// server reports whether any tool of a server is required.
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
