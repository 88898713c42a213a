package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	mcptool "github.com/weir-run/weir/tool/mcp"
)

func (p *cli) acceptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "accept SERVER[/TOOL]...",
		Short: "Accept new and changed definitions of MCP tools",
		Long: `Accept the current definitions of tools of MCP servers, so that models may call them.
The definitions are printed; in a terminal you must confirm. Read them: the model
follows the text of a description.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected SERVER or SERVER/TOOL; `weir tools` lists them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return p.accept(c.Context(), args) },
	}
}

// accept accepts what the arguments name of all servers. Nothing is where one
// of them cannot be.
func (p *cli) accept(ctx context.Context, args []string) error {
	b, err := p.openToolbox()
	if err != nil {
		return err
	}
	defer b.close() //nolint:errcheck // what was accepted is on disk
	for _, arg := range args {
		name, which, one := strings.Cut(strings.TrimPrefix(arg, "mcp:"), "/")
		i := slices.IndexFunc(b.servers, func(s *toolServer) bool { return s.name == name })
		if i < 0 {
			names := []string{}
			for _, s := range b.servers {
				names = append(names, s.name)
			}
			return usagef("the configuration has no MCP server %q%s", name, didYouMean(name, names))
		}
		if one && which == "" {
			return usagef("%s: expected SERVER or SERVER/TOOL", arg)
		}
		if err := p.acceptServerTools(ctx, b.servers[i], which); err != nil {
			return err
		}
	}
	return nil
}

// acceptServerTools accepts one tool of a server, "" for all that are new or changed.
func (p *cli) acceptServerTools(ctx context.Context, s *toolServer, which string) error {
	_, err := s.tools(ctx)
	refused, ok := errors.AsType[*mcptool.RefusedError](err)
	if err != nil && !ok {
		return err
	}
	var chosen []mcptool.Refusal
	if ok {
		for _, r := range refused.Refusals {
			switch {
			case which != "" && r.Tool != which:
			case acceptable(r):
				chosen = append(chosen, r)
			case which != "":
				return usagef("%s", printable(r.String()))
			}
		}
	}
	if chosen == nil {
		if which != "" && !slices.Contains(s.config.Tools, which) && !slices.Contains(s.config.Tools, "*") {
			return usagef("the configuration does not list %q among the tools of %s", which, s.name)
		}
		p.notef("nothing to accept: what %s defines is what was accepted", mcptool.FlowName(s.name, which))
		return nil
	}
	for _, r := range chosen {
		fmt.Fprintln(p.out, printable(r.String()))
		fmt.Fprintln(p.out, indent(printable(definition(toolReport{
			Tool: mcptool.FlowName(s.name, r.Tool), Description: r.Offered.Description, Parameters: r.Offered.Parameters,
		})), "  "))
	}
	if yes, err := p.confirm(ctx, "Accept?"); err != nil || !yes {
		return err
	}
	if err := s.client.Accept(chosen...); err != nil {
		return err
	}
	p.notef("accepted %s of %s", count(len(chosen), "tool"), s.name)
	return nil
}

// confirm asks a person at a terminal; where there is none the command itself is
// the answer.
func (p *cli) confirm(ctx context.Context, question string) (bool, error) {
	if !isTerminal(p.in) || !isTerminal(p.err) {
		return true, nil
	}
	st := p.style()
	p.discardTyped()
	fmt.Fprintf(p.err, "%s %s ", st.ask.Render("?"), st.bold.Render(question+" (y/n)"))
	line, err := p.readLine(ctx)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return isYes(line), err
}
