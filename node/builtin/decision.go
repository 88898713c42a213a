package builtin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/breaker"
	"github.com/weir-run/weir/node"
)

// decisionNode takes the branch that an expression names, or code.
type decisionNode struct {
	CodeSettings
	PromptSettings
	Expr     celExpression `json:"expr"`
	Branches []branch      `json:"branches"`
}

// branch is the name of a branch; booleans and numbers stand for their text.
type branch string

// UnmarshalJSON reads a text, boolean or whole number.
func (b *branch) UnmarshalJSON(raw []byte) error {
	v, err := engine.DecodeValue(raw)
	if err != nil {
		return err
	}
	name, ok := branchName(v)
	if !ok {
		return fmt.Errorf("%s cannot name a branch", describeValue(v))
	}
	*b = branch(name)
	return nil
}

// branchName returns the branch that a value names; booleans read true and false.
func branchName(v engine.Value) (string, bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case bool:
		return strconv.FormatBool(t), true
	case int64:
		return strconv.FormatInt(t, 10), true
	case int:
		return strconv.Itoa(t), true
	}
	return "", false
}

func decisionType(b *breaker.Set) node.Type {
	return withBreakers(b, define[decisionNode](&flow.TypeSpec{
		Name:     "decision",
		Category: "control",
		Summary:  "Takes one of several branches, by an expression or by code.",
		Doc: `What decides is an expression, code, or code that models write. Its result, as text, is the branch that is
taken: nodes with ` + "`after: NODE.BRANCH`" + ` run, those behind the other branches are skipped.

An expression is CEL, written without braces; it reads ` + "`inputs.*`" + ` (whatever is wired to the node,
under any port name), ` + "`state.*`" + ` and ` + "`run.*`" + `.

` + codeDoc + ` Code has to set ` + "`context['branch_decision']`" + `: it
finds none there, and what it sets is no part of the state.

` + promptDoc + `

| setting | what |
|---|---|
| ` + "`expr`" + ` | gives the name of a branch; a boolean reads ` + "`true` or `false`" + ` |
| ` + "`branches`" + ` | the names it may give (default ` + "`[true, false]`" + `) |
` + codeSettingsDoc + `
` + promptSettingsDoc + `

| output | what |
|---|---|
| ` + "`result`" + ` | the branch's name, text |
| a port for each branch | ` + "`true`" + ` on the one that is taken; the others have no value |
` + promptOutputsDoc + `

A result that is no branch fails the node with ` + "`branch_unknown`" + ` and the list of those
there are, code that sets no branch with ` + "`branch_missing`" + `. For conditions tried one after another see ` + "`switch`" + `.`,
		Ports: flow.Ports{Out: branchPorts([]string{"true", "false"}), AnyIn: true},
		PortsFor: func(with map[string]any) flow.Ports {
			return withPromptPorts(flow.Ports{Out: branchPorts(decisionBranches(with)), AnyIn: true}, with)
		},
		Settings: objectSchema(withPromptSettings(withCodeSettings(map[string]any{
			"expr": expressionSchema("Gives the name of a branch."),
			"branches": map[string]any{
				"type": "array", "minItems": 1, "uniqueItems": true,
				"description": "The names the decision may give. Default: [true, false].",
				"items":       map[string]any{"type": []any{"string", "boolean", "integer"}},
			},
		}))),
		Check:      checkDecision,
		ContextFor: promptContext,
		AsksModels: isPrompted,
		PureFor:    hasExpression,
		Reads:      codeReadsInputs,
		Replays:    true,
		Inline:     true,
		InlineFor:  hasExpression,
		Examples:   decisionExamples(),
	}))
}

func hasExpression(with map[string]any) bool { return with["expr"] != nil }

func checkDecision(with map[string]any) []flow.Problem {
	names := decisionBranches(with)
	problems := slices.Concat(checkBranches(names), checkCode(with), checkPrompt(with), exactlyOne(with, "expr", "code", "prompt"))
	switch {
	case isPrompted(with):
		for _, name := range names {
			if name == "usage" || name == "limit" || name == contextPort {
				problems = append(problems, settingProblem("branches", "%q cannot be the name of a branch of a decision with a prompt", name))
			}
		}
	case hasExpression(with):
		problems = append(problems, notBeside(with, "expr", append(codeKeys(), promptKeys()...)...)...)
	case with["code"] != nil:
		problems = append(problems, notBeside(with, "code", promptKeys()...)...)
	}
	return problems
}

