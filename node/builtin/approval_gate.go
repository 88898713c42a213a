package builtin

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// approvalGateNode asks a person for approval and branches on the answer.
type approvalGateNode struct {
	Prompt  template `json:"prompt"`
	Timeout duration `json:"timeout"`
}

// The branches of an approvalGate.
const (
	approvedPort = "approved"
	rejectedPort = "rejected"
)

func approvalGateType() node.Type {
	return define[approvalGateNode](&flow.TypeSpec{
		Name:     "approvalGate",
		Aliases:  []string{"human_confirmation"},
		Category: "control", OnlyWaits: true,
		Summary: "Asks a person for approval and takes one of two branches.",
		Doc: `The run pauses until a person approves or rejects. The answers are ` + "`approve`" + `, ` + "`reject`" + ` or
` + "`{\"approve\": false, \"reason\": \"...\"}`" + `. The id of the question is ` + "`PATH:approve#1`" + `. A message of a chat never answers it; use
` + "`weir answer`" + `, the API, or the question that ` + "`weir run`" + ` and ` + "`weir chat`" + ` show.

| setting | what |
|---|---|
| ` + "`prompt`" + ` | what the person is asked to approve; a template over ` + "`inputs.*`, `state.*` and `run.*`" + ` |
| ` + "`timeout`" + ` | give up after this long: the node fails with ` + "`answer_timeout`" + ` |

| output | what |
|---|---|
| ` + "`approved`" + ` | true, if the person approved; a branch |
| ` + "`rejected`" + ` | true, if not; a branch |
| ` + "`reason`" + ` | the reason that was given, else empty |
| ` + "`by`" + ` | who answered, as far as the answer says so |

To approve one call of a tool, use the setting ` + "`approve`" + ` of ` + "`tool`, `agent` or `llmRequest`" + `: it covers the exact arguments.`,
		Ports: flow.Ports{Out: []flow.Port{
			{Name: approvedPort, Type: flow.TypeBool, Branch: true, Description: "True where the person approved."},
			{Name: rejectedPort, Type: flow.TypeBool, Branch: true, Description: "True where the person did not approve."},
			{Name: "reason", Type: flow.TypeText, Description: "The reason that was given."},
			{Name: "by", Type: flow.TypeText, Description: "Who answered."},
		}, AnyIn: true},
		Settings: objectSchema(map[string]any{
			"prompt":  templateSchema("string", "What the person is asked to approve."),
			"timeout": durationSchema("How long to wait for an answer. Default: for ever."),
		}, "prompt"),
		Replays: true,
		Inline:  true,
		Examples: []flow.Example{{
			Name: "a refund",
			Flow: `
weir: 1
name: refund
inputs:
  amount: {type: number, required: true}
nodes:
  gate: {type: approvalGate, with: {prompt: "Refund {{ run.inputs.amount }} EUR?"}}
  pay: {type: template, after: gate.approved, with: {text: paid}}
  refuse: {type: template, after: gate.rejected, in: {why: "{{ gate.reason }}"}, with: {text: "refused: {{ inputs.why }}"}}
  end: {type: merge, in: {value: ["{{ pay.text }}", "{{ refuse.text }}"]}}
outputs: {note: "{{ end.value }}"}
`,
			Inputs:  map[string]any{"amount": 40},
			Answers: map[string]any{"gate": map[string]any{"approve": false, "reason": "no receipt"}},
			Outputs: map[string]any{"note": "refused: no receipt"},
		}},
	})
}

// Run asks for approval and takes the branch of the answer.
func (n *approvalGateNode) Run(ctx *node.Ctx) error {
	prompt, err := n.Prompt.text(ctx, "prompt")
	if err != nil {
		return err
	}
	a, err := ctx.Ask("approve", engine.Interrupt{
		Kind: engine.AwaitApproval, Prompt: prompt, Schema: node.ApprovalSchema(), Due: deadlineAfter(ctx, n.Timeout),
	})
	if err != nil {
		return err
	}
	if !a.Given {
		return withHint(permanentError(CodeAnswerTimeout, "no answer arrived within %v", n.Timeout.Duration),
			"set a longer timeout, or wire the node's error port to continue without an answer")
	}
	approved, reason := node.ReadApproval(a.Value)
	branch := rejectedPort
	if approved {
		branch = approvedPort
	}
	ctx.Output(branch, true)
	ctx.Output("reason", reason)
	ctx.Output("by", a.By)
	return nil
}
