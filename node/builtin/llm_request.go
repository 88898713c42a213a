package builtin

import (
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// llmRequestNode sends a request to a model.
type llmRequestNode struct {
	ModelSettings
	FallbackSettings
	ToolSettings
	Schema      map[string]any `json:"schema"`
	SkipHistory bool           `json:"skipHistory"`
}

func llmRequestType() node.Type {
	return define[llmRequestNode](&flow.TypeSpec{
		Name:       "llmRequest",
		Aliases:    []string{"chat"},
		Category:   "model",
		Summary:    "Asks a model, in a conversation context.",
		Doc:        llmRequestDoc,
		Ports:      llmRequestPorts(nil),
		PortsFor:   llmRequestPorts,
		AsksModels: always,
		Steered:    func(with map[string]any) bool { return with["skipHistory"] != true },
		Settings: objectSchema(withFallbackSettings(withToolSettings(withModelSettings(map[string]any{
			"schema":      settingSchema("object", "JSON Schema of the answer; text where there is none."),
			"skipHistory": settingSchema("boolean", "Read the context and add nothing to it. Default: false."),
		})))),
		Check: func(with map[string]any) []flow.Problem {
			out := append(checkSchemaSetting(with), checkFallbackSettings(with)...)
			if with["skipHistory"] == true && with["history"] != nil {
				out = append(out, settingProblem("history", "with skipHistory the call is in no conversation, which history says who keeps"))
			}
			return out
		},
		PureFor: func(with map[string]any) bool { return with["skipHistory"] == true },
		Context: flow.ContextWrite,
		ContextFor: func(with map[string]any) flow.ContextUse {
			if with["skipHistory"] == true {
				return flow.ContextRead
			}
			return flow.ContextWrite
		},
		Examples: llmRequestExamples(),
	})
}

const llmRequestDoc = `Says the message in the context, sends the context to the model, and adds the answer to
the context. Where the model calls tools, they run, their results go back to it, and so on
until it answers; the whole turn is then in the history together, calls and results
included. If the turn fails, the message alone stays, and another attempt answers it.

| input | what |
|---|---|
| ` + "`message`" + ` | what to say; a text or a message, which may have ` + "`parts`" + `: images and files, each ` + "`{kind, mime, name}`" + ` with ` + "`kind`" + ` image or file, and ` + "`data`" + ` in base64 or a ` + "`url`" + ` |
| ` + "`tools`" + ` | what the model may call: from ` + "`tools`" + ` nodes, or a list of names |
| ` + "`context`" + ` | the context; the main context where nothing is wired |

The message is:

1. the value on ` + "`message`" + `, if there is one. If the history already has it (from a ` + "`userInput`" + ` with
   ` + "`history: true`" + `), it is not added again.
2. otherwise the current output of the context: the text of a ` + "`userInput`" + ` or ` + "`manualInput`" + ` on that
   context that is not in its history yet. So a conversation can be wired by context
   edges alone. If several such nodes of one context run at the same time, wire
   ` + "`message`" + ` instead, because the current output is that of the last one.
3. otherwise none: the model answers the history as it is. An empty history is an error.

| setting | what |
|---|---|
| ` + "`model`, `provider`" + ` | the model as ` + "`provider/model`" + `; the context's where not given |
` + fallbackDoc + `| ` + "`system`, `temperature`, `maxOutput`, `reasoning`, `thinkingBudget`" + ` | for this call, in place of the context's; ` + "`system`" + ` is a template |
| ` + "`budget`" + ` | ` + "`{window, reserve}`" + ` in tokens, in place of the context's |
| ` + "`view`" + ` | ` + "`{strategy, low, keepResults, maxResult, summary, model}`" + `: how the context is shown where it outgrows its budget |
| ` + "`history`" + ` | ` + "`server`" + `: the provider may keep the conversation, and is then sent what is new alone; an error with a provider that stores none |
| ` + "`schema`" + ` | JSON Schema the answer has to fit: it is read out of prose, fences and reasoning around it, and is then on the port ` + "`value`" + ` too |
| ` + "`skipHistory`" + ` | read the context and add nothing to it, neither message nor answer |
| ` + "`maxSteps`" + ` | the most model calls in one turn (default 16) |
| ` + "`atMax`" + ` | when the model still calls tools then: ` + "`fail`" + ` (default) with ` + "`turn_too_long`" + `, or ` + "`stop`" + `: the turn is kept as it is and ends |
` + approveDoc + `

| output | what |
|---|---|
| ` + "`text`" + `, also ` + "`result`" + ` | the answer |
| ` + "`value`" + ` | with ` + "`schema`" + `: the answer as JSON |
| ` + "`reasoning`" + ` | the model's own, where it gives any |
| ` + "`usage`" + ` | ` + "`{input, cached, output, reasoning, calls}`" + `: tokens, and how many model calls |
| ` + "`stop`" + ` | why it ended: ` + "`end`" + `, ` + "`calls`" + ` (a tool that ends the turn was called), ` + "`length`" + `, ` + "`filter`" + `, ` + "`steps`" + ` (` + "`atMax: stop`" + `) |
| ` + "`limit`" + ` | alone, where a budget with ` + "`onLimit: branch`" + ` does not cover the call: ` + "`{budget, message, calls, tokens, cost}`" + ` |
| ` + "`context`" + ` | the context's handle |
| ` + "`error`" + ` | the failure, where the port is wired |

` + approvalDoc + `

Model calls that failed for a passing reason are tried again by the service, and the call's
key goes with each try. The streamed text is sent to all readers of the run.`

// llmRequestPorts adds the port value if there is a schema.
func llmRequestPorts(with map[string]any) flow.Ports {
	p := flow.Ports{
		In: []flow.Port{
			{Name: "message", Type: flow.TypeMessage, Description: "What to say."},
			{Name: "tools", Type: flow.TypeTools, Many: true, Description: "What the model may call."},
			contextIn(),
		},
		Out: []flow.Port{
			{Name: "text", Type: flow.TypeText, Description: "The answer."},
			{Name: "result", Type: flow.TypeText, Description: "The answer, under its other name."},
			{Name: "reasoning", Type: flow.TypeText, Description: "The model's reasoning, where it gives any."},
			{Name: "usage", Type: flow.TypeObject, Description: "Tokens used, and model calls made."},
			{Name: "stop", Type: flow.TypeText, Description: "Why the turn ended."},
			limitPort(),
			contextOut(),
		},
		AnyIn: true,
	}
	if with["schema"] != nil {
		p.Out = append(p.Out, flow.Port{Name: "value", Type: flow.TypeAny, Description: "The answer as JSON."})
	}
	return p
}

func llmRequestExamples() []flow.Example {
	return []flow.Example{{
		Name: "a question and one more",
		Flow: `
weir: 1
name: two-turns
context: {model: script/demo, system: You are brief.}
nodes:
  first:
    type: llmRequest
    in: {message: "Name a river."}
  second:
    type: llmRequest
    in: {context: "{{ first.context }}", message: "And the sea it flows into?"}
outputs: {river: "{{ first.text }}", sea: "{{ second.text }}"}
`,
		Script:  []string{"The Rhine.", "The North Sea."},
		Outputs: map[string]any{"river": "The Rhine.", "sea": "The North Sea."},
	}, {
		Name: "two models",
		Flow: `
weir: 1
name: two-models
nodes:
  ask:
    type: llmRequest
    in: {message: "Name a river."}
    with: {models: [script/demo, script/spare], on: [model_overloaded, model_timeout]}
outputs: {river: "{{ ask.text }}"}
`,
		Script:  []string{"The Rhine."},
		Outputs: map[string]any{"river": "The Rhine."},
	}, {
		Name: "by context edges alone",
		Flow: `
weir: 1
name: context-edges
context: {model: script/demo}
nodes:
  begin: {type: defaultContextStart}
  ask: {type: userInput, in: {context: "{{ begin.context }}"}, with: {prompt: "You:"}}
  answer: {type: chat, in: {context: "{{ ask.context }}"}}
outputs: {answer: "{{ answer.result }}"}
`,
		Answers: map[string]any{"ask": "What is a weir?"},
		Script:  []string{"A low dam."},
		Outputs: map[string]any{"answer": "A low dam."},
	}, {
		Name: "a structured answer that leaves the conversation alone",
		Flow: `
weir: 1
name: classify
context: {model: script/demo}
inputs:
  text: {type: text, required: true}
nodes:
  classify:
    type: llmRequest
    in: {message: "Is this a question? {{ run.inputs.text }}"}
    with:
      skipHistory: true
      schema: {type: object, required: [question], properties: {question: {type: boolean}}}
  check: {type: decision, in: {it: "{{ classify.value }}"}, with: {expr: inputs.it.question}}
outputs: {question: "{{ check.result }}"}
`,
		Inputs:  map[string]any{"text": "Who is there?"},
		Script:  []string{`{"question": true}`},
		Outputs: map[string]any{"question": "true"},
	}}
}

func (n *llmRequestNode) finish() error {
	if n.Schema == nil {
		return nil
	}
	if _, err := node.CompileSchema(n.Schema); err != nil {
		return fmt.Errorf("setting \"schema\": %w", err)
	}
	return nil
}

// Run runs the turn and sets the outputs.
func (n *llmRequestNode) Run(ctx *node.Ctx) error {
	m, err := outputContext(ctx)
	if err != nil {
		return err
	}
	var steered []convo.Message
	t, err := n.prepareTurn(ctx, m, func(msg convo.Message) error {
		steered = append(steered, msg)
		return nil
	})
	if err != nil {
		return err
	}
	result, err := t.Run(ctx)
	if err != nil {
		return keepSteered(m, steered, node.ModelError(err))
	}
	if err := demandsOn(ctx, m).check(result); err != nil {
		return keepSteered(m, steered, err)
	}
	if !n.SkipHistory {
		// Question and answer are in the history: nothing is left to be said.
		if err := m.SetOutput(""); err != nil {
			return err
		}
	}
	return n.outputResult(ctx, result)
}

// keepSteered keeps what people have said in a turn that failed. It is not inlined, so that no message is on the stack of
// a node that waits for a model.
//
//go:noinline
func keepSteered(m *convo.Manager, steered []convo.Message, err error) error {
	for _, msg := range steered {
		if _, unkept := m.AddUserInput(msg); unkept != nil {
			break // the journal has it
		}
	}
	return err
}

// prepareTurn is a function of its own so that no turn is on the stack of a node that waits
// for a model.
func (n *llmRequestNode) prepareTurn(ctx *node.Ctx, m *convo.Manager, steered func(convo.Message) error) (llm.PreparedTurn, error) {
	p, err := ctx.LLM().PrepareTurn(ctx.LLMHost(), func() (llm.Turn, error) {
		t, err := n.turn(ctx, m)
		if err == nil && !n.SkipHistory {
			steerTurn(ctx, &t, steered)
		}
		return t, err
	})
	return p, node.ModelError(err)
}

// turn is what the model is asked for.
func (n *llmRequestNode) turn(ctx *node.Ctx, m *convo.Manager) (llm.Turn, error) {
	t, err := n.ModelSettings.turn(ctx, m)
	if err != nil {
		return t, err
	}
	t.Fallback, t.Timeouts = n.fallback(), n.CallTimeout.bounds()
	t.Schema, t.SkipHistory, t.MaxSteps, t.StopAtMax = n.Schema, n.SkipHistory, n.MaxSteps, n.AtMax == "stop"
	if t.Tools, err = n.offeredTools(ctx); err != nil {
		return t, err
	}
	if !n.SkipHistory {
		if t.Tools, err = withClientTools(m, t.Tools); err != nil {
			return t, err
		}
		demandsOn(ctx, m).apply(&t)
	}
	t.Message, err = n.message(ctx, m)
	return t, err
}

// message returns the message of this turn, nil if the model answers the history as it
// stands.
func (n *llmRequestNode) message(ctx *node.Ctx, m *convo.Manager) (*convo.Message, error) {
	own := ctx.MessageID(ctx.Info().Path + ".user")
	v, ok := ctx.Input("message")
	if !ok || v == nil {
		if output := m.Get().Output; output != "" {
			return &convo.Message{ID: own, Role: convo.User, Text: output}, nil
		}
		return nil, nil
	}
	id := own
	if said, ok := v.(map[string]any); ok && said["id"] == nil {
		if origin := ctx.Origin("message"); origin != "" {
			id = ctx.MessageID(origin)
		}
	}
	msg, err := messageOf(v, id)
	if err != nil {
		return nil, permanentError(CodeInput, "message: %v", err)
	}
	return n.withoutSaid(m, msg, own)
}

// withoutSaid returns the part of msg that is not in the history yet. A message with a
// known id is not added again; if its text differs, as in a second attempt, the new text
// replaces the old one. A request that adds nothing to the history (skipHistory) may repeat
// an earlier text under its own id.
func (n *llmRequestNode) withoutSaid(m *convo.Manager, msg convo.Message, own string) (*convo.Message, error) {
	now := m.Get()
	known, at, err := now.History.Lookup(msg.ID)
	if err != nil {
		return nil, err
	}
	switch {
	case at < now.Epoch: // also -1: not known
		return &msg, nil
	case n.SkipHistory && at == now.History.Len()-1 && known.Text == msg.Text:
		return nil, nil
	case n.SkipHistory:
		msg.ID = own
		return &msg, nil
	case known.Text != msg.Text || known.Role != msg.Role:
		if _, err := m.Upsert(msg); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (n *llmRequestNode) outputResult(ctx *node.Ctx, r *llm.Result) error {
	ctx.Output("text", r.Text)
	ctx.Output("result", r.Text)
	ctx.Output("reasoning", r.Reasoning)
	usage := map[string]any{
		"input": int64(r.Usage.Input), "cached": int64(r.Usage.Cached), "output": int64(r.Usage.Output),
		"reasoning": int64(r.Usage.Reasoning), "calls": int64(r.Steps),
	}
	ctx.Output("usage", usage)
	ctx.Meta("tokenUsage", usage)
	ctx.Output("stop", r.Stop)
	ctx.Meta("stop", r.Stop)
	if n.Schema == nil {
		return nil
	}
	if r.Value == nil && r.Text != "null" {
		return withHint(permanentError(CodeJSON, "the turn ended without an answer that fits the schema"),
			"the last answer ended with %q; let the model answer after its last call of a tool", r.Stop)
	}
	ctx.Output("value", r.Value)
	return nil
}
