package builtin

import (
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// portalNode outputs a value under a name.
type portalNode struct {
	Name string `json:"name"`
}

func portalOutType() node.Type {
	return define[portalNode](&flow.TypeSpec{
		Name:     "portalOut",
		Aliases:  []string{"portalOutput"},
		Category: "control",
		Summary:  "Names a value, so that portalIn nodes can take it without a drawn edge.",
		Doc: `Avoids long lines in a drawing: wire a value to ` + "`portalOut`" + `, and take it from a
` + "`portalIn`" + ` of the same ` + "`name`" + ` elsewhere. The two are joined by an edge when the flow is
loaded, so order, skipping and types are those of a drawn edge; a cycle through portals is
an error like any cycle (to repeat something, use ` + "`loop`" + `).

| setting | what |
|---|---|
| ` + "`name`" + ` | the portal; one ` + "`portalOut`" + ` in the flow has it, any number of ` + "`portalIn`" + ` |

Any value can pass, a context's handle too.`,
		Ports: flow.Ports{
			In:  []flow.Port{{Name: "value", Type: flow.TypeAny, Required: true, Description: "The value to name."}},
			Out: []flow.Port{{Name: "value", Type: flow.TypeAny, Description: "The same value."}},
		},
		Settings:    portalSettings(),
		Pure:        true,
		Inline:      true,
		PassThrough: true,
		Portal:      "out",
		Examples:    []flow.Example{portalExample()},
	})
}

func portalInType() node.Type {
	return define[portalNode](&flow.TypeSpec{
		Name:     "portalIn",
		Aliases:  []string{"portalInput"},
		Category: "control",
		Summary:  "Takes the value that the portalOut of the same name has named.",
		Doc: `See ` + "`portalOut`" + `. The value is the one that was wired to it.

| setting | what |
|---|---|
| ` + "`name`" + ` | the portal; a ` + "`portalOut`" + ` of this name must be in the same flow or loop body |`,
		Ports: flow.Ports{
			In:  []flow.Port{{Name: "value", Type: flow.TypeAny, Required: true, Description: "Joined to the portalOut by the loader."}},
			Out: []flow.Port{{Name: "value", Type: flow.TypeAny, Description: "The value."}},
		},
		Settings:    portalSettings(),
		Pure:        true,
		Inline:      true,
		PassThrough: true,
		Portal:      "in",
		Examples:    []flow.Example{portalExample()},
	})
}

func portalSettings() map[string]any {
	name := settingSchema("string", "The portal's name.")
	name["minLength"] = 1
	return objectSchema(map[string]any{"name": name}, "name")
}

func portalExample() flow.Example {
	return flow.Example{
		Name: "there and back",
		Flow: `
weir: 1
name: portals
nodes:
  make: {type: template, with: {text: "carried"}}
  leave: {type: portalOut, in: {value: "{{ make.text }}"}, with: {name: parcel}}
  arrive: {type: portalIn, with: {name: parcel}}
  open: {type: template, in: {it: "{{ arrive.value }}"}, with: {text: "{{ inputs.it }} over"}}
outputs: {it: "{{ open.text }}"}
`,
		Outputs: map[string]any{"it": "carried over"},
	}
}

// Run outputs the value.
func (n *portalNode) Run(ctx *node.Ctx) error { return outputValue(ctx) }
