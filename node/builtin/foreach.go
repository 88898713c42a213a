package builtin

import (
	"maps"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// forEachNode runs its body once for every item of a list.
type forEachNode struct {
	Concurrency int `json:"concurrency"`
}

func forEachType() node.Type {
	return define[forEachNode](&flow.TypeSpec{
		Name:     "forEach",
		Category: "control",
		Summary:  "Runs a body of nodes once for every item of a list.",
		Doc: `| setting | what |
|---|---|
| ` + "`body`" + ` | ` + "`nodes`" + ` and ` + "`outputs`" + `, as in a flow |
| ` + "`concurrency`" + ` | how many iterations may run at once (default 1) |

The list comes in on the port ` + "`items`" + `. In the ` + "`in:`" + ` of the body's nodes, and in its outputs,
` + "`inputs.item`" + ` is the item and ` + "`inputs.index`" + ` its place, from 0; whatever else is wired to the
` + "`forEach`" + ` is ` + "`inputs.NAME`" + ` in every iteration. A node of the body has the path ` + "`NODE#2/INNER`" + `
for the second item.

| output | what |
|---|---|
| ` + "`results`" + ` | a list in the order of the items, whichever ended first: for each the object of the body's outputs. Where the body's only output is called ` + "`result`" + `, the values themselves; null where an iteration gave none |
| ` + "`count`" + ` | how many items there were |

With a ` + "`concurrency`" + ` over 1 every iteration works in a lane of its own: it sees contexts and
state as they were before the first, and what the lanes did is joined in the order of the
items. An empty list gives empty results. An iteration that fails fails the node.`,
		Ports: flow.Ports{
			In: []flow.Port{{Name: "items", Type: flow.TypeList, Required: true, Description: "The list."}},
			Out: []flow.Port{
				{Name: "results", Type: flow.TypeList, Description: "What the iterations gave, in the order of the items."},
				{Name: "count", Type: flow.TypeNumber, Description: "How many items there were."},
			},
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"body": settingSchema("object", "The nodes to run, and their outputs."),
			"concurrency": map[string]any{
				"type": "integer", "minimum": 1, "maximum": 1000,
				"description": "How many iterations may run at once. Default: 1.",
			},
		}),
		Composite:  true,
		BodyInputs: []string{"item", "index"},
		Replays:    true,
		Inline:     true,
		Examples:   forEachExamples(),
	})
}

func forEachExamples() []flow.Example {
	return []flow.Example{{
		Name: "the values themselves",
		Flow: `
weir: 1
name: squares
inputs:
  numbers: {type: list, required: true}
nodes:
  each:
    type: forEach
    in: {items: "{{ run.inputs.numbers }}"}
    with:
      body:
        nodes:
          square: {type: transform, in: {n: "{{ inputs.item }}"}, with: {expr: inputs.n * inputs.n}}
        outputs: {result: "{{ square.value }}"}
outputs: {squares: "{{ each.results }}", count: "{{ each.count }}"}
`,
		Inputs:  map[string]any{"numbers": []any{1, 2, 3}},
		Outputs: map[string]any{"squares": []any{1, 4, 9}, "count": 3},
	}, {
		Name: "objects, two at a time",
		Flow: `
weir: 1
name: names
nodes:
  each:
    type: forEach
    in: {items: [Ada, Bob], greeting: Hello}
    with:
      concurrency: 2
      body:
        nodes:
          greet:
            type: template
            in: {word: "{{ inputs.greeting }}", name: "{{ inputs.item }}"}
            with: {text: "{{ inputs.word }} {{ inputs.name }}"}
        outputs: {line: "{{ greet.text }}", place: "{{ inputs.index }}"}
outputs: {lines: "{{ each.results }}"}
`,
		Outputs: map[string]any{"lines": []any{
			map[string]any{"line": "Hello Ada", "place": 0},
			map[string]any{"line": "Hello Bob", "place": 1},
		}},
	}}
}

// Run asks for all iterations at once, and collects their results.
func (n *forEachNode) Run(ctx *node.Ctx) error {
	v, _ := ctx.Input("items")
	items, ok := v.([]any)
	if !ok {
		return permanentError(CodeInput, "items is %s, expected a list", describeValue(v))
	}
	done := ctx.Iterations()
	if len(done) < len(items) {
		return ctx.Expand(iterationInputs(ctx, items), max(n.Concurrency, 1))
	}
	ctx.Output("results", collectResults(done))
	ctx.Output("count", int64(len(items)))
	return nil
}

// iterationInputs is what each iteration is given.
func iterationInputs(ctx *node.Ctx, items []any) []engine.Values {
	shared := ctx.Inputs()
	delete(shared, "items")
	out := make([]engine.Values, len(items))
	for i, item := range items {
		given := maps.Clone(shared)
		given["item"], given["index"] = item, int64(i)
		out[i] = sortedValues(given)
	}
	return out
}

// collectResults lists the outputs of the iterations: as objects, or, where no
// iteration has any output but `result`, the values of that.
func collectResults(done []engine.Values) []any {
	bare := len(done) > 0 && slices.ContainsFunc(done, func(v engine.Values) bool { return len(v) > 0 })
	for _, outputs := range done {
		for _, o := range outputs {
			bare = bare && o.Name == "result"
		}
	}
	results := make([]any, len(done))
	for i, outputs := range done {
		if bare {
			results[i], _ = outputs.Get("result")
		} else {
			results[i] = outputs.Map()
		}
	}
	return results
}

// sortedValues puts values in the order of their names.
func sortedValues(m map[string]any) engine.Values {
	out := make(engine.Values, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, engine.Named{Name: name, Value: m[name]})
	}
	return out
}
