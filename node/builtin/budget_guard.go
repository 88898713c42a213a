package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// budgetGuardNode branches on what the run has spent.
type budgetGuardNode struct {
	MaxCost   float64 `json:"maxCost"`
	MaxTokens int     `json:"maxTokens"`
	MaxCalls  int     `json:"maxCalls"`
	OnLimit   string  `json:"onLimit"`
}

// The branches of a budgetGuard.
const (
	withinPort   = "within"
	exceededPort = "exceeded"
)

func budgetGuardType() node.Type {
	return define[budgetGuardNode](&flow.TypeSpec{
		Name:     "budgetGuard",
		Category: "control",
		Summary:  "Takes one of two branches by what the run has spent so far.",
		Doc: `The node compares what the run has spent on model calls when the node starts with its limits. It does not stop calls: a
` + "[`budget`](../flow-files.md)" + ` of the flow or of a node does. Use the guard to choose a cheaper way in time.

| setting | what |
|---|---|
| ` + "`maxCost`" + ` | US dollars |
| ` + "`maxTokens`" + ` | tokens, input and output |
| ` + "`maxCalls`" + ` | model calls |
| ` + "`onLimit`" + ` | what happens when a limit is reached: ` + "`branch`" + ` (default), or ` + "`fail`" + ` with ` + "`budget_exceeded`" + ` |

| output | what |
|---|---|
| ` + "`within`" + ` | true, if every limit leaves something; a branch |
| ` + "`exceeded`" + ` | true, if one is reached or exceeded; a branch |
| ` + "`used`" + ` | ` + "`{cost, tokens, calls}`" + ` |
| ` + "`left`" + ` | ` + "`{cost, tokens, calls}`" + `: what remains of each limit that is set, at least 0 |

**What counts.** The calls of this run and of its child runs that have ended, and the reservations of calls in flight. Calls in flight to which no
budget applies count when they have ended. In a round of a session, the round counts; in a child run, the child and its children.

**Prices.** With ` + "`maxCost`" + `, a model whose price is unknown is refused with ` + "`model_unpriced`" + `, in the whole run and in its children: its calls could not be counted.
The figure is recorded: a run that is continued later takes the same branch.`,
		Ports: flow.Ports{Out: []flow.Port{
			{Name: withinPort, Type: flow.TypeBool, Branch: true, Description: "True where every limit leaves something."},
			{Name: exceededPort, Type: flow.TypeBool, Branch: true, Description: "True where a limit is reached."},
			{Name: "used", Type: flow.TypeObject, Description: "What the run has spent."},
			{Name: "left", Type: flow.TypeObject, Description: "What remains of the limits."},
		}, AnyIn: true},
		Settings: objectSchema(map[string]any{
			"maxCost":   map[string]any{"type": "number", "exclusiveMinimum": 0, "description": "The limit in US dollars."},
			"maxTokens": map[string]any{"type": "integer", "minimum": 1, "description": "The limit in tokens, input and output."},
			"maxCalls":  map[string]any{"type": "integer", "minimum": 1, "description": "The limit in model calls."},
			"onLimit":   choiceSchema("What happens when a limit is reached.", "branch", "fail"),
		}),
		Check: func(with map[string]any) []flow.Problem {
			if with["maxCost"] == nil && with["maxTokens"] == nil && with["maxCalls"] == nil {
				return []flow.Problem{settingProblem("", "expected maxCost, maxTokens or maxCalls: there is no limit to compare with")}
			}
			return nil
		},
		Examples: budgetGuardExamples(),
	})
}

func budgetGuardExamples() []flow.Example {
	return []flow.Example{{
		Name: "a cheaper way",
		Flow: `
weir: 1
name: thrifty
context: {model: script/demo}
nodes:
  draft: {type: llmRequest, in: {message: "Draft a line."}}
  guard: {type: budgetGuard, after: draft, with: {maxCalls: 1}}
  polish: {type: llmRequest, after: guard.within, in: {message: "Polish it."}}
  keep: {type: template, after: guard.exceeded, in: {line: "{{ draft.text }}", used: "{{ guard.used }}"}, with: {text: "{{ inputs.line }} ({{ inputs.used.calls }} call)"}}
  end: {type: merge, in: {value: ["{{ polish.text }}", "{{ keep.text }}"]}}
outputs: {line: "{{ end.value }}"}
`,
		Script:  []string{"Water runs."},
		Outputs: map[string]any{"line": "Water runs. (1 call)"},
	}, {
		Name: "a limit that fails the run",
		Flow: `
weir: 1
name: strict
context: {model: script/demo}
nodes:
  draft: {type: llmRequest, in: {message: "Draft a line."}}
  guard: {type: budgetGuard, after: draft, with: {maxCalls: 1, onLimit: fail}}
outputs: {ok: "{{ guard.within }}"}
`,
		Script: []string{"Water runs."},
		Error:  engine.CodeBudget,
	}}
}

// Run compares the usage with the limits and takes a branch.
func (n *budgetGuardNode) Run(ctx *node.Ctx) error {
	v, err := ctx.Do(node.Effect{Name: "usage", ReadOnly: true, Do: func(context.Context, string) (node.Outcome, error) {
		u := ctx.Usage()
		return node.Outcome{Value: map[string]any{"cost": float64(u.CostMicros) / 1e6, "tokens": int64(u.Tokens()), "calls": int64(u.Calls)}}, nil
	}})
	if err != nil {
		return err
	}
	used, _ := v.(map[string]any)
	left := make(map[string]any)
	var reached []string
	for _, l := range []struct {
		name, setting string
		limit         float64
	}{{"cost", "maxCost", n.MaxCost}, {"tokens", "maxTokens", float64(n.MaxTokens)}, {"calls", "maxCalls", float64(n.MaxCalls)}} {
		if l.limit == 0 {
			continue
		}
		spent := number(used[l.name])
		if spent >= l.limit {
			reached = append(reached, fmt.Sprintf("%s is %v and %v are used", l.setting, l.limit, spent))
		}
		left[l.name] = max(l.limit-spent, 0)
	}
	ctx.Output("used", used)
	ctx.Output("left", left)
	if len(reached) > 0 && n.OnLimit == "fail" {
		return withHint(&engine.Error{Code: engine.CodeBudget, Message: "the guard stops the run: " + strings.Join(reached, ", "), Permanent: true},
			"increase the limit, or set onLimit: branch and wire the port exceeded")
	}
	branch := withinPort
	if len(reached) > 0 {
		branch = exceededPort
	}
	ctx.Output(branch, true)
	return nil
}

// number returns a value as a number, 0 for anything else.
func number(v engine.Value) float64 {
	switch t := v.(type) {
	case int64:
		return float64(t)
	case float64:
		return t
	}
	return 0
}
