package builtin

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// userInputNode asks a person and waits.
type userInputNode struct {
	Prompt  template       `json:"prompt"`
	Schema  map[string]any `json:"schema"`
	History bool           `json:"history"`
	Timeout duration       `json:"timeout"`

	accepts *node.Schema
}

func userInputType() node.Type {
	return define[userInputNode](&flow.TypeSpec{
		Name:     "userInput",
		Category: "context", OnlyWaits: true,
		Summary: "Asks a person a question and waits for the answer.",
		Doc: `The run pauses until a person answers: in the terminal, with
` + "`weir answer RUN INTERRUPT VALUE`" + `, over HTTP or from Go. Waiting costs nothing and
outlives the process. The question's id is ` + "`PATH:ask#1`" + `.

| setting | what |
|---|---|
| ` + "`prompt`" + ` | the question; a template over ` + "`inputs.*`, `state.*` and `run.*`" + ` |
| ` + "`schema`" + ` | JSON Schema of the answer; without one any text is an answer |
| ` + "`history`" + ` | also append the answer to the context as a user message (default false) |
| ` + "`timeout`" + ` | give up after this long: the node fails with ` + "`answer_timeout`" + ` |

An answer that does not fit the schema is refused when it is sent, and the run
continues to wait. Typed text is taken as it is where the schema allows text, and read as
JSON otherwise: for ` + "`{type: integer}`" + ` the answer ` + "`42`" + ` is a number.

The answer comes out as ` + "`text`" + ` and, with its type, as ` + "`value`" + `. It also becomes the
context's current output, so that an ` + "`llmRequest`" + ` behind a context edge takes it as
its message. With ` + "`history: true`" + ` it is in the history at once, under the id
` + "`PATH.text`" + `, and is not said twice by the model call that follows.

To continue without an answer, give the node ` + "`onError: {value: ...}`" + ` or wire its
` + "`error`" + ` port.`,
		Ports: flow.Ports{
			In:    []flow.Port{contextIn()},
			Out:   messagePorts(),
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"prompt":  templateSchema("string", "The question."),
			"schema":  settingSchema("object", "JSON Schema of the answer; text where there is none."),
			"history": settingSchema("boolean", "Append the answer to the context as a user message. Default: false."),
			"timeout": durationSchema("How long to wait for an answer. Default: for ever."),
		}),
		Check:   checkSchemaSetting,
		Context: flow.ContextWrite,
		Replays: true,
		Inline:  true,
		Examples: []flow.Example{{
			Name: "approve an amount",
			Flow: `
weir: 1
name: approve
inputs:
  amount: {type: number, required: true}
nodes:
  ask:
    type: userInput
    with:
      prompt: "Approve {{ run.inputs.amount }} EUR?"
      schema: {type: string, enum: [approve, reject]}
outputs: {decision: "{{ ask.text }}"}
`,
			Inputs:  map[string]any{"amount": 250},
			Answers: map[string]any{"ask": "approve"},
			Outputs: map[string]any{"decision": "approve"},
		}, {
			Name: "a number",
			Flow: `
weir: 1
name: age
nodes:
  ask:
    type: userInput
    with: {prompt: "How old are you?", schema: {type: integer, minimum: 0}}
  next:
    type: transform
    in: {age: "{{ ask.value }}"}
    with: {expr: inputs.age + 1}
outputs: {next: "{{ next.value }}"}
`,
			Answers: map[string]any{"ask": 41},
			Outputs: map[string]any{"next": 42},
		}},
	})
}

func (n *userInputNode) finish() error {
	var err error
	if n.accepts, err = node.CompileSchema(n.Schema); err != nil {
		return fmt.Errorf("setting \"schema\": %w", err)
	}
	return nil
}

// Run asks the question and outputs the answer.
func (n *userInputNode) Run(ctx *node.Ctx) error {
	prompt, err := n.Prompt.text(ctx, "prompt")
	if err != nil {
		return err
	}
	answer, ok, err := ctx.Wait("ask", engine.Interrupt{
		Kind: engine.AwaitInput, Prompt: prompt, Schema: n.Schema, Due: deadlineAfter(ctx, n.Timeout),
	})
	if err != nil {
		return err
	}
	if !ok {
		return withHint(permanentError(CodeAnswerTimeout, "no answer arrived within %v", n.Timeout.Duration),
			"set a longer timeout, or wire the node's error port to continue without an answer")
	}
	if err := n.accepts.Check(answer); err != nil {
		return permanentError(CodeAnswer, "the answer %s does not fit the schema: %v", describeValue(answer), err)
	}
	return outputMessage(ctx, node.TextOf(answer), answer, n.History)
}

// deadlineAfter returns the time at which a wait that started with the attempt ends, in
// Unix milliseconds; 0 for never, if the timeout is not set.
func deadlineAfter(ctx *node.Ctx, timeout duration) int64 {
	if timeout.Duration == 0 {
		return 0
	}
	return ctx.Now().Add(timeout.Duration).UnixMilli()
}

// checkSchemaSetting reports a `schema` that is not a JSON Schema.
func checkSchemaSetting(with map[string]any) []flow.Problem {
	schema, ok := with["schema"].(map[string]any)
	if !ok {
		return nil
	}
	if _, err := node.CompileSchema(schema); err != nil {
		return []flow.Problem{settingProblem("schema", "schema is not a JSON Schema: %v", err)}
	}
	return nil
}
