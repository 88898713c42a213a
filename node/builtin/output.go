package builtin

import (
	"fmt"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// outputNode checks a value and outputs it at an end of the flow.
type outputNode struct {
	Schema map[string]any `json:"schema"`

	accepts *node.Schema
}

func outputType() node.Type {
	return define[outputNode](&flow.TypeSpec{
		Name:     "output",
		Aliases:  []string{"end"},
		Category: "flow",
		Summary:  "Marks an end of the flow and checks the value that arrives there.",
		Doc: `Passes its ` + "`value`" + ` on unchanged. It marks an end of a drawn flow and can check the
result: if a value does not fit the ` + "`schema`" + ` (JSON Schema), the node fails with
` + "`output_invalid`" + `, which lists every place that differs.

What a run returns are the flow's ` + "`outputs:`" + `; name the node there:
` + "`outputs: {result: \"{{ NODE.value }}\"}`" + `.`,
		Ports: flow.Ports{
			In:  []flow.Port{{Name: "value", Type: flow.TypeAny, Required: true, Description: "What leaves the flow."}},
			Out: []flow.Port{{Name: "value", Type: flow.TypeAny, Description: "The same value."}},
		},
		Settings: objectSchema(map[string]any{
			"schema": settingSchema("object", "JSON Schema of the value; any value where there is none."),
		}),
		Check:       checkSchemaSetting,
		Pure:        true,
		Inline:      true,
		PassThrough: true,
		Examples: []flow.Example{{
			Name: "a checked result",
			Flow: `
weir: 1
name: checked
nodes:
  make: {type: transform, with: {expr: "{'total': 3}"}}
  result:
    type: output
    in: {value: "{{ make.value }}"}
    with:
      schema: {type: object, required: [total], properties: {total: {type: integer}}}
outputs: {result: "{{ result.value }}"}
`,
			Outputs: map[string]any{"result": map[string]any{"total": 3}},
		}, {
			Name: "a result that does not fit",
			Flow: `
weir: 1
name: unchecked
nodes:
  make: {type: transform, with: {expr: "'three'"}}
  result:
    type: output
    in: {value: "{{ make.value }}"}
    with: {schema: {type: integer}}
outputs: {result: "{{ result.value }}"}
`,
			Error: CodeOutput,
		}},
	})
}

func (n *outputNode) finish() error {
	if n.Schema == nil {
		return nil
	}
	var err error
	if n.accepts, err = node.CompileSchema(n.Schema); err != nil {
		return fmt.Errorf("setting \"schema\": %w", err)
	}
	return nil
}

// Run checks the value and outputs it.
func (n *outputNode) Run(ctx *node.Ctx) error {
	if n.accepts != nil {
		v, _ := ctx.Input("value")
		if err := n.accepts.Check(v); err != nil {
			return permanentError(CodeOutput, "the value does not fit the schema: %v", err)
		}
	}
	return outputValue(ctx)
}
