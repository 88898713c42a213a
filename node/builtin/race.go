package builtin

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// raceNode runs its branches at the same time and keeps the first that completes.
type raceNode struct {
	AllowEffects bool `json:"allowEffects"`
}

func raceType() node.Type {
	return define[raceNode](&flow.TypeSpec{
		Name:     "race",
		Category: "control",
		Summary:  "Runs several branches at the same time and keeps the first that completes.",
		Doc:      raceDoc,
		Ports: flow.Ports{
			Out:   []flow.Port{{Name: "winner", Type: flow.TypeText, Description: "The name of the branch that completed first."}},
			AnyIn: true, AnyOut: true,
		},
		Settings: objectSchema(map[string]any{
			"branches":     settingSchema("object", "The bodies by name, at least two: nodes and outputs."),
			"allowEffects": settingSchema("boolean", "Lets branches change something outside the run. Default: false."),
		}),
		Composite:  true,
		Branches:   true,
		BodyInputs: []string{},
		Replays:    true,
		Inline:     true,
		Examples:   raceExamples(),
	})
}

const raceDoc = `Every entry of ` + "`branches`" + ` is a body of nodes, as that of a ` + "`loop`" + `. All branches start at
the same time. The first one that completes wins: its outputs are those of the node, and its messages and
changes of the state are committed when the race completes. The other branches are cancelled. Their
questions and timers are closed, their child runs are cancelled, and their messages and changes of the state
are discarded. What they have spent counts in usage and in all budgets.

| setting | what |
|---|---|
| ` + "`branches`" + ` | the bodies by name, at least two: ` + "`nodes`" + ` and ` + "`outputs`" + `, as in a flow |
| ` + "`allowEffects`" + ` | lets branches change something outside the run (default false) |

In the ` + "`in:`" + ` of the nodes of a branch, and in its outputs, ` + "`inputs.NAME`" + ` is a value of the ` + "`in:`" + ` of the race. The
outputs of the node are those of the branch that won, under the names that the branch declares, and
` + "`winner`" + `, its name. An output that only another branch declares has no value.

**Which branch is first** follows from the journal: it is the branch whose last node ended in the earlier
commit or, in one commit, at the earlier event. A replay, a resumed run and a fork therefore have the same
winner.

**Isolation.** Each branch works in a lane of its own (` + "`isolation: fork`" + `, the default): it sees contexts and state as they
were when the race started, and no branch sees another. With ` + "`isolation: fresh`" + ` the branches start with empty contexts,
and only the outputs are kept. ` + "`share`" + ` is refused.

**Failure.** A branch that fails cannot win, and the others continue. If every branch fails, the node fails
with ` + "`race_failed`" + ` and the failure of each branch. Where one of them is an exhausted budget, the code is
` + "`budget_exceeded`" + `. ` + "`timeout`" + ` limits the race as a whole; ` + "`retry`" + ` runs all branches again.

**Effects.** The work of the branches that lose is done for nothing. Therefore a branch must only read: model calls,
read-only tools, GET and HEAD requests, and code are allowed. A node that may change something outside the run
is refused when the flow is loaded (` + "`race_effect`" + `), a tool that is not read-only when the run starts if its name is known then, and
otherwise when a model calls it. ` + "`allowEffects: true`" + ` allows them. An effect of a branch that lost is then
not repeated or undone, and one that was in flight has an unknown outcome.

**Paths.** The node ids of all branches of a race are unique. A node of a branch has the path ` + "`RACE#2/NODE`" + `, where 2 is the
place of the branch in the alphabetical order of the names. A retry continues counting. Tests name such a
node as ` + "`RACE/NODE`" + `.

The race ends when the branches that lost have stopped. A branch that may only read is stopped at once; its
functions have 2 seconds to return. With ` + "`allowEffects`" + `, effects in flight have 10 seconds.`

func raceExamples() []flow.Example {
	return []flow.Example{{
		Name: "the first answer of two models",
		Flow: `
weir: 1
name: first-answer
context: {model: script/demo}
inputs:
  question: {type: text, required: true}
nodes:
  answer:
    type: race
    in: {question: "{{ run.inputs.question }}"}
    with:
      branches:
        model:
          nodes:
            ask: {type: llmRequest, in: {message: "{{ inputs.question }}"}}
          outputs: {text: "{{ ask.text }}"}
        patience:
          nodes:
            wait: {type: wait, with: {for: 1h}}
            sorry: {type: template, after: wait, with: {text: "No answer in time."}}
          outputs: {text: "{{ sorry.text }}"}
outputs: {answer: "{{ answer.text }}", by: "{{ answer.winner }}"}
`,
		Inputs:  map[string]any{"question": "What is a weir?"},
		Script:  []string{"A low dam."},
		Outputs: map[string]any{"answer": "A low dam.", "by": "model"},
	}, {
		Name: "a branch that fails is out of the race",
		Flow: `
weir: 1
name: second-choice
nodes:
  try:
    type: race
    with:
      branches:
        broken:
          nodes: {stop: {type: fail, with: {message: "out of order"}}}
        sound:
          nodes:
            pause: {type: wait, with: {for: 10ms}}
            done: {type: transform, after: pause, with: {expr: "'sound'"}}
          outputs: {result: "{{ done.value }}"}
outputs: {result: "{{ try.result }}", by: "{{ try.winner }}"}
`,
		Outputs: map[string]any{"result": "sound", "by": "sound"},
	}, {
		Name: "every branch fails",
		Flow: `
weir: 1
name: all-fail
nodes:
  try:
    type: race
    with:
      branches:
        one: {nodes: {a: {type: fail, with: {message: "first"}}}}
        two: {nodes: {b: {type: fail, with: {message: "second"}}}}
`,
		Error: CodeRaceFailed,
	}}
}

// Run starts the branches and, after they have ended, returns the outputs of the winner.
func (n *raceNode) Run(ctx *node.Ctx) error {
	end := ctx.RaceOutcome()
	switch {
	case end == nil:
		return ctx.Race(sortedValues(ctx.Inputs()))
	case end.Winner == "":
		return raceFailure(end.Failures)
	}
	for _, o := range end.Outputs {
		ctx.Output(o.Name, o.Value)
	}
	ctx.Output("winner", end.Winner)
	return nil
}

// raceFailure returns the error of a race whose branches have all failed. It may be retried if
// any of the failures may.
func raceFailure(failures []engine.BranchFailure) error {
	out := &engine.Error{Code: CodeRaceFailed, Permanent: true, Hint: "see the failures of the branches"}
	var causes []string
	for _, f := range failures {
		causes = append(causes, fmt.Sprintf("%s: %v", f.Branch, f.Error))
		out.Permanent = out.Permanent && f.Error.Permanent
		if f.Error.Code == engine.CodeBudget {
			out.Code, out.Budget, out.Hint = f.Error.Code, f.Error.Budget, f.Error.Hint
		}
	}
	out.Message = "every branch failed: " + strings.Join(causes, "; ")
	return out
}
