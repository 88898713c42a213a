package builtin

import (
	"fmt"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// forgetNode deletes an item of the long-term memory.
type forgetNode struct {
	ID template `json:"id"`
}

func forgetType() node.Type {
	return memoryType(define[forgetNode](&flow.TypeSpec{
		Name:     "forget",
		Category: "io",
		Summary:  "Deletes an item of the user's long-term memory.",
		Doc: `The item is deleted with all its earlier versions. An id that the user's memory does not have fails the node with ` + "`tool_error`" + `.

| setting | what |
|---|---|
| ` + "`id`" + ` | the id of the item, as ` + "`remember` and `recall`" + ` give it; a template |

| output | what |
|---|---|
| ` + "`id`" + ` | the id of the deleted item |` + fmt.Sprintf(memoryDoc, memoryForgetTool),
		Ports: flow.Ports{Out: []flow.Port{{Name: "id", Type: flow.TypeText, Description: "The id of the deleted item."}}, AnyIn: true},
		Settings: objectSchema(map[string]any{
			"id": templateSchema("string", "The id of the item."),
		}, "id"),
		Examples: []flow.Example{{
			Name: "forget what was just written",
			Flow: `
weir: 1
name: brief
nodes:
  keep: {type: remember, with: {text: "Called about the pump.", kind: episode}}
  drop: {type: forget, in: {id: "{{ keep.id }}"}, with: {id: "{{ inputs.id }}"}}
  look: {type: recall, after: drop}
outputs: {total: "{{ look.total }}"}
`,
			User:    "ada",
			Outputs: map[string]any{"total": 0},
		}},
	}), memoryForgetTool)
}

// Run deletes the item.
func (n *forgetNode) Run(ctx *node.Ctx) error {
	arguments, err := templateArguments(ctx, map[string]template{"id": n.ID})
	if err != nil {
		return err
	}
	o, _, err := callMemory(ctx, memoryForgetTool, arguments)
	if err != nil {
		return err
	}
	outputMembers(ctx, o, "id")
	return nil
}
