package builtin

import "github.com/weir-run/weir/flow"

const agentDoc = `Sends the message to the model, which works on it in a loop: it calls tools, sees their
results and calls further tools, until it answers without a call. All of this happens in a
lane, a private fork of the context. The context itself receives the message
and the final answer, and nothing in between. (` + "`llmRequest`" + ` with tools does the
same in the conversation: its calls and results stay there.) Queues add work
before the message, after it and at the end.

| input | meaning |
|---|---|
| ` + "`message`" + ` | the task; a text or a message. Without one, what ` + "`llmRequest`" + ` would take |
| ` + "`tools`" + ` | what the model may call: from ` + "`tools`" + ` nodes, or a list of names |
| ` + "`context`" + ` | the context; the main context where nothing is wired |

| setting | what |
|---|---|
| ` + "`pre`" + ` | a list of entries that are done first, in order |
| ` + "`mode`" + ` | ` + "`react`" + ` (default): the message is answered; ` + "`plan`" + `: a planner makes a list of steps of it, which are done one by one |
| ` + "`todo`" + ` | a list of entries that are done after the message, or before the steps of the plan |
| ` + "`post`" + ` | a list of entries that are done last, in order, also where the work failed |
| ` + "`flows`" + ` | flows that the model may put into the queue, a list of references as entries have them |
| ` + "`queue`" + ` | ` + "`{capacity: 100, tools: true}`" + `: how many entries each queue takes, and whether the model adds to it |
| ` + "`planner`" + ` | ` + "`{model, provider, system, temperature, maxOutput, reasoning}`" + ` of the planner, in place of the agent's |
| ` + "`maxSteps`" + ` | the most model calls (default 16, with a plan 64), summaries of the lane counted |
| ` + "`maxTokens`" + ` | no call begins once this many tokens were taken, input and output of all calls together |
| ` + "`maxTime`" + ` | no call begins once the agent has worked this long; waiting for people does not count |
| ` + "`atMax`" + ` | when the model still calls tools at one of these limits: ` + "`fail`" + ` (default) with ` + "`turn_too_long`" + `, or ` + "`stop`" + `: the last thing it said is the answer |
| ` + "`schema`" + ` | JSON Schema the final answer has to fit: it is then on the port ` + "`value`" + ` too |
` + approveDoc + `
| ` + "`model`, `provider`" + ` | the model as ` + "`provider/model`" + `; the context's where not given |
` + fallbackDoc + `| ` + "`system`, `temperature`, `maxOutput`, `reasoning`, `thinkingBudget`" + ` | in place of the context's; ` + "`system`" + ` is a template |
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
pause the agent continues where it was; recorded calls are not repeated.
` + approvalDoc + `

The trace is also in the journal, where it stays if the agent fails. The node's metadata
has a summary: the steps, the tools with how often each was called, the tokens, and of each queue
how many entries were worked on, failed, were added, were refused or are left.

` + agentQueuesDoc

const agentQueuesDoc = `### Queues

An entry of ` + "`pre`, `todo` and `post`" + ` is one of

| entry | what |
|---|---|
| ` + "`{say: TEXT}`" + `, or the text alone | an instruction: a turn of its own, in which the model may call tools; a template |
| ` + "`{tool: NAME, arguments: {...}}`" + ` | a tool call that the agent makes itself; the arguments may be templates. It may be any tool the process offers, wired to the node or not |
| ` + "`{flow: PATH, in: {...}}`" + ` | a flow that runs as a child run, as a node of type ` + "`flow`" + ` has it, in a conversation of its own; the inputs may be templates |

The result of a tool or a flow is added to the lane, where the model sees it. Entries are worked on
one at a time, first in, first out:

1. ` + "`pre`" + `. The first that fails fails the agent.
2. The message is answered; with ` + "`mode: plan`" + ` a planner is asked for steps in its place. What is in
   ` + "`todo`" + `, and what the plan and the model add, is done until nothing waits. A tool or a flow that
   fails there is reported to the model. If entries were processed besides the message, the model is then asked for
   its final answer.
3. ` + "`post`" + `, also where the work failed or came to a limit. Every entry is tried. The agent ends
   as the work did; where that went well, the first failure here is the agent's. A run that is cancelled, and a node whose
   ` + "`timeout`" + ` is over, do nothing more.

With a plan, ` + "`todo`, `flows` or `queue: {tools: true}`" + ` the model has the tools ` + "`addTodo`" + ` (an instruction, a call of
a tool that is wired to the node, or one of ` + "`flows`" + `) and ` + "`listTodo`" + `. A queue that is full refuses, and says so.

The limits hold for ` + "`pre`" + `, the planner and the loop together, and once more for ` + "`post`" + `. See [agents](../agents.md).`

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

func agentQueueExamples() []flow.Example {
	return []flow.Example{{
		Name: "a plan, and what comes after it",
		Flow: `
weir: 1
name: tour
context: {model: script/demo}
nodes:
  work:
    type: agent
    in: {message: "Plan a day by the river."}
    with:
      mode: plan
      planner: {system: You plan tours.}
      post: ["Note what is still to be booked."]
outputs: {day: "{{ work.text }}", calls: "{{ work.usage.calls }}"}
`,
		Script: []string{
			`{"steps": [{"say": "Find a walk."}, {"say": "Find a place to eat."}]}`,
			"Along the weir.", "The mill.", "Walk along the weir, then eat at the mill.", "A table at the mill.",
		},
		Outputs: map[string]any{"day": "Walk along the weir, then eat at the mill.", "calls": 5},
	}, {
		Name: "a flow that prepares",
		Flow: `
weir: 1
name: prepared
context: {model: script/demo}
nodes:
  work:
    type: agent
    in: {message: "When do we open?"}
    with: {pre: [{flow: ./hours.yaml, in: {day: monday}}]}
outputs: {answer: "{{ work.text }}", heard: "{{ work.trace[0].text }}"}
`,
		Files: map[string]string{"hours.yaml": `
weir: 1
name: hours
inputs: {day: {type: text, required: true}}
nodes: {find: {type: template, with: {text: "{{ run.inputs.day }}: from nine"}}}
outputs: {text: "{{ find.text }}"}
`},
		Script: []string{"At nine."},
		Outputs: map[string]any{
			"answer": "At nine.",
			"heard":  "The flow ./hours.yaml was run with {\"day\":\"monday\"}. Its result:\n<result>\nmonday: from nine\n</result>",
		},
	}}
}
