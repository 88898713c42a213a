package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/tool"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// ToolReport is a tool as `weir tools --json` prints it.
type ToolReport struct {
	Tool   string `json:"tool"`   // its name in flows
	Source string `json:"source"` // what it calls
	// Approve says when a person is asked: "always", "once" or "never".
	Approve string `json:"approve"`
	// State is one of the ToolState constants, or a mcptool.Reason: "new", "changed",
	// "missing" (the server does not have it) or "invalid".
	State       string         `json:"state"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
	// Problems list what has changed, or what is wrong.
	Problems []string `json:"problems"`
}

// States of a tool besides those of mcptool.Reason.
const (
	ToolConfigured  = "configured"  // defined by the configuration
	ToolAccepted    = "accepted"    // defined by a server, and accepted
	ToolUnreachable = "unreachable" // its server does not answer
	ToolInvalid     = "invalid"     // also a mcptool.Reason
)

// Usable reports whether models can call the tool.
func (t *ToolReport) Usable() bool { return t.State == ToolConfigured || t.State == ToolAccepted }

// List describes all tools. It connects to all servers.
func (b *Toolbox) List(ctx context.Context) []ToolReport {
	list := []ToolReport{}
	for _, t := range b.declared {
		source, _ := strings.CutPrefix(t.Origin, "http:")
		source = source[:max(strings.LastIndexByte(source, ' '), 0)] // without the digest
		list = append(list, toolReportOf(t, source, ToolConfigured))
	}
	list = append(list, b.listFlows()...)
	list = append(list, b.listMemory()...)
	for _, s := range b.servers {
		list = append(list, s.list(ctx)...)
	}
	return list
}

func toolReportOf(t *tool.Tool, source, state string) ToolReport {
	name := t.Name
	if t.Alias != "" {
		name = t.Alias
	}
	return ToolReport{
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

// source says how the server is reached.
func (s *ToolServer) source() string {
	if s.config.URL != "" {
		return config.RedactedURL(s.config.URL)
	}
	return "starts " + s.config.Command
}

// list connects to the server and describes its tools.
func (s *ToolServer) list(ctx context.Context) []ToolReport {
	tools, err := s.tools(ctx)
	var list []ToolReport
	for _, t := range tools {
		list = append(list, toolReportOf(t, s.source(), ToolAccepted))
	}
	row := func(name, state string, now mcptool.Pin, problems []string) {
		list = append(list, ToolReport{
			Tool: mcptool.FlowName(s.Name, name), Source: s.source(), Approve: approvalPolicy(s.config.Approve), State: state,
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
			row(name, ToolUnreachable, mcptool.Pin{}, []string{err.Error()})
		}
	}
	slices.SortFunc(list, func(a, b ToolReport) int { return strings.Compare(a.Tool, b.Tool) })
	return list
}
