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
	Concurrency int    `json:"concurrency"`
	OnItemError string `json:"onItemError"`
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
| ` + "`onItemError`" + ` | what an iteration that fails does: ` + "`fail`" + ` fails the node (default), ` + "`null`" + ` puts null in its place in ` + "`results`" + `, ` + "`drop`" + ` leaves it out |

The port ` + "`items`" + ` takes the list. In the ` + "`in:`" + ` of the body's nodes, and in its outputs,
` + "`inputs.item`" + ` is the item and ` + "`inputs.index`" + ` its place, from 0; whatever else is wired to the
` + "`forEach`" + ` is ` + "`inputs.NAME`" + ` in every iteration. A node of the body has the path ` + "`NODE#2/INNER`" + `
for the second item.

| output | what |
|---|---|
| ` + "`results`" + ` | a list in the order of the items, whichever ended first: for each the object of the body's outputs. Where the body's only output is called ` + "`result`" + `, the values themselves; null where an iteration gave none |
| ` + "`count`" + ` | how many items there were |
| ` + "`errors`" + ` | with ` + "`onItemError: null`" + ` or ` + "`drop`" + `: for each iteration that failed, in order, an object with ` + "`index`" + `, ` + "`item`" + `, ` + "`code`" + `, ` + "`message`" + ` and ` + "`node`" + ` |

With a ` + "`concurrency`" + ` over 1 every iteration works in a lane of its own: it sees contexts and
state as they were before the first, and what the lanes did is joined in the order of the
items. An empty list gives empty results.

**Items that fail.** By default, an iteration that fails cancels the others and fails the node. With ` + "`onItemError: null`" + `
or ` + "`drop`" + ` the others continue, and the node completes also if all fail. Each iteration then has a lane of its own
whatever the ` + "`concurrency`" + ` is (` + "`isolation: share`" + ` is refused), and the lane of an iteration that fails is discarded:
its messages and changes of the state are not kept. Its effects are not undone, and what it has spent counts. Its open questions
are closed. An exhausted budget, the ` + "`timeout`" + ` of the node and a cancellation end the whole node. Retries of the body's nodes happen
before an iteration counts as failed.`,
		Ports:    forEachPorts(nil),
		PortsFor: forEachPorts,
		Settings: objectSchema(map[string]any{
			"body": settingSchema("object", "The nodes to run, and their outputs."),
			"concurrency": map[string]any{
				"type": "integer", "minimum": 1, "maximum": 1000,
				"description": "How many iterations may run at once. Default: 1.",
			},
			"onItemError": choiceSchema("What an iteration that fails does: fail the node (default), leave null in the results, or be left out of them.", "fail", "null", "drop"),
		}),
		LanesFor:   toleratesItems,
		Composite:  true,
		BodyInputs: []string{"item", "index"},
		Replays:    true,
		Inline:     true,
		Examples:   forEachExamples(),
	})
}

// forEachPorts adds the port errors if items may fail.
func forEachPorts(with map[string]any) flow.Ports {
	p := flow.Ports{
		In: []flow.Port{{Name: "items", Type: flow.TypeList, Required: true, Description: "The list."}},
		Out: []flow.Port{
			{Name: "results", Type: flow.TypeList, Description: "What the iterations gave, in the order of the items."},
			{Name: "count", Type: flow.TypeNumber, Description: "How many items there were."},
		},
		AnyIn: true,
	}
	if toleratesItems(with) {
		p.Out = append(p.Out, flow.Port{Name: "errors", Type: flow.TypeList, Description: "The iterations that failed, in order."})
	}
	return p
}

// toleratesItems reports whether each iteration fails alone.
func toleratesItems(with map[string]any) bool {
	return with["onItemError"] == "null" || with["onItemError"] == "drop"
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
	}, itemLeftOutExample(), {
		Name: "an item that fails is null",
		Flow: `
weir: 1
name: gaps
nodes:
  each:
    type: forEach
    in: {items: [2, 0, 5]}
    with:
      onItemError: null
      concurrency: 3
      body:
        nodes:
          divide: {type: transform, in: {n: "{{ inputs.item }}"}, with: {expr: 10 / inputs.n}}
        outputs: {result: "{{ divide.value }}"}
outputs: {shares: "{{ each.results }}", codes: "{{ each.errors.map(e, e.code) }}"}
`,
		Outputs: map[string]any{"shares": []any{5, nil, 2}, "codes": []any{"expression_failed"}},
	}}
}

func itemLeftOutExample() flow.Example {
	return flow.Example{
		Name: "an item that fails is left out",
		Flow: `
weir: 1
name: parsing
state: {parsed: {reducer: sum, initial: 0}}
nodes:
  each:
    type: forEach
    in: {items: ["[1, 2]", "[3", "[4]"]}
    with:
      onItemError: drop
      body:
        nodes:
          count: {type: transform, with: {expr: "1", state: {parsed: "1"}}}
          read: {type: transform, after: count, in: {text: "{{ inputs.item }}"}, with: {expr: fromJson(inputs.text)}}
        outputs: {result: "{{ read.value }}"}
  report:
    type: transform
    after: each
    in: {errors: "{{ each.errors }}"}
    with: {expr: "{'parsed': state.parsed, 'failed': inputs.errors.map(e, e.index)}"}
outputs: {lists: "{{ each.results }}", count: "{{ each.count }}", report: "{{ report.value }}"}
`,
		Outputs: map[string]any{
			"lists": []any{[]any{1, 2}, []any{4}}, "count": 3,
			"report": map[string]any{"parsed": 2, "failed": []any{1}},
		},
	}
}

// Run requests all iterations at once, and collects their results.
func (n *forEachNode) Run(ctx *node.Ctx) error {
	v, _ := ctx.Input("items")
	items, ok := v.([]any)
	if !ok {
		return permanentError(CodeInput, "items is %s, expected a list", describeValue(v))
	}
	done := ctx.Iterations()
	if len(done) < len(items) {
		if n.tolerates() {
			return ctx.ExpandTolerant(iterationInputs(ctx, items), max(n.Concurrency, 1))
		}
		return ctx.Expand(iterationInputs(ctx, items), max(n.Concurrency, 1))
	}
	results := collectResults(done)
	if n.tolerates() {
		var failures []any
		results, failures = n.settleFailures(results, items, ctx.ItemErrors())
		ctx.Output("errors", failures)
	}
	ctx.Output("results", results)
	ctx.Output("count", int64(len(items)))
	return nil
}

func (n *forEachNode) tolerates() bool { return n.OnItemError == "null" || n.OnItemError == "drop" }

// settleFailures replaces or removes the results of the iterations that failed, and describes
// the failures.
func (n *forEachNode) settleFailures(results, items []any, errs []*engine.Error) (kept, failures []any) {
	kept, failures = make([]any, 0, len(results)), []any{}
	for i, r := range results {
		var e *engine.Error
		if i < len(errs) {
			e = errs[i]
		}
		switch {
		case e == nil:
			kept = append(kept, r)
			continue
		case n.OnItemError == "null":
			kept = append(kept, nil)
		}
		failures = append(failures, map[string]any{
			"index": int64(i), "item": items[i], "code": e.Code, "message": e.Message, "node": e.Node,
		})
	}
	return kept, failures
}

// iterationInputs returns what each iteration is given.
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

// collectResults lists the outputs of the iterations as objects or, if `result` is the only
// output of every iteration, its values.
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
