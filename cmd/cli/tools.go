package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

func (p *cli) toolsCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "tools",
		Short: "List the configured tools and the state of their definitions",
		Long: `List the tools of the configuration: what they call, when a person is asked, and, for
tools of MCP servers, whether their definition was accepted. A flow that cannot be read
is "invalid". The command starts or calls the servers. Exit code 1 if a tool cannot be
used.

Models cannot call a new or changed tool until "weir tools accept" has accepted its
definition. Accepted definitions are stored in tools.lock beside the configuration.`,
		Example: `  weir tools
  weir tools accept files
  weir tools accept files/read search`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return p.listTools(c.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	c.AddCommand(p.acceptCommand())
	return c
}

func (p *cli) listTools(ctx context.Context, asJSON bool) error {
	b, err := p.openToolbox()
	if err != nil {
		return err
	}
	list := b.List(ctx)
	if err := b.Close(); err != nil {
		return err
	}
	if asJSON {
		writeJSON(p.out, list)
	} else {
		p.printTools(list)
	}
	if slices.ContainsFunc(list, func(t app.ToolReport) bool { return !t.Usable() }) {
		return &exitError{exitFailed}
	}
	return nil
}

func (p *cli) openToolbox() (*app.Toolbox, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	return app.NewToolbox(cfg)
}

func (p *cli) printTools(list []app.ToolReport) {
	if len(list) == 0 {
		p.notef("no tools are configured; tools: in .weir/config.yaml names them")
		return
	}
	st := p.styleFor(p.out)
	t := p.table("TOOL STATE ASKS SOURCE")
	problems := []string{}
	for _, x := range list {
		state := st.bad.Render(x.State)
		switch x.State {
		case app.ToolConfigured, app.ToolAccepted:
			state = st.good.Render(x.State)
		case string(mcptool.ReasonNew), string(mcptool.ReasonChanged):
			state = st.ask.Render(x.State)
			problems = append(problems, definition(x))
		}
		for _, text := range x.Problems {
			problems = append(problems, x.Tool+": "+text)
		}
		t.row(app.Printable(x.Tool), state, x.Approve, app.Printable(x.Source))
	}
	t.print()
	for _, text := range slices.Compact(problems) {
		fmt.Fprintln(p.out, "\n"+app.Printable(text))
	}
}

// definition describes a tool to the person who accepts it.
func definition(x app.ToolReport) string {
	lines := []string{x.Tool + " says: " + x.Description}
	properties, _ := x.Parameters["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		b, err := json.Marshal(properties[name])
		if err == nil {
			lines = append(lines, "  "+name+": "+string(b))
		}
	}
	return strings.Join(lines, "\n")
}
