package app

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/tool"
)

// flowTools returns the configured flows that models may call. It omits flows that cannot
// be read; the error names them all.
func (b *Toolbox) flowTools() ([]weir.FlowTool, error) {
	var list []weir.FlowTool
	var wrong error
	for _, c := range b.flows {
		t, err := flowTool(c, b.folders)
		if err != nil {
			wrong = errors.Join(wrong, usagef("configuration: tools.flows: %s: %w", c.Name, err))
			continue
		}
		list = append(list, t)
	}
	return list, wrong
}

func flowTool(c config.FlowTool, folders []string) (weir.FlowTool, error) {
	t := weir.FlowTool{Name: c.Name, Description: c.Description, File: c.File, Approve: tool.Approval(c.Approve), MaxOutput: c.MaxOutput}
	var err error
	if t.Flow, _, err = LoadFlow(c.File, folders...); err != nil {
		return t, err
	}
	if t.Description == "" {
		t.Description = t.Flow.Description
	}
	t.Model, err = ResolveScript(t.Flow.Context.Model, c.File, false)
	return t, err
}

// listFlows describes the flows that are tools.
func (b *Toolbox) listFlows() []ToolReport {
	var list []ToolReport
	for _, c := range b.flows {
		t, err := flowTool(c, b.folders)
		row := ToolReport{
			Tool: c.Name, Source: "runs " + c.File, Approve: approvalPolicy(c.Approve), State: ToolConfigured,
			Description: t.Description, Problems: []string{},
		}
		if err != nil {
			row.State, row.Problems = ToolInvalid, problemLines(err)
		} else {
			row.Parameters = weir.FlowParameters(t.Flow)
		}
		list = append(list, row)
	}
	return list
}

// problemLines returns the problems of a flow, one a line.
func problemLines(err error) []string {
	invalid, ok := errors.AsType[*flow.Invalid](err)
	if !ok {
		return []string{err.Error()}
	}
	var lines []string
	for _, p := range invalid.Problems {
		lines = append(lines, fmt.Sprint(p))
	}
	return lines
}
