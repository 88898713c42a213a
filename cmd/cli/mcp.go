package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/mcp"
)

func (p *cli) mcpCommand() *cobra.Command {
	fork := false
	c := &cobra.Command{
		Use:   "mcp [FLOW|FOLDER]...",
		Short: "Offer flows and runs as MCP tools on standard input and output",
		Long: `Offer flows as tools of the Model Context Protocol to the program that starts this one: each
flow is a tool, and its inputs are the arguments. The tools weir_list_runs, weir_show_run and
weir_explain_run read the record, for an agent that debugs flows; weir_answer_run answers
questions. With --fork, weir_fork_run starts runs that share the past of others.

"weir serve" offers the same tools over HTTP, at /mcp.`,
		Example: `  weir mcp flows/
  weir mcp --fork invoice.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return p.serveMCP(c.Context(), args, fork) },
	}
	c.Flags().BoolVar(&fork, "fork", false, "offer weir_fork_run")
	return c
}

func (p *cli) serveMCP(ctx context.Context, paths []string, fork bool) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	flows, err := app.LoadFlows(cfg.Flows.Folders, paths...)
	if err != nil {
		return err
	}
	a, err := p.openServed(ctx, flows)
	if err != nil {
		return err
	}
	s, err := server.New(ctx, server.Options{App: a.App, Flows: flows, Logger: p.logger()})
	if err == nil {
		err = mcp.ServeStdio(ctx, s, mcp.Options{Version: app.ThisBuild().Version, Fork: fork})
	}
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, a.close())
}
