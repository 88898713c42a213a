package builtin

import (
	"fmt"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// switchNode takes the branch of the first condition that holds.
type switchNode struct {
	Cases   []switchCase `json:"cases"`
	Default branch       `json:"default"`
}

// switchCase is one condition and where it leads.
type switchCase struct {
	When celExpression `json:"when"`
	To   branch        `json:"to"`
}

func switchType() node.Type {
	return define[switchNode](&flow.TypeSpec{
		Name:     "switch",
		Aliases:  []string{"router"},
		Category: "control",
		Summary:  "Takes the branch of the first condition that holds.",
		Doc: `The conditions are CEL, written without braces; they read ` + "`inputs.*`" + ` (whatever is wired to the node,
under any port name), ` + "`state.*`" + ` and ` + "`run.*`" + `. They are tried in order until one is true, and
those after it are not evaluated.

| setting | what |
|---|---|
| ` + "`cases`" + ` | a list of ` + "`{when, to}`" + `: a condition and the branch it leads to; several may lead to one branch |
| ` + "`default`" + ` | the branch where no condition holds; without it the node then fails with ` + "`branch_unknown`" + ` |

| output | what |
|---|---|
| ` + "`result`" + ` | the branch's name, text |
| a port for each branch | ` + "`true`" + ` on the one that is taken; the others have no value |

A condition whose result is neither true nor false is an error.`,
		Ports: flow.Ports{Out: branchPorts(nil), AnyIn: true},
		PortsFor: func(with map[string]any) flow.Ports {
			return flow.Ports{Out: branchPorts(switchBranches(with)), AnyIn: true}
		},
		Settings: objectSchema(map[string]any{
			"cases": map[string]any{
				"type": "array", "minItems": 1, "description": "Conditions and where they lead, in order.",
				"items": map[string]any{
					"type": "object", "additionalProperties": false, "required": []any{"when", "to"},
					"properties": map[string]any{
						"when": expressionSchema("The condition."),
						"to":   branchSetting("The branch it leads to."),
					},
				},
			},
			"default": branchSetting("The branch where no condition holds."),
		}, "cases"),
		Check:  func(with map[string]any) []flow.Problem { return checkBranches(switchBranches(with)) },
		Pure:   true,
		Inline: true,
		Examples: []flow.Example{{
			Name: "by size",
			Flow: `
weir: 1
name: sizes
inputs:
  n: {type: number, required: true}
nodes:
  size:
    type: switch
    in: {n: "{{ run.inputs.n }}"}
    with:
      cases:
        - {when: inputs.n < 10, to: small}
        - {when: inputs.n < 100, to: medium}
      default: large
  say:
    type: template
    after: size.medium
    with: {text: "neither small nor large"}
outputs: {size: "{{ size.result }}", note: "{{ say.text }}"}
`,
			Inputs:  map[string]any{"n": 42},
			Outputs: map[string]any{"size": "medium", "note": "neither small nor large"},
		}},
	})
}

// branchSetting names a branch.
func branchSetting(description string) map[string]any {
	s := settingSchema("", description)
	s["type"] = []any{"string", "boolean", "integer"}
	return s
}

// switchBranches lists the valid branches of the settings.
func switchBranches(with map[string]any) []string {
	var names []string
	cases, _ := with["cases"].([]any)
	for _, c := range cases {
		if m, ok := c.(map[string]any); ok {
			if name, ok := branchName(m["to"]); ok {
				names = append(names, name)
			}
		}
	}
	if name, ok := branchName(with["default"]); ok {
		names = append(names, name)
	}
	return names
}

// Run evaluates the conditions in order.
func (n *switchNode) Run(ctx *node.Ctx) error {
	for i, c := range n.Cases {
		holds, err := c.When.isTrue(ctx, fmt.Sprintf("cases[%d].when", i))
		if err != nil {
			return err
		}
		if holds {
			takeBranch(ctx, string(c.To))
			return nil
		}
	}
	if n.Default == "" {
		return withHint(permanentError(CodeBranch, "none of the %d conditions holds", len(n.Cases)), "add a default")
	}
	takeBranch(ctx, string(n.Default))
	return nil
}
