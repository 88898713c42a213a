package builtin

import (
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// mergeNode joins branches into one line.
type mergeNode struct {
	Mode string `json:"mode"`
}

func mergeType() node.Type {
	return define[mergeNode](&flow.TypeSpec{
		Name:     "merge",
		Category: "control",
		Summary:  "Joins branches: passes on the one value that arrived, or all values as a list.",
		Doc: `Wire the ends of the branches to the port ` + "`value`" + `. The node runs when each branch has
either given a value or was skipped. It is skipped if all branches were skipped.

| setting | what |
|---|---|
| ` + "`mode`" + ` | ` + "`first`" + ` (default): of branches that exclude each other, the one that came; two that came fail the run. ` + "`coalesce`" + `: of the values that came, the first in the order of the edges; the others are not used. ` + "`list`" + `: every value that came, in the order of the edges |

With ` + "`coalesce`" + ` the node waits until each branch has given a value or was skipped, so that the result does not depend on which
was faster. Null is a value.

The value is passed on unchanged. A message of a person that passes through a ` + "`merge`" + ` keeps
its id, so that it is not added to a conversation twice.`,
		Ports:    mergePorts(nil),
		PortsFor: mergePorts,
		Settings: objectSchema(map[string]any{
			"mode": choiceSchema("What to pass on.", "first", "coalesce", "list"),
		}),
		Pure:        true,
		Inline:      true,
		PassThrough: true,
		Examples: []flow.Example{{
			Name: "two branches, one end",
			Flow: `
weir: 1
name: rejoin
inputs:
  ok: {type: bool, required: true}
nodes:
  check: {type: decision, with: {expr: run.inputs.ok}}
  yes: {type: template, after: check.true, with: {text: "good"}}
  no: {type: template, after: check.false, with: {text: "bad"}}
  end:
    type: merge
    in: {value: ["{{ yes.text }}", "{{ no.text }}"]}
outputs: {verdict: "{{ end.value }}"}
`,
			Inputs:  map[string]any{"ok": false},
			Outputs: map[string]any{"verdict": "bad"},
		}, {
			Name: "the first source that gives anything",
			Flow: `
weir: 1
name: fallback
inputs:
  known: {type: bool, required: true}
nodes:
  check: {type: decision, with: {expr: run.inputs.known}}
  record: {type: template, after: check.true, with: {text: "from the record"}}
  default: {type: template, with: {text: "the default"}}
  best:
    type: merge
    in: {value: ["{{ record.text }}", "{{ default.text }}"]}
    with: {mode: coalesce}
outputs: {best: "{{ best.value }}"}
`,
			Inputs:  map[string]any{"known": true},
			Outputs: map[string]any{"best": "from the record"},
		}, {
			Name: "everything that came",
			Flow: `
weir: 1
name: collect
nodes:
  one: {type: template, with: {text: "1"}}
  two: {type: template, with: {text: "2"}}
  all:
    type: merge
    in: {value: ["{{ one.text }}", "{{ two.text }}"]}
    with: {mode: list}
outputs: {all: "{{ all.value }}"}
`,
			Outputs: map[string]any{"all": []any{"1", "2"}},
		}},
	})
}

// mergePorts makes the port exclusive, or a list with mode: list.
func mergePorts(with map[string]any) flow.Ports {
	in := flow.Port{Name: "value", Type: flow.TypeAny, Required: true, Description: "The ends of the branches."}
	out := flow.Port{Name: "value", Type: flow.TypeAny, Description: "What came."}
	switch with["mode"] {
	case "list":
		in.Many = true
		out.Type = flow.TypeList
	case "coalesce":
		in.Many = true
	default:
		in.Exclusive = true
	}
	return flow.Ports{In: []flow.Port{in}, Out: []flow.Port{out}}
}

// Run outputs the value that arrived.
func (n *mergeNode) Run(ctx *node.Ctx) error {
	if n.Mode != "coalesce" {
		return outputValue(ctx)
	}
	v, _ := ctx.Input("value")
	if came, ok := v.([]any); ok && len(came) > 0 {
		ctx.Output("value", came[0])
	}
	return nil
}

// outputValue outputs the value of the port value, if it has one.
func outputValue(ctx *node.Ctx) error {
	if v, ok := ctx.Input("value"); ok {
		ctx.Output("value", v)
	}
	return nil
}
