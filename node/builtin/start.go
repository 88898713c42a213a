package builtin

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// startNode outputs the main context and the inputs of the run.
type startNode struct{}

func startType() node.Type {
	return define[startNode](&flow.TypeSpec{
		Name:     "start",
		Aliases:  []string{"defaultContextStart"},
		Category: "flow",
		Summary:  "Begins a flow: outputs the main context and the run's inputs.",
		Doc: `A flow may begin with any node that has no incoming edge, so a ` + "`start`" + ` node is
never required. Use it to draw where a line of context edges begins; flows that name it
` + "`defaultContextStart`" + ` are accepted.

| output | what |
|---|---|
| ` + "`context`" + ` | the handle of the run's main context |
| ` + "`inputs`" + ` | the run's inputs, an object |

Anywhere in the flow ` + "`{{ run.inputs.NAME }}`" + ` reads an input without an edge.`,
		Ports: flow.Ports{Out: []flow.Port{
			contextOut(),
			{Name: "inputs", Type: flow.TypeObject, Description: "The run's inputs."},
		}},
		Settings: objectSchema(map[string]any{}),
		Context:  flow.ContextRead,
		Inline:   true,
		Examples: []flow.Example{{
			Name: "hand the inputs on",
			Flow: `
weir: 1
name: greet
inputs:
  who: {type: text, required: true}
nodes:
  begin: {type: start}
  greet:
    type: template
    in: {given: "{{ begin.inputs }}"}
    with: {text: "Hello {{ inputs.given.who }}"}
outputs: {greeting: "{{ greet.text }}"}
`,
			Inputs:  map[string]any{"who": "Ada"},
			Outputs: map[string]any{"greeting": "Hello Ada"},
		}},
	})
}

// Run sets both outputs.
func (n *startNode) Run(ctx *node.Ctx) error {
	if _, err := outputContext(ctx); err != nil {
		return err
	}
	inputs, err := runInputs(ctx)
	if err != nil {
		return err
	}
	ctx.Output("inputs", inputs)
	return nil
}

// runInputs reads the inputs of the run as an object.
func runInputs(ctx *node.Ctx) (engine.Value, error) {
	run, _ := ctx.Lookup("run")
	vars, _ := run.(map[string]any)
	inputs, err := engine.Normalize(vars["inputs"])
	if err != nil {
		return nil, permanentError(CodeInput, "the run's inputs: %v", err)
	}
	if inputs == nil {
		inputs = map[string]any{}
	}
	return inputs, nil
}
