package cli

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// printFork lists what a fork reuses and what runs.
func (p *cli) printFork(out io.Writer, plan *weir.ForkPlan) {
	st := p.styleFor(out)
	fmt.Fprintf(out, "%s\n", st.bold.Render(fmt.Sprintf("a fork of run %s, with its past up to event %d of %d", plan.Run, plan.At, plan.Events)))
	if plan.RequestedAt != 0 {
		fmt.Fprintf(out, "  by event %d the run had ended or was about to: event %d is the last before that\n", plan.RequestedAt, plan.At)
	}
	t := &table{out: out, head: st.dim}
	for _, n := range plan.Nodes {
		word, look := reuseLabel(n.Reuse, st)
		t.row("  "+look.Render(word), n.Path, st.dim.Render(n.Type), n.Reason)
	}
	for _, id := range plan.Removed {
		t.row("  "+st.dim.Render("removed"), id, "", "")
	}
	t.print()
	if plan.Shared != (engine.Usage{}) {
		fmt.Fprintf(out, "  the past took %s; it is not counted again\n", spentText(plan.Shared))
	}
}

// reuseLabel returns what a listing says of what becomes of a node.
func reuseLabel(r runner.Reuse, st style) (string, lipgloss.Style) {
	switch r {
	case runner.NodeReused:
		return "reused", st.good
	case runner.NodeContinues:
		return "continues", st.busy
	case runner.NodeRestarts:
		return "runs again", st.ask
	case runner.NodeAdded:
		return "new", st.ask
	case runner.NodeNotReached:
		return "to come", st.dim
	}
	return string(r), st.dim
}

// spentText returns a usage in words.
func spentText(u engine.Usage) string {
	parts := []string{count(u.Calls, "call"), count(u.Tokens(), "token")}
	if u.CostMicros > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", float64(u.CostMicros)/1e6))
	}
	return strings.Join(parts, ", ") + estimated(u)
}

// forkLine says the same for people.
func forkLine(f *engine.RunForked, shared engine.Usage) string {
	s := fmt.Sprintf("a fork of run %s, with its past up to event %d", f.From, f.At)
	if shared != (engine.Usage{}) {
		s += ", which took " + spentText(shared)
	}
	return s
}
