package flow_test

import (
	"testing"

	"github.com/weir-run/weir/flow"
)

const invoice = `weir: 1
name: invoice-review
context: {model: openai/gpt-5-mini, system: You review invoices., budget: {window: 32000, reserve: 2000}}
inputs:
  invoice: {type: text, required: true}
nodes:
  extract:
    type: action
    in: {invoice: "{{ run.inputs.invoice }}"}
    with:
      language: python
      code: |
        context['amount'] = float(inputs['invoice'].split('EUR')[0])
  check:
    type: decision
    after: extract
    with: {expr: "state.amount > 1000 ? 'high' : 'low'", branches: [high, low]}
  ask:
    type: userInput
    after: check.high
    with: {prompt: "Approve {{ state.amount }} EUR?", schema: {type: string, enum: [approve, reject]}}
  reply:
    type: llmRequest
    after: check.low
    in: {message: "Write one line that confirms {{ state.amount }} EUR."}
outputs: {decision: "{{ ask.text }}", note: "{{ reply.text }}"}
`

func TestX(t *testing.T) {
	f, err := flow.Parse("x.yaml", []byte(invoice), testCatalogue())
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Normal()
	t.Log(string(b), err, f.Fingerprint())
}
