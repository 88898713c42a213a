package builtin

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// failNode fails.
type failNode struct {
	Code    string   `json:"code"`
	Message template `json:"message"`
	Hint    template `json:"hint"`
}

func failType() node.Type {
	return define[failNode](&flow.TypeSpec{
		Name:     "fail",
		Category: "control",
		Summary:  "Fails the run with a code and a message of your own.",
		Doc: `Put it at the end of a branch that must not be. The failure is like any other: it is
permanent (` + "`retry`" + ` does not try again unless ` + "`on`" + ` names the code), the node's ` + "`error`" + ` port
or ` + "`onError`" + ` can handle it, and otherwise the run fails.

| setting | what |
|---|---|
| ` + "`code`" + ` | small letters, digits and ` + "`_`" + ` (default ` + "`failed`" + `) |
| ` + "`message`" + ` | what is wrong, a template |
| ` + "`hint`" + ` | what to do about it, a template |`,
		Ports:     flow.Ports{AnyIn: true},
		OnlyFails: true,
		Codes: func(with map[string]any) []string {
			code, _ := with["code"].(string)
			return append(engine.NodeCodes(), code)
		},
		Settings: objectSchema(map[string]any{
			"code": map[string]any{
				"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$",
				"description": "The error's code. Default: failed.",
			},
			"message": templateSchema("string", "What is wrong."),
			"hint":    templateSchema("string", "What to do about it."),
		}, "message"),
		Pure:   true,
		Inline: true,
		Examples: []flow.Example{{
			Name: "refuse",
			Flow: `
weir: 1
name: refuse
inputs:
  amount: {type: number, required: true}
nodes:
  check: {type: decision, with: {expr: run.inputs.amount <= 1000}}
  refuse:
    type: fail
    after: check.false
    with: {code: amount_too_high, message: "{{ run.inputs.amount }} EUR is over the limit"}
outputs: {ok: "{{ check.result }}"}
`,
			Inputs: map[string]any{"amount": 5000},
			Error:  "amount_too_high",
		}},
	})
}

// Run fails.
func (n *failNode) Run(ctx *node.Ctx) error {
	message, err := n.Message.text(ctx, "message")
	if err != nil {
		return err
	}
	hint, err := n.Hint.text(ctx, "hint")
	if err != nil {
		return err
	}
	code := n.Code
	if code == "" {
		code = CodeFailed
	}
	return withHint(permanentError(code, "%s", message), "%s", hint)
}
