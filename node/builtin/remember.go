package builtin

import (
	"fmt"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// rememberNode writes an item of the long-term memory.
type rememberNode struct {
	Text template `json:"text"`
	Kind string   `json:"kind"`
	Key  template `json:"key"`
	Tags template `json:"tags"`
	When template `json:"when"`
}

func rememberType() node.Type {
	return memoryType(define[rememberNode](&flow.TypeSpec{
		Name:     "remember",
		Category: "io",
		Summary:  "Writes an item of the user's long-term memory.",
		Doc: `| setting | what |
|---|---|
| ` + "`text`" + ` | what to remember; a template |
| ` + "`kind`" + ` | ` + "`fact`" + ` (default), ` + "`episode`" + ` or ` + "`procedure`" + ` |
| ` + "`key`" + ` | what a fact or procedure is about; a template. A new text under a key replaces the old one |
| ` + "`tags`" + ` | a list of words under which the item is found too; a template |
| ` + "`when`" + ` | when an episode happened, if not now; a template: a date, a time, or how long ago (` + "`12h`, `30d`" + `) |

| output | what |
|---|---|
| ` + "`id`" + ` | the id of the item |
| ` + "`version`" + ` | the number of its version, from 1 |
| ` + "`known`" + ` | true if exactly this was remembered before |` + fmt.Sprintf(memoryDoc, memoryWriteTool),
		Ports: flow.Ports{Out: []flow.Port{
			{Name: "id", Type: flow.TypeText, Description: "The id of the item."},
			{Name: "version", Type: flow.TypeNumber, Description: "The version of the item."},
			{Name: "known", Type: flow.TypeBool, Description: "Whether this was remembered before."},
		}, AnyIn: true},
		Settings: objectSchema(map[string]any{
			"text": templateSchema("string", "What to remember."),
			"kind": choiceSchema("The kind of item.", "fact", "episode", "procedure"),
			"key":  templateSchema("string", "What a fact or procedure is about; a new text replaces the old one."),
			"tags": templateSchema("", "Words under which the item is found too, a list."),
			"when": templateSchema("string", "When an episode happened. Default: now."),
		}, "text"),
		Check: func(with map[string]any) []flow.Problem {
			kind, _ := with["kind"].(string)
			if with["when"] != nil && kind != "episode" {
				return []flow.Problem{settingProblem("when", "only an episode has a time; kind is %s", firstText(kind, "fact"))}
			}
			if with["key"] != nil && kind == "episode" {
				return []flow.Problem{settingProblem("key", "an episode has no key: a later one does not replace it")}
			}
			return nil
		},
		Examples: []flow.Example{{
			Name: "remember and recall",
			Flow: `
weir: 1
name: diet
inputs:
  diet: {type: text, required: true}
nodes:
  keep: {type: remember, with: {text: "Eats {{ run.inputs.diet }}.", key: diet}}
  again: {type: recall, after: keep, with: {query: diet}}
  first: {type: transform, in: {items: "{{ again.items }}"}, with: {expr: "inputs.items[0].text"}}
outputs: {version: "{{ keep.version }}", text: "{{ first.value }}"}
`,
			User:    "ada",
			Inputs:  map[string]any{"diet": "no meat"},
			Outputs: map[string]any{"version": 1, "text": "Eats no meat."},
		}},
	}), memoryWriteTool)
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (n *rememberNode) setDefaults() { n.Kind = firstText(n.Kind, "fact") }

// Run writes the item.
func (n *rememberNode) Run(ctx *node.Ctx) error {
	arguments, err := templateArguments(ctx, map[string]template{"text": n.Text, "key": n.Key, "tags": n.Tags, "when": n.When})
	if err != nil {
		return err
	}
	arguments["kind"] = n.Kind
	o, _, err := callMemory(ctx, memoryWriteTool, arguments)
	if err != nil {
		return err
	}
	outputMembers(ctx, o, "id", "version", "known")
	return nil
}
