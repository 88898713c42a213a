package builtin

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// toolCaller is a type whose nodes call one tool, which can be checked before a run starts.
type toolCaller struct {
	node.Type
	calls func(g *flow.Graph, n *flow.Node) directCall
}

// directCall is the call of a node as far as the flow determines it.
type directCall struct {
	tool    string
	setting string // the setting with the name of the tool; "" if the type determines it
	// arguments may hold templates, and are nil if their names are known only in the run; at is the
	// setting that holds them, "" for the ports.
	arguments map[string]any
	at        string
}

// CheckTools implements node.ToolChecker.
func (t toolCaller) CheckTools(g *flow.Graph, n *flow.Node, offered *tool.Set) []flow.Problem {
	c := t.calls(g, n)
	found := offered.Get(c.tool)
	if found == nil {
		names := "none"
		if all := offered.Names(); len(all) > 0 {
			names = strings.Join(all, ", ")
		}
		return []flow.Problem{{
			Code: flow.CodeUnknownTool, Setting: c.setting,
			Message: "node " + n.ID + " calls the tool " + c.tool + ", which this process does not offer; offered are: " + names,
			Hint:    c.unknownHint(offered.Names()),
		}}
	}
	if message := c.misfit(found); message != "" {
		return []flow.Problem{{Code: flow.CodeToolArguments, Setting: c.at, Message: "node " + n.ID + ", tool " + c.tool + ": " + message}}
	}
	return nil
}

// unknownHint says how the tool is offered. A node type that determines its tool is one of the memory.
func (c directCall) unknownHint(offered []string) string {
	if c.setting == "" {
		return "set `tools: {memory: true}` in the configuration, or, in Go, offer the tools of the package tool/memory"
	}
	return unknownToolHint(c.tool, offered)
}

func unknownToolHint(name string, offered []string) string {
	if near := flow.NearestName(name, offered); near != "" {
		return "did you mean " + near + "?"
	}
	return "correct the name, or start Weir with a configuration that offers the tool"
}

// misfit says why the arguments cannot fit the tool, "" if they may. Templates may give
// anything.
func (c directCall) misfit(t *tool.Tool) string {
	if c.arguments == nil {
		return ""
	}
	complete, err := tool.NewArguments(t.Parameters)
	if err != nil {
		return "" // only the tool can check them
	}
	literal := make(map[string]any)
	for name, v := range c.arguments {
		if tpl, err := expr.ParseTemplate(v); err == nil {
			if v, ok := tpl.Literal(); ok {
				literal[name] = v
			}
		}
	}
	if len(literal) == len(c.arguments) {
		return readError(complete, literal)
	}
	return c.partialMisfit(t.Parameters, literal)
}

// partialMisfit is misfit where some arguments are templates: their values are unknown, but
// not their names.
func (c directCall) partialMisfit(parameters, literal map[string]any) string {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "not", "if", "$ref", "minProperties", "dependentRequired", "dependentSchemas", "dependencies"} {
		if parameters[keyword] != nil {
			return "" // cannot be checked in parts
		}
	}
	properties, _ := parameters["properties"].(map[string]any)
	s := maps.Clone(parameters)
	if s == nil {
		s = map[string]any{"type": "object", "additionalProperties": false}
	}
	if s["additionalProperties"] == false && s["patternProperties"] == nil {
		for _, name := range slices.Sorted(maps.Keys(c.arguments)) {
			if _, known := properties[name]; !known {
				return "it has no argument " + name + "; it takes " + cmp.Or(strings.Join(slices.Sorted(maps.Keys(properties)), ", "), "none")
			}
		}
	}
	if required, ok := s["required"].([]any); ok {
		s["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
			text, _ := name.(string)
			_, given := c.arguments[text]
			return given
		})
	}
	if some, err := tool.NewArguments(s); err == nil {
		return readError(some, literal)
	}
	return ""
}

func readError(a *tool.Arguments, arguments map[string]any) string {
	b, err := engine.AppendValue(nil, arguments)
	if err == nil {
		_, err = a.Read(string(b))
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
