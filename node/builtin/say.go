package builtin

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// sayNode shows a text to the person in the middle of a flow.
type sayNode struct {
	Text    template `json:"text"`
	History bool     `json:"history"`
}

func sayType() node.Type {
	return define[sayNode](&flow.TypeSpec{
		Name:     "say",
		Category: "context",
		Summary:  "Shows the person a text while the flow continues.",
		Doc: `The text is streamed to those who follow the run, like the answer of a model: in the terminal, in
` + "`weir chat`" + ` and in the streams of the API. It calls no model and asks no question.

| setting | what |
|---|---|
| ` + "`text`" + ` | the text; a template over ` + "`inputs.*`, `state.*` and `run.*`" + `. An empty text shows nothing |
| ` + "`history`" + ` | also add the text to the context as a message of the assistant, with the id ` + "`PATH.text`" + ` (default false) |

| output | what |
|---|---|
| ` + "`text`" + ` | the text |
| ` + "`context`" + ` | the context's handle |

**Order.** The text is shown when the node runs, after everything that it depends on is durable. With ` + "`history: true`" + ` it
enters the conversation when the node completes. In the lane of a composite (` + "`isolation: fork`" + `) it enters when that composite
completes; the iterations of a parallel ` + "`forEach`" + ` follow each other in the order of their index, although their texts may have been shown in another
order.

**Retraction.** If the node fails, is cancelled or runs again after a crash, the stream retracts the text, and readers discard it. This also
happens to a text in a lane if the composite fails, because its lane is discarded. Two ` + "`say`" + ` nodes that are not ordered by an edge show their texts
in any order.

**Forks.** A fork that starts after the node shares the message and does not show the text again.`,
		Ports: flow.Ports{
			In: []flow.Port{contextIn()},
			Out: []flow.Port{
				{Name: "text", Type: flow.TypeText, Description: "The text."},
				contextOut(),
			},
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"text":    templateSchema("string", "The text."),
			"history": settingSchema("boolean", "Add the text to the context as a message of the assistant. Default: false."),
		}, "text"),
		ContextFor: func(with map[string]any) flow.ContextUse {
			if history, _ := with["history"].(bool); history {
				return flow.ContextWrite
			}
			return flow.ContextRead
		},
		Replays: true,
		Examples: []flow.Example{{
			Name: "progress in a conversation",
			Flow: `
weir: 1
name: progress
context: {model: script/demo}
inputs:
  order: {type: text, required: true}
nodes:
  begin:
    type: say
    with: {text: "I look up order {{ run.inputs.order }}.", history: true}
  answer:
    type: llmRequest
    in: {context: "{{ begin.context }}", message: "Is it on its way?"}
outputs: {said: "{{ begin.text }}", answer: "{{ answer.text }}"}
`,
			Inputs:  map[string]any{"order": "A-7"},
			Script:  []string{"It is."},
			Outputs: map[string]any{"said": "I look up order A-7.", "answer": "It is."},
		}},
	})
}

// Run shows the text and, with history, adds it to the context.
func (n *sayNode) Run(ctx *node.Ctx) error {
	text, err := n.Text.text(ctx, "text")
	if err != nil {
		return err
	}
	m, err := outputContext(ctx)
	if err != nil {
		return err
	}
	ctx.Output("text", text)
	if text == "" {
		return nil
	}
	if n.History {
		message := convo.Message{ID: ctx.MessageID(ctx.Info().Path + ".text"), Role: convo.Assistant, Text: text}
		if _, err := m.Upsert(message); err != nil {
			return err
		}
	}
	ctx.Emit(llm.Chunk{Text: text})
	return nil
}
