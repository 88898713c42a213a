package builtin

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// toolsNode chooses tools.
type toolsNode struct {
	Tools toolChoice `json:"tools"`
}

// toolChoice is all tools, or those of some names.
type toolChoice struct {
	auto  bool
	names []string
}

// UnmarshalJSON reads "auto" or a list of names.
func (t *toolChoice) UnmarshalJSON(raw []byte) error {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		if word != "auto" {
			return errors.New("expected auto or a list of tool names")
		}
		t.auto = true
		return nil
	}
	return json.Unmarshal(raw, &t.names)
}

// sorted returns the names of the choice, in alphabetical order.
func (t *toolChoice) sorted(set *tool.Set) []string {
	names := slices.Clone(t.names)
	if t.auto {
		names = set.Names()
	}
	slices.Sort(names)
	return names
}

// tools returns the tools of the choice, in alphabetical order.
func (t *toolChoice) tools(set *tool.Set) ([]*tool.Tool, error) {
	return toolsNamed(set, t.sorted(set))
}

// toolChoiceSchema returns the JSON Schema of a toolChoice.
func toolChoiceSchema(description string) map[string]any {
	return map[string]any{
		"description": description,
		"oneOf": []any{
			map[string]any{"const": "auto"},
			map[string]any{"type": "array", "uniqueItems": true, "items": map[string]any{"type": "string", "minLength": 1}},
		},
	}
}

func toolsType() node.Type {
	return define[toolsNode](&flow.TypeSpec{
		Name:     "tools",
		Category: "model",
		Summary:  "Chooses which tools a model may call.",
		Doc: `Wire ` + "`tools`" + ` to the ` + "`tools`" + ` port of an ` + "`llmRequest`" + `; several ` + "`tools`" + ` nodes may be wired to one.

| setting | what |
|---|---|
| ` + "`tools`" + ` | ` + "`auto`" + ` (default): every tool this process offers; or a list of names |

| output | what |
|---|---|
| ` + "`tools`" + ` | the choice |
| ` + "`toolNames`" + ` | the names, a list in alphabetical order |

If the process does not offer a name, the node fails with ` + "`tool_unknown`" + `, which lists the
offered tools. Tools come from the program that runs Weir; a flow chooses among them and
cannot add any.`,
		Ports: flow.Ports{Out: []flow.Port{
			{Name: "tools", Type: flow.TypeTools, Description: "The choice, for llmRequest."},
			{Name: "toolNames", Type: flow.TypeList, Description: "The names of the tools."},
		}},
		Settings: objectSchema(map[string]any{"tools": toolChoiceSchema("auto, or the names of the tools. Default: auto.")}),
		Inline:   true,
		Examples: []flow.Example{{
			Name: "a tool that is not there",
			Flow: `
weir: 1
name: toolbox
nodes:
  pick: {type: tools, with: {tools: [no_such_tool]}}
outputs: {names: "{{ pick.toolNames }}"}
`,
			Error: CodeToolUnknown,
		}, {
			Name: "no tools",
			Flow: `
weir: 1
name: bare-hands
nodes:
  pick: {type: tools, with: {tools: []}}
outputs: {names: "{{ pick.toolNames }}"}
`,
			Outputs: map[string]any{"names": []any{}},
		}},
	})
}

func (n *toolsNode) setDefaults() {
	if n.Tools.names == nil {
		n.Tools.auto = true
	}
}

// Run checks the names and outputs the choice.
func (n *toolsNode) Run(ctx *node.Ctx) error {
	names := n.Tools.sorted(ctx.Tools())
	if _, err := toolsNamed(ctx.Tools(), names); err != nil {
		return err
	}
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	ctx.Output("tools", list)
	ctx.Output("toolNames", list)
	return nil
}

// toolsNamed finds tools; the error names all that are missing and those there are.
func toolsNamed(set *tool.Set, names []string) ([]*tool.Tool, error) {
	var found []*tool.Tool
	var missing []string
	for _, name := range names {
		if t := set.Get(name); t != nil {
			found = append(found, t)
		} else {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return found, nil
	}
	offered := "none"
	if all := set.Names(); len(all) > 0 {
		offered = strings.Join(all, ", ")
	}
	return nil, withHint(permanentError(CodeToolUnknown, "there is no tool %s; offered are: %s", strings.Join(missing, ", "), offered),
		"correct the name, or start Weir with a configuration that offers the tool")
}

// toolNames reads the names that came in on a tools port: names, and lists of
// names, at any depth, each name once.
func toolNames(v engine.Value) ([]string, error) {
	switch t := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{t}, nil
	case []any:
		var names []string
		for _, e := range t {
			more, err := toolNames(e)
			if err != nil {
				return nil, err
			}
			for _, name := range more {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		return names, nil
	}
	return nil, permanentError(CodeInput, "tools: %s is not the name of a tool", describeValue(v))
}
