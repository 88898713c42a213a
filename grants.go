package weir

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
)

// Keep stores a flow, with the flows that it uses, so that FlowByFingerprint finds them. It
// executes nothing.
func (w *Weir) Keep(ctx context.Context, f *Flow) error {
	_, err := w.program(ctx, f)
	return err
}

// UsesOf lists the tools, hosts, secrets and other resources outside the run that the nodes of
// a flow name in the file, sorted. It does not include the flows that the flow runs, nor
// resources that a value names during a run; Options.Grants checks those.
func (w *Weir) UsesOf(f *Flow) []node.Use {
	n := newRequirements()
	n.addGraph(&f.Graph)
	n.addContext(f)
	var out []node.Use
	for _, name := range slices.Sorted(maps.Keys(n.providers)) {
		out = append(out, node.Use{Kind: node.UseProvider, Name: name})
	}
	for _, name := range slices.Sorted(maps.Keys(n.secrets)) {
		out = append(out, node.Use{Kind: node.UseSecret, Name: name})
	}
	names, all := runner.ToolNames(&f.Graph)
	if all {
		out = append(out, node.Use{Kind: node.UseTool, Name: "*"})
	}
	for _, name := range names {
		if t := w.tools.Get(name); t != nil && t.Alias != "" {
			name = t.Alias
		}
		out = append(out, node.Use{Kind: node.UseTool, Name: name})
	}
	return slices.Compact(appendUses(out, &f.Graph))
}

// appendUses appends the hosts, executors and files that the nodes of a graph name.
func appendUses(out []node.Use, g *flow.Graph) []node.Use {
	text := func(n *flow.Node, key string) string {
		s, _ := n.With[key].(string)
		return s
	}
	for _, n := range g.Nodes {
		switch n.Type {
		case "httpRequest":
			if u, err := url.Parse(text(n, "url")); err == nil && u.Host != "" && !strings.Contains(u.Host, "{") {
				out = append(out, node.Use{Kind: node.UseHost, Name: u.Host})
			}
		case "readFile":
			out = append(out, node.Use{Kind: node.UseFile, Name: text(n, "path")})
		case "action", "decision":
			executor := text(n, "executor")
			if executor == "" {
				executor = text(n, "language")
			}
			if executor == "" {
				executor = "python"
			}
			if n.With["expr"] == nil {
				out = append(out, node.Use{Kind: node.UseExecutor, Name: executor})
			}
		}
		if n.Body != nil {
			out = appendUses(out, n.Body)
		}
	}
	return out
}
