package builtin

import (
	"fmt"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// identifyUserNode returns the user and the known facts.
type identifyUserNode struct{}

func identifyUserType() node.Type {
	return memoryType(define[identifyUserNode](&flow.TypeSpec{
		Name:     "identifyUser",
		Category: "io",
		Summary:  "Gives the run's user and the facts that are remembered about the user.",
		Doc: `The user is the one that the application has named when it started the run or session. What a person says about their identity has no
influence. The node has no settings.

| output | what |
|---|---|
| ` + "`user`" + ` | the user; empty if the application has named none |
| ` + "`items`" + ` | the facts with a key, newest first, at most 50: a list of ` + "`{id, kind, key, text, tags, at, version}`" + ` |
| ` + "`total`" + ` | how many items the memory has, of all kinds |
| ` + "`text`" + ` | the same as a model is shown it: marked as data |` + fmt.Sprintf(memoryDoc, memoryIdentifyTool),
		Ports: flow.Ports{Out: []flow.Port{
			{Name: "user", Type: flow.TypeText, Description: "The user, empty if not known."},
			{Name: "items", Type: flow.TypeList, Description: "The facts with a key."},
			{Name: "total", Type: flow.TypeNumber, Description: "How many items the memory has."},
			{Name: "text", Type: flow.TypeText, Description: "The same as a model is shown it."},
		}},
		Settings:    objectSchema(map[string]any{}),
		ActsOutside: never,
		Examples: []flow.Example{{
			Name: "a user with one fact",
			Flow: `
weir: 1
name: greeting
nodes:
  keep: {type: remember, with: {text: "Lives in Kiel.", key: home}}
  who: {type: identifyUser, after: keep}
outputs: {user: "{{ who.user }}", total: "{{ who.total }}"}
`,
			User:    "ada",
			Outputs: map[string]any{"user": "ada", "total": 1},
		}},
	}), memoryIdentifyTool)
}

// Run asks the memory.
func (n *identifyUserNode) Run(ctx *node.Ctx) error {
	o, text, err := callMemory(ctx, memoryIdentifyTool, map[string]any{})
	if err != nil {
		return err
	}
	outputMembers(ctx, o, "user", "items", "total")
	ctx.Output("text", text)
	return nil
}
