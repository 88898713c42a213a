package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
)

// printChildren draws the children of a run, each below the one it belongs to.
func (p *cli) printChildren(children []app.ChildRun) {
	if len(children) == 0 {
		return
	}
	fmt.Fprintln(p.out)
	t := p.table("CHILD NODE FLOW STATUS TIME TOKENS COST NOTE", "TIME", "FLOW", "TOKENS", "COST")
	var rows func(list []app.ChildRun, depth int)
	rows = func(list []app.ChildRun, depth int) {
		for i := range list {
			b := &list[i]
			node, cost := b.Node, "-"
			if node == "" {
				node = "(tool)"
			}
			if b.Usage.Cost > 0 {
				cost = dollars(b.Usage.Cost)
			}
			t.row(strings.Repeat("  ", depth)+b.Run, node, app.Printable(b.Flow), p.statusOr(b.Row.Head.Status, app.IsInterrupted(&b.Row)),
				took(time.Duration(b.Micros)*time.Microsecond), tokens(b.Row.Head.Usage), cost, runNote(&b.Row))
			rows(b.Children, depth+1)
		}
	}
	rows(children, 0)
	t.print()
}
