package main

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// tellFork lists what a fork reuses and what runs.
func (p *program) tellFork(out io.Writer, plan *weir.ForkPlan) {
	st := p.styleOf(out)
	fmt.Fprintf(out, "%s\n", st.bold.Render(fmt.Sprintf("a fork of run %s, with its past up to event %d of %d", plan.Run, plan.At, plan.Events)))
	if plan.Asked != 0 {
		fmt.Fprintf(out, "  by event %d the run had ended or was about to: event %d is the last before that\n", plan.Asked, plan.At)
	}
	t := &table{out: out, head: st.dim}
	for _, n := range plan.Nodes {
		word, look := reuseWord(n.Reuse, st)
		t.row("  "+look.Render(word), n.Path, st.dim.Render(n.Type), n.Why)
	}
	for _, id := range plan.Removed {
		t.row("  "+st.dim.Render("removed"), id, "", "")
	}
	t.print()
	if plan.Shared != (engine.Usage{}) {
		fmt.Fprintf(out, "  the past took %s; it is not counted again\n", spentWords(plan.Shared))
	}
}

// reuseWord is what a listing says of what becomes of a node.
func reuseWord(r runner.Reuse, st style) (string, lipgloss.Style) {
	switch r {
	case runner.Reused:
		return "reused", st.good
	case runner.Continues:
		return "goes on", st.busy
	case runner.Again:
		return "runs again", st.ask
	case runner.New:
		return "new", st.ask
	case runner.Ahead:
		return "to come", st.dim
	}
	return string(r), st.dim
}

// spentWords is a usage in words.
func spentWords(u engine.Usage) string {
	parts := []string{count(u.Calls, "call"), count(u.Tokens(), "token")}
	if u.CostMicros > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", float64(u.CostMicros)/1e6))
	}
	return strings.Join(parts, ", ") + estimated(u)
}

// shownFork says of a run whose past it shares.
type shownFork struct {
	From   string `json:"from"`
	At     int64  `json:"at"`
	Shared usage  `json:"shared_usage"` // not in usage
}

func shownForkOf(r *engine.Run) *shownFork {
	f := r.Forked()
	if f == nil {
		return nil
	}
	return &shownFork{From: f.From, At: f.At, Shared: usageOf(r.Shared())}
}

// forkLine says the same for people.
func forkLine(f *engine.RunForked, shared engine.Usage) string {
	s := fmt.Sprintf("a fork of run %s, with its past up to event %d", f.From, f.At)
	if shared != (engine.Usage{}) {
		s += ", which took " + spentWords(shared)
	}
	return s
}
