package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/tool"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// toolReport is a tool as `weir tools --json` prints it.
type toolReport struct {
	Tool   string `json:"tool"`   // as flows name it
	Source string `json:"source"` // what is called
	// Approve is when a person is asked: "always", "once" or "never".
	Approve string `json:"approve"`
	// State is "configured" for a tool that the configuration defines; and for
	// one that a server defines "accepted", "new", "changed", "missing" (the
	// server has it not), "invalid", or "unreachable".
	State       string         `json:"state"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
	// Problems say what has changed, or what is wrong.
	Problems []string `json:"problems"`
}

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
	list := b.list(ctx)
	if err := b.close(); err != nil {
		return err
	}
	if asJSON {
		writeJSON(p.out, list)
	} else {
		p.printTools(list)
	}
	unusable := func(t toolReport) bool { return t.State != stateConfigured && t.State != stateAccepted }
	if slices.ContainsFunc(list, unusable) {
		return &exitError{exitFailed}
	}
	return nil
}

func (p *cli) openToolbox() (*toolbox, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	client, err := safeClient(cfg)
	if err != nil {
		return nil, err
	}
	return p.toolbox(cfg, client)
}

// The states of a tool beside those of mcptool.Reason.
const (
	stateConfigured  = "configured"
	stateAccepted    = "accepted"
	stateUnreachable = "unreachable"
	stateInvalid     = "invalid" // also of mcptool.Reason
)

// list asks all servers.
func (b *toolbox) list(ctx context.Context) []toolReport {
	list := []toolReport{}
	for _, t := range b.declared {
		source, _ := strings.CutPrefix(t.Origin, "http:")
		source = source[:max(strings.LastIndexByte(source, ' '), 0)] // without the digest
		list = append(list, toolReportOf(t, source, stateConfigured))
	}
	list = append(list, b.listFlows()...)
	list = append(list, b.listMemory()...)
	for _, s := range b.servers {
		list = append(list, s.list(ctx)...)
	}
	return list
}

func toolReportOf(t *tool.Tool, source, state string) toolReport {
	name := t.Name
	if t.Alias != "" {
		name = t.Alias
	}
	return toolReport{
		Tool: name, Source: source, Approve: approvalPolicy(string(t.Approve)), State: state,
		Description: t.Description, Parameters: t.Parameters, Problems: []string{},
	}
}

func approvalPolicy(policy string) string {
	if policy == "" {
		return string(tool.ApproveNever)
	}
	return policy
}

// source is what a server is reached by.
func (s *toolServer) source() string {
	if s.config.URL != "" {
		return config.RedactedURL(s.config.URL)
	}
	return "starts " + s.config.Command
}

// list asks the server.
func (s *toolServer) list(ctx context.Context) []toolReport {
	tools, err := s.tools(ctx)
	var list []toolReport
	for _, t := range tools {
		list = append(list, toolReportOf(t, s.source(), stateAccepted))
	}
	row := func(name, state string, now mcptool.Pin, problems []string) {
		list = append(list, toolReport{
			Tool: mcptool.FlowName(s.name, name), Source: s.source(), Approve: approvalPolicy(s.config.Approve), State: state,
			Description: now.Description, Parameters: now.Parameters, Problems: append([]string{}, problems...),
		})
	}
	refused, ok := errors.AsType[*mcptool.RefusedError](err)
	switch {
	case ok:
		for _, r := range refused.Refusals {
			row(r.Tool, string(r.Reason), r.Offered, r.Changes)
		}
	case err != nil:
		for _, name := range s.config.Tools {
			row(name, stateUnreachable, mcptool.Pin{}, []string{err.Error()})
		}
	}
	slices.SortFunc(list, func(a, b toolReport) int { return strings.Compare(a.Tool, b.Tool) })
	return list
}

func (p *cli) printTools(list []toolReport) {
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
		case stateConfigured, stateAccepted:
			state = st.good.Render(x.State)
		case string(mcptool.ReasonNew), string(mcptool.ReasonChanged):
			state = st.ask.Render(x.State)
			problems = append(problems, definition(x))
		}
		for _, text := range x.Problems {
			problems = append(problems, x.Tool+": "+text)
		}
		t.row(printable(x.Tool), state, x.Approve, printable(x.Source))
	}
	t.print()
	for _, text := range slices.Compact(problems) {
		fmt.Fprintln(p.out, "\n"+printable(text))
	}
}

// definition is what a tool says of itself, for a person to read before it is
// accepted.
func definition(x toolReport) string {
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
