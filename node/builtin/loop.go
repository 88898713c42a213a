package builtin

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
)

// defaultLoopMax is how often a loop runs where its settings give no max.
const defaultLoopMax = 100

// loopNode runs its body again and again.
type loopNode struct {
	Until celExpression `json:"until"`
	Max   int           `json:"max"`
	AtMax string        `json:"atMax"`
}

func loopType() node.Type {
	return define[loopNode](&flow.TypeSpec{
		Name:     "loop",
		Category: "control",
		Summary:  "Runs a body of nodes until a condition holds.",
		Doc: `The nodes under ` + "`body`" + ` run, at least once; then ` + "`until`" + ` is evaluated, and they run again as
long as it is false.

| setting | what |
|---|---|
| ` + "`body`" + ` | ` + "`nodes`" + ` and ` + "`outputs`" + `, as in a flow |
| ` + "`until`" + ` | CEL, bare; reads ` + "`outputs.*`" + ` (the body's outputs in the iteration that just ended), ` + "`inputs.*`" + ` (what came into the loop), ` + "`state.*`" + ` and ` + "`run.*`" + ` |
| ` + "`max`" + ` | the most iterations (default 100; without ` + "`until`" + `: exactly this many) |
| ` + "`atMax`" + ` | when the condition still does not hold then: ` + "`fail`" + ` (default) with ` + "`loop_limit`" + `, or ` + "`stop`" + ` and continue |

In the ` + "`in:`" + ` of the body's nodes, and in its outputs, ` + "`inputs.*`" + ` are the values of the loop's own
` + "`in:`" + `, under any names. From the second iteration on, an output of the previous iteration replaces the input of the same
name; so a body with the input and output ` + "`draft`" + ` works on its draft. ` + "`inputs.index`" + ` counts
iterations from 0. An output that an iteration did not give (it is one reference to a node that was skipped) is
absent in the next, whatever the loop's own ` + "`in:`" + ` gave, and reading it is an error; to keep the value, write
` + "`{{ has(improve.text) ? improve.text : inputs.draft }}`" + `. A node of the body has the path ` + "`LOOP#2/NODE`" + ` in the second.

The loop's outputs are those of the last iteration, and ` + "`iterations`" + `, how many there were.`,
		Ports: flow.Ports{
			Out:   []flow.Port{{Name: "iterations", Type: flow.TypeNumber, Description: "How many iterations there were."}},
			AnyIn: true, AnyOut: true,
		},
		Settings: objectSchema(map[string]any{
			"body":  settingSchema("object", "The nodes to run, and their outputs."),
			"until": expressionSchema("Ends the loop when it is true."),
			"max": map[string]any{
				"type": "integer", "minimum": 1, "maximum": 1_000_000,
				"description": "The most iterations. Default: 100.",
			},
			"atMax": choiceSchema("What to do when max is reached and until does not hold.", "fail", "stop"),
		}),
		Check: func(with map[string]any) []flow.Problem {
			if with["until"] == nil && with["max"] == nil {
				return []flow.Problem{settingProblem("", "expected until, max or both: the loop has no end")}
			}
			if with["until"] == nil && with["atMax"] != nil {
				return []flow.Problem{settingProblem("atMax", "without until every iteration up to max takes place, and the loop then ends: atMax has no effect")}
			}
			return nil
		},
		Composite:  true,
		BodyInputs: []string{"index"},
		Replays:    true,
		Inline:     true,
		Examples:   loopExamples(),
	})
}

