package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	memstore "github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
)

// Empty reports whether the configuration offers no tools.
func (b *Toolbox) Empty() bool {
	return len(b.declared) == 0 && len(b.flows) == 0 && len(b.servers) == 0 && !b.memory.Offered
}

// known returns the configured tools as far as they are known without starting a server: those
// of servers as they were accepted. Flows that cannot be read are not among them.
func (b *Toolbox) known() (*tool.Set, error) {
	tools := slices.Clone(b.declared)
	for _, s := range b.servers {
		tools = append(tools, s.accepted()...)
	}
	memory, err := b.memoryTools(memstore.New())
	if err != nil {
		return nil, err
	}
	flows, _ := b.flowTools() // `weir tools` reports those that cannot be read
	for _, f := range flows {
		tools = append(tools, &tool.Tool{
			Name: f.Name, Description: f.Description, Parameters: weir.FlowParameters(f.Flow), ReadOnly: true, Call: notCalled,
		})
	}
	return tool.NewSet(append(tools, memory...)...)
}

// notCalled is the function of a tool that is only compared with flows.
func notCalled(context.Context, tool.Call) (string, error) {
	return "", errors.New("the tool is not called")
}

// CheckFlow compares a flow, and the flows that it uses, with the configured tools, if there
// are any, and with what the models that it names take. It starts nothing. The error is a
// *flow.Invalid with all problems.
func CheckFlow(cfg *config.Config, tools *Toolbox, f *flow.Flow, types *node.Catalogue) error {
	var problems []flow.Problem
	var errTools error
	if !tools.Empty() {
		errTools = tools.CheckFlow(f, types)
	}
	for _, err := range []error{errTools, runner.CheckModels(f, types, models(cfg), "")} {
		invalid, ok := errors.AsType[*flow.Invalid](err)
		switch {
		case ok:
			problems = append(problems, invalid.Problems...)
		case err != nil:
			return err
		}
	}
	if problems == nil {
		return nil
	}
	return &flow.Invalid{Problems: problems}
}

// CheckFlow compares a flow, and the flows that it uses, with the configured tools. It starts
// nothing. The error is a *flow.Invalid with the tools that are named and not offered, with
// arguments that do not fit, and with tools in branches of races that may change something.
func (b *Toolbox) CheckFlow(f *flow.Flow, types *node.Catalogue) error {
	offered, err := b.known()
	if err != nil {
		return err
	}
	flows, _ := b.flowTools() // as in known
	flowOf := func(name string) *flow.Flow {
		if i := slices.IndexFunc(flows, func(t weir.FlowTool) bool { return t.Name == name }); i >= 0 {
			return flows[i].Flow
		}
		return nil
	}
	var problems []flow.Problem
	for _, err := range []error{node.CheckTools(f, types, offered), runner.CheckBranchTools(f, types, offered, flowOf)} {
		if invalid, ok := errors.AsType[*flow.Invalid](err); ok {
			problems = append(problems, invalid.Problems...)
		}
	}
	for _, used := range f.Dependencies() {
		for _, n := range runner.NamedTools(&used.Graph) {
			for _, name := range n.Names {
				if offered.Get(name) == nil && n.Node.Type != "tool" {
					problems = append(problems, unknownTool(n.Node, name, offered.Names()))
				}
			}
		}
	}
	if problems == nil {
		return nil
	}
	return &flow.Invalid{Problems: problems}
}

func unknownTool(n *flow.Node, name string, offered []string) flow.Problem {
	p := flow.Problem{
		Pos: n.PlaceOf("tools"), Code: flow.CodeUnknownTool,
		Message: fmt.Sprintf("node %s names the tool %s, which the configuration does not offer; offered are: %s", n.ID, name, strings.Join(offered, ", ")),
		Hint:    "correct the name, or configure the tool; a tool of an MCP server must be accepted with `weir tools accept`",
	}
	if near := flow.NearestName(name, offered); near != "" {
		p.Hint = "did you mean " + near + "?"
	}
	return p
}
