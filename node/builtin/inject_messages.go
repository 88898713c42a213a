package builtin

import (
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// injectMessagesNode adds messages to a context.
type injectMessagesNode struct {
	Messages []newMessage `json:"messages"`
	Place    string       `json:"place"`
}

// The places of injected messages.
const (
	placeAppend  = "append"
	placePrepend = "prepend"
)

func injectMessagesType() node.Type {
	return define[injectMessagesNode](&flow.TypeSpec{
		Name:     "injectMessages",
		Category: "context",
		Summary:  "Adds messages to a context without calling a model.",
		Doc: `The messages go to the end of the history of the context on the ` + "`context`" + ` port, else of
the main context: first those of the settings, then those of the ` + "`messages`" + ` port, all
or none. With ` + "`place: prepend`" + ` they go before all other messages.

A message whose ` + "`id`" + ` the history knows replaces that message and keeps its place: models
see the new text, and the journal keeps both. Without an id the message gets one from the
node's path, so a node that runs again says nothing twice.

| setting | what |
|---|---|
| ` + "`messages`" + ` | a list of ` + "`{role, text, id, pinned, priority}`" + `; ` + "`text`" + ` is a template, ` + "`role`" + ` is ` + "`user`" + ` (default), ` + "`assistant`" + ` or ` + "`system`" + ` |
| ` + "`place`" + ` | ` + "`append`" + ` (default) or ` + "`prepend`" + ` |

**Prepending** writes the history of the context again, after the new messages: its cost grows with the
length of the history, and the next model call repeats no cached prefix. In a session, give the messages
ids: without, every round prepends its own. In an iteration with ` + "`isolation: fork`" + ` they come first in the
context of that iteration, and reach the main context at its end, as all messages of an iteration do.

**Priority.** If a history is too long for a call, the messages with the lowest ` + "`priority`" + ` (1 to 100, default 50) are
left out first, and among equal ones the oldest. A message with calls and its results have the highest priority among them. ` + "`pinned`" + ` messages always stay.

The ` + "`messages`" + ` port also takes such a list, or one text, which becomes a user message. Text from
a port is never evaluated as a template.

| output | what |
|---|---|
| ` + "`context`" + ` | the context's handle |
| ` + "`ids`" + ` | the ids of the messages, in order |
| ` + "`count`" + ` | how many there are |`,
		Ports: flow.Ports{
			In: []flow.Port{
				contextIn(),
				{Name: "messages", Type: flow.TypeAny, Description: "More messages: a list, one message, or a text."},
			},
			Out: []flow.Port{
				contextOut(),
				{Name: "ids", Type: flow.TypeList, Description: "The ids of the messages."},
				{Name: "count", Type: flow.TypeNumber, Description: "How many messages."},
			},
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"messages": messagesSchema("What to say, in order."),
			"place":    choiceSchema("Where the messages go: after all others (default), or before.", placeAppend, placePrepend),
		}),
		Context:  flow.ContextWrite,
		Inline:   true,
		Examples: injectExamples(),
	})
}

func injectExamples() []flow.Example {
	return []flow.Example{{
		Name: "an example to follow",
		Flow: `
weir: 1
name: few-shot
context: {model: script/demo}
nodes:
  shots:
    type: injectMessages
    with:
      messages:
        - {role: user, text: "cat"}
        - {role: assistant, text: "animal"}
  ask:
    type: llmRequest
    in: {context: "{{ shots.context }}", message: "oak"}
outputs: {count: "{{ shots.count }}", kind: "{{ ask.text }}"}
`,
		Script:  []string{"plant"},
		Outputs: map[string]any{"count": 2, "kind": "plant"},
	}, {
		Name: "examples before the conversation",
		Flow: `
weir: 1
name: examples-first
context: {model: script/demo}
nodes:
  talk: {type: injectMessages, with: {messages: [{text: oak}]}}
  shots:
    type: injectMessages
    in: {context: "{{ talk.context }}"}
    with:
      place: prepend
      messages: [{id: shot, text: cat}, {id: shot-answer, role: assistant, text: animal}]
  say: {type: summarize, in: {context: "{{ shots.context }}"}}
outputs: {count: "{{ shots.count }}", summary: "{{ say.text }}"}
`,
		Script:  []string{"They name things."},
		Outputs: map[string]any{"count": 2, "summary": "They name things."},
	}}
}

// Run adds the messages.
func (n *injectMessagesNode) Run(ctx *node.Ctx) error {
	m, err := outputContext(ctx)
	if err != nil {
		return err
	}
	msgs, err := n.collect(ctx)
	if err != nil {
		return err
	}
	ids := make([]any, len(msgs))
	if n.Place == placePrepend {
		said, err := m.Prepend(msgs...)
		if err != nil {
			return permanentError(CodeInput, "the messages: %v", err)
		}
		for i, msg := range said {
			ids[i] = msg.ID
		}
	} else {
		for i, msg := range msgs {
			said, err := m.Upsert(msg)
			if err != nil {
				return permanentError(CodeInput, "message %d: %v", i+1, err)
			}
			ids[i] = said.ID
		}
	}
	ctx.Output("ids", ids)
	ctx.Output("count", int64(len(ids)))
	return nil
}

// collect gathers the messages of the settings and of the port.
func (n *injectMessagesNode) collect(ctx *node.Ctx) ([]convo.Message, error) {
	id := func(i int) string { return ctx.MessageID(fmt.Sprintf("%s.%d", ctx.Info().Path, i+1)) }
	var msgs []convo.Message
	for _, s := range n.Messages {
		msg, err := s.message(ctx, id(len(msgs)))
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, msg)
	}
	in, ok := ctx.Input("messages")
	if !ok {
		return msgs, nil
	}
	list, isList := in.([]any)
	if !isList {
		list = []any{in}
	}
	for i, v := range list {
		msg, err := messageOf(v, id(len(msgs)))
		if err != nil {
			return nil, permanentError(CodeInput, "messages, element %d: %v", i, err)
		}
		msgs = append(msgs, msg)
	}
	return msgs, nil
}

// messageOf converts a value from a port to a message: an object with role and text, or any
// other value as a user's message. Fallback is the id for a value without one.
func messageOf(v engine.Value, fallback string) (convo.Message, error) {
	o, ok := v.(map[string]any)
	if !ok || o["role"] == nil {
		return convo.Message{ID: fallback, Role: convo.User, Text: node.TextOf(v)}, nil
	}
	if err := node.CheckMessage(o); err != nil {
		return convo.Message{}, err
	}
	role, _ := o["role"].(string)
	msg := convo.Message{ID: fallback, Role: convo.Role(role), Text: node.TextOf(o["text"])}
	switch msg.Role {
	case convo.User, convo.Assistant, convo.System:
	case convo.Tool:
		return msg, fmt.Errorf("a tool's result cannot be injected: it belongs to a call")
	default:
		return msg, fmt.Errorf("the role is %s, expected user, assistant or system", describeValue(o["role"]))
	}
	if id, ok := o["id"].(string); ok && id != "" {
		msg.ID = id
	}
	msg.Pinned, _ = o["pinned"].(bool)
	priority, _ := o["priority"].(int64)
	msg.Priority = int(priority)
	var err error
	msg.Parts, err = partsOf(o["parts"])
	return msg, err
}
