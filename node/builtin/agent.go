package builtin

import (
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// agentNode has a model work with tools in a lane of its own.
type agentNode struct {
	ModelSettings
	ToolSettings
	Schema    map[string]any `json:"schema"`
	MaxTokens int            `json:"maxTokens"`
	MaxTime   duration       `json:"maxTime"`
}

// The limits that end an agent's work, beside llm.StopSteps.
const (
	stopTokens = "tokens"
	stopTime   = "time"
)

func agentType() node.Type {
	return define[agentNode](&flow.TypeSpec{
		Name:     "agent",
		Category: "model",
		Summary:  "Has a model work with tools by itself; only its final answer enters the conversation.",
		Doc:      agentDoc,
		Ports:    agentPorts(nil),
		Shape:    agentPorts,
		Settings: object(withToolSettings(withModelSettings(map[string]any{
			"schema": setting("object", "JSON Schema of the final answer; text where there is none."),
			"maxTokens": map[string]any{
				"type": "integer", "minimum": 1,
				"description": "No model call begins once the calls have taken this many tokens, input and output together. Default: no limit.",
			},
			"maxTime": lasting("No model call begins once the agent has worked this long. Default: no limit."),
		}))),
		Check:    checkSchemaSetting,
		Context:  flow.ContextWrite,
		Examples: agentExamples(),
	})
}

const agentDoc = `Says the message in the context, and has the model work on it: it calls tools, sees their
results, calls others, until it answers without calling any. All of that happens in a
lane, a fork of the context that nobody else sees. The context itself gets the message
and the final answer, and nothing of what was in between. (` + "`llmRequest`" + ` with tools does the
same in the open: its calls and results stay in the conversation.)

| input | what |
|---|---|
| ` + "`message`" + ` | the task; a text or a message. Without one, what ` + "`llmRequest`" + ` would take |
| ` + "`tools`" + ` | what the model may call: from ` + "`tools`" + ` nodes, or a list of names |
| ` + "`context`" + ` | the context; the main context where nothing is wired |

| setting | what |
|---|---|
| ` + "`maxSteps`" + ` | the most model calls (default 16), summaries of the lane counted |
| ` + "`maxTokens`" + ` | no call begins once this many tokens were taken, input and output of all calls together |
| ` + "`maxTime`" + ` | no call begins once the agent has worked this long; waiting for people does not count |
| ` + "`atMax`" + ` | when the model still calls tools at one of these limits: ` + "`fail`" + ` (default) with ` + "`turn_too_long`" + `, or ` + "`stop`" + `: the last thing it said is the answer |
| ` + "`schema`" + ` | JSON Schema the final answer has to fit: it is then on the port ` + "`value`" + ` too |
` + approveDoc + `
| ` + "`model`, `provider`" + ` | the model as ` + "`provider/model`" + `; the context's where not given |
| ` + "`system`, `temperature`, `maxOutput`, `reasoning`" + ` | in place of the context's; ` + "`system`" + ` is a template |
| ` + "`budget`, `view`, `history`" + ` | as for ` + "`llmRequest`" + `; what is cut from the lane stays in the context |

| output | what |
|---|---|
| ` + "`text`" + `, also ` + "`result`" + ` | the final answer |
| ` + "`value`" + ` | with ` + "`schema`" + `: the answer as JSON; absent where a limit ended the work |
| ` + "`trace`" + ` | what was in between, a list of messages: ` + "`{role, text, calls}`" + ` of the model and ` + "`{role: tool, name, call, text, failed}`" + ` of results |
| ` + "`reasoning`, `usage`" + ` | the model's own words on its last answer; tokens, and how many model calls |
| ` + "`stop`" + ` | why it ended: ` + "`end`" + `, ` + "`calls`" + ` (a tool that ends the work was called), ` + "`length`" + `, ` + "`filter`" + `, or the limit: ` + "`steps`, `tokens`, `time`" + ` |
| ` + "`limit`" + ` | alone, where a budget with ` + "`onLimit: branch`" + ` does not cover the call |
| ` + "`context`" + ` | the context's handle |
| ` + "`error`" + ` | the failure, where the port is wired |

Every model call and every tool call is an effect with its own key: after a crash or a
pause the agent goes on where it was, and nothing that is recorded as done is done again.
` + leaveDoc + `

The trace is also in the journal, where it stays if the agent fails. The node's metadata
has a summary: the steps, the tools with how often each was called, and the tokens.`

// agentPorts has the port value only with a schema.
func agentPorts(with map[string]any) flow.Ports {
	p := llmRequestPorts(with)
	p.Out = append(p.Out, flow.Port{Name: "trace", Type: flow.TypeMessages, Description: "The model's calls and their results, as messages."})
	return p
}

func agentExamples() []flow.Example {
	return []flow.Example{{
		Name: "a task with every tool there is",
		Flow: `
weir: 1
name: research
context: {model: script/demo}
inputs:
  topic: {type: text, required: true}
nodes:
  toolbox: {type: tools, with: {tools: auto}}
  research:
    type: agent
    in: {message: "Find out about {{ run.inputs.topic }}.", tools: "{{ toolbox.tools }}"}
    with: {system: You are thorough., maxSteps: 30, maxTokens: 200000, maxTime: 10m}
  note:
    type: llmRequest
    in: {context: "{{ research.context }}", message: "In one word?"}
outputs: {found: "{{ research.text }}", word: "{{ note.text }}", why: "{{ research.stop }}"}
`,
		Inputs:  map[string]any{"topic": "weirs"},
		Script:  []string{"A weir is a low dam.", "Dam."},
		Outputs: map[string]any{"found": "A weir is a low dam.", "word": "Dam.", "why": "end"},
	}, {
		Name: "an answer in a given form",
		Flow: `
weir: 1
name: verdict
context: {model: script/demo}
nodes:
  judge:
    type: agent
    in: {message: "Is the sky blue?"}
    with:
      schema: {type: object, required: [yes], properties: {yes: {type: boolean}}}
outputs: {yes: "{{ judge.value.yes }}", steps: "{{ judge.usage.calls }}", trace: "{{ judge.trace }}"}
`,
		Script:  []string{`{"yes": true}`},
		Outputs: map[string]any{"yes": true, "steps": 1, "trace": []any{map[string]any{"role": "assistant", "text": `{"yes": true}`}}},
	}, {
		Name: "leave for a tool that is not there",
		Flow: `
weir: 1
name: careful
context: {model: script/demo}
nodes:
  work: {type: agent, in: {message: "Tidy up."}, with: {approve: {remove_file: always}}}
outputs: {text: "{{ work.text }}"}
`,
		Error: CodeToolUnknown,
	}}
}

func (n *agentNode) finish() error {
	return (&llmRequestNode{Schema: n.Schema}).finish()
}

// Run has the model work in a lane, and takes its answer out of it.
func (n *agentNode) Run(ctx *node.Ctx) error {
	m, err := passContext(ctx)
	if err != nil {
		return err
	}
	asks := llmRequestNode{ModelSettings: n.ModelSettings, ToolSettings: n.ToolSettings, Schema: n.Schema}
	t, err := asks.turn(ctx, m)
	if err != nil {
		return err
	}
	if t.Message != nil {
		if _, err := m.Hear(*t.Message); err != nil {
			return err
		}
		t.Message = nil
	}
	lane := laneOf(ctx, m)
	before := lane.Get().History.Len()
	t.Context, t.Bound = lane, n.bound(ctx)
	host := &watchedHost{Host: ctx.LLMHost()}
	result, err := ctx.LLM().Turn(ctx, host, t)
	ctx.Meta("agent", host.summary())
	if err != nil {
		return node.ModelError(err)
	}
	trace, err := traceOf(lane, before)
	if err != nil {
		return err
	}
	ctx.Output("trace", trace)
	if err := answerIn(m, result.Text); err != nil {
		return err
	}
	if slices.Contains([]string{"calls", llm.StopSteps, stopTokens, stopTime}, result.Stop) {
		asks.Schema = nil // the last thing said is not the answer that was asked for
	}
	return asks.putOut(ctx, result)
}

// laneOf is a fork of the node's context for this node alone; it is not kept.
func laneOf(ctx *node.Ctx, m *convo.Manager) *convo.Manager {
	lane := convo.NewManager(m.Get().Fork(m.ID()+"@"+ctx.Info().Path), true)
	lane.SetIDPrefix(ctx.MessageID(ctx.Info().Path))
	return lane
}

// answerIn adds an answer to a context, where something was said, and leaves
// nothing in it to be said.
func answerIn(m *convo.Manager, text string) error {
	if text != "" {
		if _, err := m.Add(convo.Message{Role: convo.Assistant, Text: text}); err != nil {
			return err
		}
	}
	return m.SetOutput("")
}

// bound is the limit of tokens and time, nil for none.
func (n *agentNode) bound(ctx *node.Ctx) func(r llm.Result) (string, error) {
	var watch *node.Stopwatch
	if n.MaxTime.Duration > 0 {
		watch = ctx.Stopwatch()
	}
	if n.MaxTokens == 0 && watch == nil {
		return nil
	}
	return func(r llm.Result) (string, error) {
		if n.MaxTokens > 0 && r.Usage.Input+r.Usage.Output >= n.MaxTokens {
			return stopTokens, nil
		}
		if watch == nil {
			return "", nil
		}
		worked, err := watch.Worked()
		if err == nil && worked >= n.MaxTime.Duration {
			return stopTime, nil
		}
		return "", err
	}
}
