package weir

import "github.com/weir-run/weir/runner"

// pinDependencies adds to a program's closure the tools that its flow names, or those of it
// that this process offers, and what the flows name that it uses. Tools that are
// named by a value that comes as it runs are not known yet, and not pinned.
func (w *Weir) pinDependencies(p *runner.Program) {
	for _, f := range p.Flow.Dependencies() {
		names, all := ToolsNamed(f)
		if all {
			names = w.tools.Names()
		}
		for _, name := range names {
			if t := w.tools.Get(name); t != nil {
				p.Pinned[runner.ToolPin(name)] = t.Hash()[:32]
			}
		}
	}
}

// ToolsNamed are the names of tools that a flow says a model may call, in
// alphabetical order; all says that it may call whatever is offered. Names that
// come by a value as the flow runs are not among them.
func ToolsNamed(f *Flow) (names []string, all bool) { return runner.ToolNames(&f.Graph) }
