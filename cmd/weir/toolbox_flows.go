package main

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/tool"
)

// flowTools are the flows of the configuration that models may call. One that
// cannot be read is left out and is in the error, which names all such.
func (b *toolbox) flowTools() ([]weir.FlowTool, error) {
	var list []weir.FlowTool
	var wrong error
	for _, c := range b.flows {
		t, err := flowTool(c)
		if err != nil {
			wrong = errors.Join(wrong, usagef("configuration: tools.flows: %s: %w", c.Name, err))
			continue
		}
		list = append(list, t)
	}
	return list, wrong
}

func flowTool(c config.FlowTool) (weir.FlowTool, error) {
	t := weir.FlowTool{Name: c.Name, Description: c.Description, File: c.File, Approve: tool.Approval(c.Approve), MaxOutput: c.MaxOutput}
	var err error
	if t.Flow, _, err = load(c.File); err != nil {
		return t, err
	}
	if t.Description == "" {
		t.Description = t.Flow.Description
	}
	t.Model, err = absoluteScript(t.Flow.Context.Model, c.File, false)
	return t, err
}

// listFlows are the flows as `weir tools` shows them.
func (b *toolbox) listFlows() []toolReport {
	var list []toolReport
	for _, c := range b.flows {
		t, err := flowTool(c)
		row := toolReport{
			Tool: c.Name, Source: "runs " + c.File, Approve: approvalPolicy(c.Approve), State: stateConfigured,
			Description: t.Description, Problems: []string{},
		}
		if err != nil {
			row.State, row.Problems = stateInvalid, problemLines(err)
		} else {
			row.Parameters = weir.FlowParameters(t.Flow)
		}
		list = append(list, row)
	}
	return list
}

// problemLines are the lines of what is wrong with a flow.
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
