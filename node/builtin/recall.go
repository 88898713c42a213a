package builtin

import (
	"fmt"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// recallNode searches the long-term memory.
type recallNode struct {
	Query template `json:"query"`
	Kind  string   `json:"kind"`
	Since template `json:"since"`
	Limit int64    `json:"limit"`
}

func recallType() node.Type {
	return memoryType(define[recallNode](&flow.TypeSpec{
		Name:     "recall",
		Category: "io",
		Summary:  "Searches the user's long-term memory.",
		Doc: `| setting | what |
|---|---|
| ` + "`query`" + ` | words to search for; a template. Items with at least one of them are found, the best first. Without it the newest items are found |
| ` + "`kind`" + ` | only items of this kind: ` + "`fact`, `episode`, `procedure`" + ` |
| ` + "`since`" + ` | only items that were written, or episodes that happened, since then; a template: a date, a time, or how long ago (` + "`12h`, `30d`" + `) |
| ` + "`limit`" + ` | the maximum number of items, 1 to 50 (default 10) |

| output | what |
|---|---|
| ` + "`items`" + ` | a list of ` + "`{id, kind, key, text, tags, at, version}`" + `; members without a value are absent |
| ` + "`total`" + ` | how many items fit, also beyond the limit |
| ` + "`text`" + ` | the items as a model is shown them: marked as data |` + fmt.Sprintf(memoryDoc, memoryReadTool),
		Ports: flow.Ports{Out: []flow.Port{
			{Name: "items", Type: flow.TypeList, Description: "The items."},
			{Name: "total", Type: flow.TypeNumber, Description: "How many items fit."},
			{Name: "text", Type: flow.TypeText, Description: "The items as a model is shown them."},
		}, AnyIn: true},
		Settings: objectSchema(map[string]any{
			"query": templateSchema("string", "Words to search for. Default: the newest items."),
			"kind":  map[string]any{"type": "string", "enum": []any{"fact", "episode", "procedure"}, "description": "Only items of this kind."},
			"since": templateSchema("string", "Only items since then: a date, a time, or how long ago."),
			"limit": map[string]any{"type": "integer", "minimum": 1, "maximum": 50, "description": "The maximum number of items. Default: 10."},
		}),
		ActsOutside: never,
		Examples: []flow.Example{{
			Name: "nothing is remembered yet",
			Flow: `
weir: 1
name: empty
nodes:
  look: {type: recall, with: {query: diet}}
outputs: {total: "{{ look.total }}", items: "{{ look.items }}"}
`,
			User:    "ada",
			Outputs: map[string]any{"total": 0, "items": []any{}},
		}},
	}), memoryReadTool)
}

// Run searches.
func (n *recallNode) Run(ctx *node.Ctx) error {
	arguments, err := templateArguments(ctx, map[string]template{"query": n.Query, "since": n.Since})
	if err != nil {
		return err
	}
	arguments["kind"] = n.Kind
	if n.Limit > 0 {
		arguments["limit"] = n.Limit
	}
	o, text, err := callMemory(ctx, memoryReadTool, arguments)
	if err != nil {
		return err
	}
	outputMembers(ctx, o, "items", "total")
	ctx.Output("text", text)
	return nil
}
