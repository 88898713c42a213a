package builtin

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// waitEventNode waits for an outside event.
type waitEventNode struct {
	Name    template       `json:"name"`
	Schema  map[string]any `json:"schema"`
	Timeout duration       `json:"timeout"`

	accepts *node.Schema
}

func waitEventType() node.Type {
	return define[waitEventNode](&flow.TypeSpec{
		Name:      "waitEvent",
		Category:  "control",
		OnlyWaits: true,
		Summary:   "Waits for an event from outside, by name.",
		Doc: `The run pauses until it receives an event of this name: over HTTP, from Go, or with
` + "`weir answer RUN INTERRUPT VALUE`" + `. Waiting costs nothing and outlives the process.

| setting | what |
|---|---|
| ` + "`name`" + ` | the event; a template, so that it can hold an order number: ` + "`paid/{{ state.order }}`" + ` |
| ` + "`schema`" + ` | JSON Schema of the event's value; any value where there is none |
| ` + "`timeout`" + ` | give up after this long: the node fails with ` + "`event_timeout`" + ` |

The event's value is on the port ` + "`value`" + `; an event that does not fit the schema is refused when
it is sent, and the run continues to wait.`,
		Ports: flow.Ports{
			Out:   []flow.Port{{Name: "value", Type: flow.TypeAny, Description: "The event's value."}},
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"name":    templateSchema("string", "The event's name."),
			"schema":  settingSchema("object", "JSON Schema of the event's value."),
			"timeout": durationSchema("How long to wait. Default: for ever."),
		}, "name"),
		Check: checkSchemaSetting,
		Examples: []flow.Example{{
			Name: "a payment",
			Flow: `
weir: 1
name: payment
nodes:
  paid:
    type: waitEvent
    with:
      name: paid
      schema: {type: object, required: [cents], properties: {cents: {type: integer}}}
  thank:
    type: template
    in: {payment: "{{ paid.value }}"}
    with: {text: "{{ inputs.payment.cents }} cents, thank you"}
outputs: {thanks: "{{ thank.text }}"}
`,
			Answers: map[string]any{"paid": map[string]any{"cents": 1200}},
			Outputs: map[string]any{"thanks": "1200 cents, thank you"},
		}},
	})
}

func (n *waitEventNode) finish() error {
	if n.Schema == nil {
		n.Schema = map[string]any{} // any value; nil would be text
	}
	var err error
	if n.accepts, err = node.CompileSchema(n.Schema); err != nil {
		return fmt.Errorf("setting \"schema\": %w", err)
	}
	return nil
}

// Run waits for the event.
func (n *waitEventNode) Run(ctx *node.Ctx) error {
	name, err := n.Name.text(ctx, "name")
	if err != nil {
		return err
	}
	if name == "" {
		return permanentError(CodeExpression, "name: the event's name is empty")
	}
	v, ok, err := ctx.Wait("event", engine.Interrupt{
		Kind: engine.AwaitEvent, Event: name, Schema: n.Schema, Due: deadlineAfter(ctx, n.Timeout),
	})
	if err != nil {
		return err
	}
	if !ok {
		return withHint(permanentError(CodeEventTimeout, "the event %q did not come within %v", name, n.Timeout.Duration),
			"set a longer timeout, or wire the node's error port to continue without the event")
	}
	if err := n.accepts.Check(v); err != nil {
		return permanentError(CodeAnswer, "the event's value %s does not fit the schema: %v", describeValue(v), err)
	}
	ctx.Output("value", v)
	return nil
}
