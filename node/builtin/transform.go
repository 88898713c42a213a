package builtin

import (
	"maps"
	"slices"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// transformNode computes values with CEL.
type transformNode struct {
	Expr   celExpression            `json:"expr"`
	Fields map[string]celExpression `json:"fields"`
	State  map[string]celExpression `json:"state"`
}

func transformType() node.Type {
	return define[transformNode](&flow.TypeSpec{
		Name:     "transform",
		Aliases:  []string{"filter"},
		Category: "data",
		Summary:  "Computes values with expressions and may write the state.",
		Doc: `Expressions are CEL, written without ` + "`{{ }}`" + `. Whatever is wired to the node, under
any port name, is ` + "`inputs.NAME`" + `; ` + "`state.*`" + ` and ` + "`run.*`" + ` can be read too.

| setting | what |
|---|---|
| ` + "`expr`" + ` | one expression; its result is on the port ` + "`value`" + ` |
| ` + "`fields`" + ` | several, by name: each result is on the port of that name, and ` + "`value`" + ` is the object of all |
| ` + "`state`" + ` | expressions by key of the state they are written to |

Set ` + "`expr`" + ` or ` + "`fields`" + `, not both; ` + "`state`" + ` may be set with either or alone. All expressions
read the state as it was when the node started, also those under ` + "`state`" + `.`,
		Ports: flow.Ports{
			Out:   []flow.Port{{Name: "value", Type: flow.TypeAny, Description: "The result."}},
			AnyIn: true,
		},
		PortsFor: transformPorts,
		Settings: objectSchema(map[string]any{
			"expr":   expressionSchema("One expression."),
			"fields": expressions("Expressions by the name of their output."),
			"state":  expressions("Expressions by the key of the state they are written to."),
		}),
		Check:    checkTransform,
		Replays:  true,
		Inline:   true,
		PureFor:  func(with map[string]any) bool { return with["state"] == nil },
		Writes:   func(with map[string]any) []string { return namesOf(with["state"]) },
		Examples: transformExamples(),
	})
}

func transformExamples() []flow.Example {
	return []flow.Example{{
		Name: "several results",
		Flow: `
weir: 1
name: totals
inputs:
  prices: {type: list, required: true}
nodes:
  sum:
    type: transform
    in: {prices: "{{ run.inputs.prices }}"}
    with:
      fields:
        count: size(inputs.prices)
        dear: inputs.prices.filter(p, p > 10)
outputs: {count: "{{ sum.count }}", dear: "{{ sum.dear }}"}
`,
		Inputs:  map[string]any{"prices": []any{4, 12, 30}},
		Outputs: map[string]any{"count": 3, "dear": []any{12, 30}},
	}, {
		Name: "write the state",
		Flow: `
weir: 1
name: tally
nodes:
  first:
    type: transform
    with: {state: {total: "20 + 1"}}
  second:
    type: transform
    after: first
    with: {expr: state.total * 2}
outputs: {double: "{{ second.value }}"}
`,
		Outputs: map[string]any{"double": 42},
	}}
}

// expressions returns the JSON Schema of expressions by name.
func expressions(description string) map[string]any {
	s := settingSchema("object", description)
	s["additionalProperties"] = expressionSchema("An expression.")
	return s
}

// transformPorts has an output for each field.
func transformPorts(with map[string]any) flow.Ports {
	p := flow.Ports{
		Out:   []flow.Port{{Name: "value", Type: flow.TypeAny, Description: "The result."}},
		AnyIn: true,
	}
	for _, name := range namesOf(with["fields"]) {
		if name != "value" {
			p.Out = append(p.Out, flow.Port{Name: name, Type: flow.TypeAny, Description: "The field of that name."})
		}
	}
	return p
}

func checkTransform(with map[string]any) []flow.Problem {
	var problems []flow.Problem
	if with["expr"] != nil && with["fields"] != nil {
		problems = append(problems, settingProblem("fields", "expr and fields are both given; expected one of them"))
	}
	if with["expr"] == nil && with["fields"] == nil && with["state"] == nil {
		problems = append(problems, settingProblem("", "nothing to compute; expected expr, fields or state"))
	}
	for _, name := range namesOf(with["fields"]) {
		if !flow.IsPortName(name) {
			problems = append(problems, settingProblem("fields", "%q cannot be the name of a field: it is empty, longer than %d characters or has control characters", name, flow.MaxPortName))
		}
		if name == "value" || name == "error" {
			problems = append(problems, settingProblem("fields."+name, "a field cannot be called %s: the node has a port of that name", name))
		}
	}
	return problems
}

// namesOf lists the keys of an object in alphabetical order; none of anything else.
func namesOf(v any) []string {
	m, _ := v.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// Run evaluates everything, then writes.
func (n *transformNode) Run(ctx *node.Ctx) error {
	updates := make(map[string]any, len(n.State))
	for _, key := range slices.Sorted(maps.Keys(n.State)) {
		v, err := n.State[key].value(ctx, "state."+key)
		if err != nil {
			return err
		}
		updates[key] = v
	}
	if err := n.results(ctx); err != nil {
		return err
	}
	return ctx.State().Update(updates)
}

func (n *transformNode) results(ctx *node.Ctx) error {
	if n.Expr.isSet() {
		v, err := n.Expr.value(ctx, "expr")
		if err != nil {
			return err
		}
		ctx.Output("value", v)
		return nil
	}
	if n.Fields == nil {
		return nil
	}
	all := make(map[string]any, len(n.Fields))
	for _, name := range slices.Sorted(maps.Keys(n.Fields)) {
		v, err := n.Fields[name].value(ctx, "fields."+name)
		if err != nil {
			return err
		}
		all[name] = v
		ctx.Output(name, v)
	}
	ctx.Output("value", all)
	return nil
}
