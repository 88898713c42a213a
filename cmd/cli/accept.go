package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
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

// accept accepts the tools that the arguments name. It stops at the first argument that
// cannot be accepted.
func (p *cli) accept(ctx context.Context, args []string) error {
	b, err := p.openToolbox()
	if err != nil {
		return err
	}
	defer b.Close() //nolint:errcheck // what was accepted is on disk
	for _, arg := range args {
		name, which, one := strings.Cut(strings.TrimPrefix(arg, "mcp:"), "/")
		s, names := b.Server(name)
		if s == nil {
			return usagef("the configuration has no MCP server %q%s", name, didYouMean(name, names))
		}
		if one && which == "" {
			return usagef("%s: expected SERVER or SERVER/TOOL", arg)
		}
		if err := p.acceptServerTools(ctx, s, which); err != nil {
			return err
		}
	}
	return nil
}

// acceptServerTools accepts one tool of a server, or with "" all new and changed ones.
func (p *cli) acceptServerTools(ctx context.Context, s *app.ToolServer, which string) error {
	refused, err := s.Refusals(ctx)
	if err != nil {
		return err
	}
	var chosen []mcptool.Refusal
	for _, r := range refused {
		switch {
		case which != "" && r.Tool != which:
		case app.Acceptable(r):
			chosen = append(chosen, r)
		case which != "":
			return usagef("%s", app.Printable(r.String()))
		}
	}
	if chosen == nil {
		if which != "" && !s.Lists(which) {
			return usagef("the configuration does not list %q among the tools of %s", which, s.Name)
		}
		p.notef("nothing to accept: what %s defines is what was accepted", mcptool.FlowName(s.Name, which))
		return nil
	}
	for _, r := range chosen {
		fmt.Fprintln(p.out, app.Printable(r.String()))
		fmt.Fprintln(p.out, indent(app.Printable(definition(app.ToolReport{
			Tool: mcptool.FlowName(s.Name, r.Tool), Description: r.Offered.Description, Parameters: r.Offered.Parameters,
		})), "  "))
	}
	if yes, err := p.confirm(ctx, "Accept?"); err != nil || !yes {
		return err
	}
	if err := s.Accept(chosen...); err != nil {
		return err
	}
	p.notef("accepted %s of %s", count(len(chosen), "tool"), s.Name)
	return nil
}

// confirm asks a person at a terminal; if there is none the command itself is
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