func decisionExamples() []flow.Example {
	return []flow.Example{{
		Name: "high or low",
		Flow: `
weir: 1
name: triage
inputs:
  amount: {type: number, required: true}
nodes:
  check:
    type: decision
    with: {expr: "run.inputs.amount > 1000 ? 'high' : 'low'", branches: [high, low]}
  ask:
    type: template
    after: check.high
    with: {text: "A person must look."}
  note:
    type: template
    after: check.low
    with: {text: "Fine."}
  end:
    type: merge
    in: {value: ["{{ ask.text }}", "{{ note.text }}"]}
outputs: {branch: "{{ check.result }}", verdict: "{{ end.value }}"}
`,
		Inputs:  map[string]any{"amount": 20},
		Outputs: map[string]any{"branch": "low", "verdict": "Fine."},
	}, {
		Name: "a result that is no branch",
		Flow: `
weir: 1
name: lost
nodes:
  check:
    type: decision
    with: {expr: "'sideways'", branches: [up, down]}
outputs: {branch: "{{ check.result }}"}
`,
		Error: CodeBranch,
	}, {
		Name: "by code",
		Flow: `
weir: 1
name: coded
inputs:
  amount: {type: number, required: true}
nodes:
  check:
    type: decision
    in: {amount: "{{ run.inputs.amount }}"}
    with:
      branches: [high, low]
      code: |
        context['limit'] = 1000
        context['branch_decision'] = 'high' if inputs['amount'] > context['limit'] else 'low'
  ask:
    type: template
    after: check.high
    with: {text: "More than {{ state.limit }}."}
outputs: {branch: "{{ check.result }}", verdict: "{{ ask.text }}"}
`,
		Inputs:  map[string]any{"amount": 1200},
		Outputs: map[string]any{"branch": "high", "verdict": "More than 1000."},
	}}
}

// decisionBranches lists the branches of the settings, as far as they are good.
func decisionBranches(with map[string]any) []string {
	list, ok := with["branches"].([]any)
	if !ok {
		return []string{"true", "false"}
	}
	var names []string
	for _, v := range list {
		if name, ok := branchName(v); ok {
			names = append(names, name)
		}
	}
	return names
}

// branchPorts returns the outputs of a node that branches.
func branchPorts(names []string) []flow.Port {
	ports := []flow.Port{{Name: "result", Type: flow.TypeText, Description: "The name of the branch that was taken."}}
	for _, name := range names {
		if !slices.ContainsFunc(ports, func(p flow.Port) bool { return p.Name == name }) {
			ports = append(ports, flow.Port{Name: name, Type: flow.TypeBool, Branch: true, Description: "True where this branch was taken."})
		}
	}
	return ports
}

// checkBranches reports names that the node's own ports have.
func checkBranches(names []string) []flow.Problem {
	var problems []flow.Problem
	for _, name := range names {
		if name == "result" || name == "error" || !flow.IsPortName(name) {
			problems = append(problems, settingProblem("", "%q cannot be the name of a branch", name))
		}
	}
	return problems
}

func (n *decisionNode) setDefaults() {
	if n.Branches == nil {
		n.Branches = []branch{"true", "false"}
	}
}

// Run evaluates the expression or runs the code, and takes the branch.
func (n *decisionNode) Run(ctx *node.Ctx) error {
	if !n.Expr.isSet() {
		return n.runCode(ctx)
	}
	v, err := n.Expr.value(ctx, "expr")
	if err != nil {
		return err
	}
	name, ok := branchName(v)
	if !ok || !slices.Contains(n.Branches, branch(name)) {
		return permanentError(CodeBranch, "expr gave %s, which is none of the branches %s", describeValue(v), joinNames(n.Branches))
	}
	takeBranch(ctx, name)
	return nil
}

func (n *decisionNode) runCode(ctx *node.Ctx) error {
	names := make([]string, len(n.Branches))
	for i, b := range n.Branches {
		names[i] = string(b)
	}
	r, err := runJob(ctx, &n.CodeSettings, &n.PromptSettings, names)
	if err != nil {
		return err
	}
	takeBranch(ctx, r.Branch)
	return nil
}

func takeBranch(ctx *node.Ctx, name string) {
	ctx.Output("result", name)
	ctx.Output(name, true)
}

// joinNames joins names for an error message.
func joinNames[S ~string](names []S) string {
	text := make([]string, len(names))
	for i, n := range names {
		text[i] = string(n)
	}
	return strings.Join(text, ", ")
}
