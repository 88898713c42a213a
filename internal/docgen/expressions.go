package docgen

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/weir-run/weir/flow/expr"
)

// expressionText is the part of the page on expressions that does not follow from the table
// of functions.
//
//go:embed expressions.md
var expressionText string

// expressionPage returns the page on expressions, with all functions.
func expressionPage() string {
	var b strings.Builder
	fmt.Fprintf(&b, notice, "internal/docgen/expressions.md and expr.Functions")
	b.WriteString(expressionText)
	b.WriteString("\n## Functions\n\nCapital letters stand for arguments. `weir eval --functions` prints this list.\n")
	for _, group := range expr.Groups() {
		fmt.Fprintf(&b, "\n### %s\n\n| function | result | examples |\n|---|---|---|\n", group)
		for _, f := range expr.Functions() {
			if f.Group != group {
				continue
			}
			var examples []string
			for _, e := range f.Examples {
				examples = append(examples, "`"+cell(e.Expr)+"` is `"+cell(e.Result)+"`")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(cell(f.Usage), ", "+f.Name, "`, `"+f.Name), cell(f.Summary), strings.Join(examples, "; "))
		}
	}
	return b.String()
}