func loopExamples() []flow.Example {
	return []flow.Example{{
		Name: "double until it is enough",
		Flow: `
weir: 1
name: doubling
nodes:
  grow:
    type: loop
    in: {n: 1}
    with:
      until: outputs.n >= 50
      body:
        nodes:
          double: {type: transform, in: {n: "{{ inputs.n }}"}, with: {expr: inputs.n * 2}}
        outputs: {n: "{{ double.value }}"}
outputs: {n: "{{ grow.n }}", times: "{{ grow.iterations }}"}
`,
		Outputs: map[string]any{"n": 64, "times": 6},
	}, {
		Name: "a conversation until a person says bye",
		Flow: `
weir: 1
name: chat
context: {model: script/demo, system: You are brief.}
nodes:
  talk:
    type: loop
    with:
      until: outputs.said == 'bye'
      body:
        nodes:
          ask: {type: userInput, with: {prompt: "You:"}}
          answer: {type: llmRequest, in: {message: "{{ ask.text }}"}}
        outputs: {said: "{{ ask.text }}", answer: "{{ answer.text }}"}
outputs: {last: "{{ talk.answer }}", turns: "{{ talk.iterations }}"}
`,
		Answers: map[string]any{"talk#1/ask": "hello", "talk#2/ask": "bye"},
		Script:  []string{"Hello.", "See you."},
		Outputs: map[string]any{"last": "See you.", "turns": 2},
	}, {
		Name: "a condition that never holds",
		Flow: `
weir: 1
name: endless
nodes:
  spin:
    type: loop
    with:
      until: "false"
      max: 3
      body:
        nodes:
          step: {type: transform, in: {i: "{{ inputs.index }}"}, with: {expr: inputs.i}}
        outputs: {i: "{{ step.value }}"}
outputs: {i: "{{ spin.i }}"}
`,
		Error: CodeLoopLimit,
	}}
}

func (n *loopNode) setDefaults() {
	if n.Max == 0 {
		n.Max = defaultLoopMax
	}
}

// Run reads the outputs of the last iteration, and either requests another iteration or
// ends with these outputs.
func (n *loopNode) Run(ctx *node.Ctx) error {
	count := ctx.Iterated()
	if count == 0 {
		return ctx.Expand([]engine.Values{n.next(ctx, nil, 0)}, 1)
	}
	newest := ctx.Iterations()
	last := newest[len(newest)-1]
	end, err := n.ended(ctx, last, count)
	if err != nil {
		return err
	}
	if !end {
		return ctx.Expand([]engine.Values{n.next(ctx, last, count)}, 1)
	}
	for _, o := range last {
		ctx.Output(o.Name, o.Value)
	}
	ctx.Output("iterations", int64(count))
	return nil
}

// ended reports whether the loop is over after count iterations.
func (n *loopNode) ended(ctx *node.Ctx, last engine.Values, count int) (bool, error) {
	if !n.Until.isSet() {
		return count >= n.Max, nil
	}
	holds, err := n.Until.isTrue(iterationVars{ctx, last.Map()}, "until")
	if err != nil || holds {
		return holds, err
	}
	if count < n.Max {
		return false, nil
	}
	if n.AtMax == "stop" {
		return true, nil
	}
	return false, withHint(permanentError(CodeLoopLimit, "until does not hold after %d iterations", count),
		"raise max, or set atMax: stop to continue with the last iteration's outputs")
}

// next returns the inputs of iteration number index, from 0: the inputs of the loop,
// replaced by the outputs of the previous iteration. If that iteration left an output
// without a value, the input has none either, so that reading it is an error and never
// yields the initial value.
func (n *loopNode) next(ctx *node.Ctx, last engine.Values, index int) engine.Values {
	given := ctx.Inputs()
	if index > 0 {
		for _, name := range ctx.BodyOutputs() {
			delete(given, name)
		}
	}
	for _, o := range last {
		given[o.Name] = o.Value
	}
	given["index"] = int64(index)
	return sortedValues(given)
}

// iterationVars are the names that a loop's condition reads.
type iterationVars struct {
	ctx     *node.Ctx
	outputs map[string]any
}

// Lookup resolves outputs, and whatever the node itself reads.
func (v iterationVars) Lookup(name string) (any, bool) {
	if name == "outputs" {
		return v.outputs, true
	}
	return v.ctx.Lookup(name)
}

var _ expr.Vars = iterationVars{}
