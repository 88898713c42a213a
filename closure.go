package weir

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
)

// pin adds to a program's closure the tools that its flow names, or those of it
// that this process offers, and what the flows name that it uses. Tools that are
// named by a value that comes as it runs are not known yet, and not pinned.
func (w *Weir) pin(p *runner.Program) {
	for _, f := range p.Flow.Closure() {
		names, all := ToolsNamed(f)
		if all {
			names = w.tools.Names()
		}
		for _, name := range names {
			if t := w.tools.Get(name); t != nil {
				p.Closure[runner.ToolPin(name)] = t.Hash()[:32]
			}
		}
	}
}

// ToolsNamed are the names of tools that a flow says a model may call, in
// alphabetical order; all says that it may call whatever is offered. Names that
// come by a value as the flow runs are not among them.
func ToolsNamed(f *Flow) (names []string, all bool) {
	n := named{}
	n.graph(&f.Graph)
	slices.Sort(n.names)
	return slices.Compact(n.names), n.all
}

type named struct {
	names []string
	all   bool
}

func (n *named) graph(g *flow.Graph) {
	for _, x := range g.Nodes {
		list := x.With["tools"]
		if _, chosen := list.([]any); x.Type == "tools" && !chosen {
			n.all = true
		}
		n.value(list)
		for _, b := range x.In {
			if b.Name == "tools" {
				n.value(b.Value)
			}
		}
		if x.Body != nil {
			n.graph(x.Body)
		}
	}
}

// value collects the names that stand there.
func (n *named) value(v any) {
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
