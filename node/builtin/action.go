package builtin

import (
	"maps"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/breaker"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/codegen"
)

// actionNode runs code that changes the state.
type actionNode struct {
	CodeSettings
	PromptSettings
}

func actionType(b *breaker.Set) node.Type {
	return withBreakers(b, define[actionNode](&flow.TypeSpec{
		Name:     "action",
		Aliases:  []string{"code"},
		Category: "data",
		Summary:  "Runs code in a sandbox, which may change the state.",
		Doc: codeDoc + `

` + promptDoc + `

| setting | what |
|---|---|
` + codeSettingsDoc + `
` + promptSettingsDoc + `

| output | what |
|---|---|
| ` + "`value`" + ` | what the code wrote to the state: an object of the new values by key |
| ` + "`message`" + ` | the message it printed with its update, text |
| ` + "`stdout`" + ` | what else it printed, text |
` + promptOutputsDoc + `
| ` + "`error`" + ` | the failure, where the port is wired |

A process that cannot isolate the code does not run it: the node fails with
` + "`sandbox_unavailable`" + `.`,
		Ports:      actionPorts(),
		PortsFor:   func(with map[string]any) flow.Ports { return withPromptPorts(actionPorts(), with) },
		Settings:   objectSchema(withPromptSettings(withCodeSettings(map[string]any{}))),
		Check:      checkAction,
		ContextFor: promptContext,
		AsksModels: isPrompted,
		Reads:      codeReadsInputs,
		Examples:   actionExamples(),
	}))
}

func checkAction(with map[string]any) []flow.Problem {
	problems := append(checkCode(with), checkPrompt(with)...)
	if !isPrompted(with) && with["code"] != nil {
		problems = append(problems, notBeside(with, "code", promptKeys()...)...)
	}
	return append(problems, exactlyOne(with, "code", "prompt")...)
}

func actionPorts() flow.Ports {
	return flow.Ports{
		Out: []flow.Port{
			{Name: "value", Type: flow.TypeObject, Description: "What the code wrote to the state, by key."},
			{Name: "message", Type: flow.TypeText, Description: "The message it printed with its update."},
			{Name: "stdout", Type: flow.TypeText, Description: "What else it printed."},
		},
		AnyIn: true,
	}
}

func actionExamples() []flow.Example {
	return []flow.Example{{
		Name: "an amount out of a text",
		Flow: `
weir: 1
name: amount
inputs:
  invoice: {type: text, required: true}
nodes:
  read:
    type: action
    in: {invoice: "{{ run.inputs.invoice }}"}
    with:
      code: |
        amount, rest = inputs['invoice'].split(' EUR', 1)
        context['amount'] = float(amount)
        context['vendor'] = rest.strip(', ').split(',')[0]
  check:
    type: decision
    after: read
    with: {expr: state.amount > 1000.0}
outputs: {large: "{{ check.result }}", vendor: "{{ read.value.vendor }}"}
`,
		Inputs:  map[string]any{"invoice": "1250 EUR, ACME, 40 chairs"},
		Outputs: map[string]any{"large": "true", "vendor": "ACME"},
	}, {
		Name: "an update that is printed",
		Flow: `
weir: 1
name: printed
nodes:
  count:
    type: action
    with:
      code: |
        import json
        words = 'a weir is a low dam'.split()
        print(len(words), 'words')
        print(json.dumps({'status': 'success', 'context_updates': {'words': len(words)}, 'message': 'counted'}))
outputs: {value: "{{ count.value }}", message: "{{ count.message }}", printed: "{{ count.stdout }}"}
`,
		Outputs: map[string]any{"value": map[string]any{"words": 6}, "message": "counted", "printed": "6 words\n"},
	}, promptExample(), {
		Name: "code that says it failed",
		Flow: `
weir: 1
name: refused
nodes:
  check:
    type: action
    with:
      code: |
        import json
        print(json.dumps({'status': 'error', 'message': 'there is no invoice'}))
outputs: {message: "{{ check.message }}"}
`,
		Error: "code_failed",
	}}
}

// useBreakers passes the circuit breakers of the process to the settings.
func (s *CodeSettings) useBreakers(b *breaker.Set) { s.breakers = b }

// withBreakers returns a type whose nodes share breakers.
func withBreakers(b *breaker.Set, t node.Type) node.Type {
	inner := t.(*definedType)
	return &definedType{spec: inner.spec, prepare: func(with map[string]any) (node.Node, error) {
		n, err := inner.prepare(with)
		if s, ok := n.(interface {
			useBreakers(b *breaker.Set)
		}); ok && err == nil {
			s.useBreakers(b)
		}
		return n, err
	}}
}

// Run runs the code. If the flow has none, models write it first.
func (n *actionNode) Run(ctx *node.Ctx) error {
	r, err := runJob(ctx, &n.CodeSettings, &n.PromptSettings, nil)
	if err != nil {
		return err
	}
	outputExecution(ctx, r)
	return nil
}

func outputExecution(ctx *node.Ctx, r *codegen.Execution) {
	ctx.Output("value", maps.Clone(r.Updates))
	ctx.Output("message", r.Message)
	ctx.Output("stdout", r.Stdout)
	if len(r.Delete) > 0 {
		ctx.Meta("deleted", r.Delete)
	}
}
