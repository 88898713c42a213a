package builtin

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// manualInputNode gives a preset text in place of a person.
type manualInputNode struct {
	Text    template `json:"text"`
	History bool     `json:"history"`
}

func manualInputType() node.Type {
	return define[manualInputNode](&flow.TypeSpec{
		Name:     "manualInput",
		Category: "context",
		Summary:  "Adds a preset text to the conversation, in place of a person's answer.",
		Doc: `Takes the place of a ` + "`userInput`" + ` node without waiting: the text is in the settings.
Use it for a first message that is always the same, and to run a conversation
without a person.

| setting | meaning |
|---|---|
| ` + "`text`" + ` | a template; reads ` + "`inputs.*`, `state.*` and `run.*`" + ` |
| ` + "`history`" + ` | also append the text to the context as a user message (default false) |

Without ` + "`history`" + ` the text becomes the context's current output, which an
` + "`llmRequest`" + ` behind a context edge takes as its message. With it the text is in the
history, under the id ` + "`PATH.text`" + `, and is not added twice.`,
		Ports: flow.Ports{
			In:    []flow.Port{contextIn()},
			Out:   messagePorts(),
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"text":    templateSchema("string", "The text."),
			"history": settingSchema("boolean", "Append the text to the context as a user message. Default: false."),
		}, "text"),
		Context: flow.ContextWrite,
		Replays: true,
		Inline:  true,
		Examples: []flow.Example{{
			Name: "a conversation without a person",
			Flow: `
weir: 1
name: preset
context: {model: script/demo}
nodes:
  begin: {type: start}
  ask:
    type: manualInput
    in: {context: "{{ begin.context }}"}
    with: {text: "What is a weir?"}
  answer:
    type: llmRequest
    in: {context: "{{ ask.context }}"}
outputs: {answer: "{{ answer.text }}"}
`,
			Script:  []string{"A low dam."},
			Outputs: map[string]any{"answer": "A low dam."},
		}},
	})
}

// Run outputs the text.
func (n *manualInputNode) Run(ctx *node.Ctx) error {
	text, err := n.Text.text(ctx, "text")
	if err != nil {
		return err
	}
	return outputMessage(ctx, text, text, n.History)
}

// messagePorts returns the outputs of userInput and manualInput.
func messagePorts() []flow.Port {
	return []flow.Port{
		{Name: "text", Type: flow.TypeText, Description: "What was said, as text."},
		{Name: "value", Type: flow.TypeAny, Description: "What was said, of the type the schema gives it."},
		contextOut(),
	}
}

// outputMessage outputs what a person said. With history, it is added as a message whose id
// is the name of the output, so that a model call with this input recognises it. Without
// history, it becomes the current output of the context.
func outputMessage(ctx *node.Ctx, text string, value any, history bool) error {
	m, err := outputContext(ctx)
	if err != nil {
		return err
	}
	output := text
	if history {
		output = ""
		said := convo.Message{ID: ctx.MessageID(ctx.Info().Path + ".text"), Role: convo.User, Text: text}
		if _, err := m.Upsert(said); err != nil {
			return err
		}
	}
	if err := m.SetOutput(output); err != nil {
		return err
	}
	ctx.Output("text", text)
	ctx.Output("value", value)
	return nil
}
