package cli

import (
	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow/graph"
)

func (p *cli) graphCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "graph FLOW",
		Short: "Draw a flow as Mermaid, DOT or SVG",
		Example: `  weir graph review.yaml --format svg > review.svg
  weir graph review.yaml --format dot | dot -Tpng > review.png`,
		Args:              exactArgs("FLOW"),
		ValidArgsFunction: p.completeFlows,
		RunE: func(_ *cobra.Command, args []string) error {
			return p.graph(args[0], format)
		},
	}
	c.Flags().StringVar(&format, "format", "mermaid", "`FORMAT`: mermaid, dot or svg")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"mermaid", "dot", "svg"}, noFiles))
	return c
}

func (p *cli) graph(path, format string) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	f, cat, err := app.LoadFlow(path, cfg.Flows.Folders...)
	if err != nil {
		return err
	}
	var out []byte
	switch format {
	case "mermaid":
		out = graph.Mermaid(f)
	case "dot":
		out = graph.DOT(f)
	case "svg":
		out = graph.SVG(f, cat)
	default:
		return usagef("--format: there is no %q; there are mermaid, dot and svg", format)
	}
	_, err = p.out.Write(out)
	return err
}
