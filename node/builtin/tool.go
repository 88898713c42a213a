package builtin

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// toolNode calls one tool.
type toolNode struct {
	Tool      string         `json:"tool"`
	Arguments template       `json:"arguments"`
	Approve   tool.Approval  `json:"approve"`
	OnUnknown tool.OnUnknown `json:"onUnknown"`
}

func toolType() node.Type {
	return toolCaller{
		Type: define[toolNode](&flow.TypeSpec{
			Name:     toolTypeName,
			Category: "io",
			Summary:  "Calls one tool without a model.",
			Doc:      toolDoc,
			Ports:    flow.Ports{Out: toolOutputs(), AnyIn: true},
			Settings: objectSchema(map[string]any{
				"tool":      map[string]any{"type": "string", "minLength": 1, "description": "The name of the tool, such as mcp:github/create_issue."},
				"arguments": withAnyMembers(templateSchema("object", "The arguments. Default: the values of the input ports.")),
				"approve": map[string]any{
					"type": "string", "enum": []any{"always", "once", "never"},
					"description": "Whether a person must approve the call. Default: the policy of the tool, which a flow can only make stricter.",
				},
				"onUnknown": map[string]any{
					"type": "string", "enum": []any{"retry", "ask", "fail"},
					"description": "What to do if the outcome of the call is unknown. Default: the policy of the tool.",
				},
			}, "tool"),
			Check: checkToolNode,
			// BranchTools of the runner checks the tool itself.
			ActsOutside: never,
			Reads:       func(with map[string]any) ([]string, bool) { return nil, with["arguments"] == nil },
			Examples:    toolExamples(),
		}),
		calls: func(g *flow.Graph, n *flow.Node) directCall {
			name, _ := n.With["tool"].(string)
			c := directCall{tool: name, setting: "tool", at: "arguments"}
			if a, ok := n.With["arguments"]; ok {
				c.arguments, _ = a.(map[string]any)
				return c
			}
			c.at, c.arguments = "", boundPorts(g, n)
			return c
		},
	}
}

// boundPorts returns the values of the input ports of a node, as the flow has them: templates
// where an edge or a template brings the value.
func boundPorts(g *flow.Graph, n *flow.Node) map[string]any {
	out := make(map[string]any, len(n.In))
	for _, e := range g.Edges {
		if e.To == n.ID && e.ToPort != "" {
			out[e.ToPort] = "{{ " + expr.Join(e.From, e.FromPort) + " }}"
		}
	}
	for _, b := range n.In {
		out[b.Name] = b.Value
	}
	return out
}

const toolDoc = `Calls a tool that this process offers: of an MCP server, of the configuration, a Go function, or a
flow that is offered as a tool. ` + "`weir tools`" + ` lists them. The call is one effect: a result that was recorded is never requested
again, after a crash or on a retry.

| setting | what |
|---|---|
| ` + "`tool`" + ` | the name of the tool |
| ` + "`arguments`" + ` | an object; a template over ` + "`inputs.*`, `state.*` and `run.*`" + `. Without this setting the arguments are the values of the input ports, by name |
| ` + "`approve`" + ` | ` + "`always`" + ` or ` + "`once`" + `: a person must approve the call, also if the tool does not require it. ` + "`never`" + ` does not remove the tool's own policy |
| ` + "`onUnknown`" + ` | what happens if the outcome is unknown: ` + "`retry`, `ask` or `fail`" + `. Default: the tool's own policy |

| output | what |
|---|---|
| ` + "`text`" + ` | the result as text |
| ` + "`value`" + ` | the result as a value: the structured content of an MCP tool, or the text parsed as JSON, or the text |
| ` + "`error`" + ` | the failure, if the port is wired |

**Arguments** are checked against the schema of the tool: literal ones when the run is started, all others before a person
is asked and before the call is made. Arguments that do not fit fail the node with ` + "`input_invalid`" + `, and a tool that
this process does not offer with ` + "`tool_unknown`" + `.

**Approval** comes before the call. If the tool or the arguments change before the call is made, for example in a later attempt,
the person is asked again. A refusal fails the node with ` + "`tool_refused`" + ` and makes no call.

**Input.** A tool may require the input of a person, as MCP servers do with the result input_required. The node pauses with a
question for each form; the call with the answers is an effect of its own. The answer ` + "`decline`" + ` gives no input.

**Flows.** A tool that is a flow runs as a child run, as a node of type ` + "`flow`" + ` runs one with ` + "`isolation: fresh`" + `. Its questions are
questions of this run, with the id ` + "`PATH:CALL>ID`" + `, and its failure fails the node with its code. ` + "`retry`" + ` starts another child run.

**Errors.** An error that the tool reports fails the node with ` + "`tool_error`" + `. ` + "`retry`" + ` repeats the call only
if the tool is read-only or idempotent, or if the call was certainly not made (no connection, refused definition). This also holds if
` + "`on`" + ` lists the code. ` + "`weir retry RUN NODE`" + ` repeats any call.

**Unknown outcomes.** If the process ends during the call, or the connection is lost after the request was sent, the call may have
had effects. With ` + "`ask`" + ` the run pauses and a person decides: ` + "`retry`, `fail`" + `, or ` + "`{\"result\": ...}`" + `. With
` + "`retry`" + ` the call is made again with the same key; if the connection was lost, that takes a ` + "`retry`" + ` of the node. With
` + "`fail`" + ` the node fails with ` + "`effect_outcome_unknown`" + `. The default is ` + "`retry`" + ` for read-only and idempotent tools, and
` + "`ask`" + ` for all others.`

// toolOutputs returns the outputs of nodes that call a tool.
func toolOutputs() []flow.Port {
	return []flow.Port{
		{Name: "text", Type: flow.TypeText, Description: "The result as text."},
		{Name: "value", Type: flow.TypeAny, Description: "The result as a value."},
	}
}

func toolExamples() []flow.Example {
	return []flow.Example{{
		Name: "a tool without a model",
		Flow: `
weir: 1
name: stock
inputs:
  article: {type: text, required: true}
nodes:
  look:
    type: tool
    with: {tool: warehouse, arguments: {article: "{{ run.inputs.article }}"}, approve: always}
  say:
    type: template
    in: {count: "{{ look.value.count }}"}
    with: {text: "{{ inputs.count }} in stock"}
outputs: {text: "{{ say.text }}"}
`,
		Inputs:  map[string]any{"article": "pump"},
		Tools:   map[string]any{"warehouse": map[string]any{"count": 3}},
		Answers: map[string]any{"look": "approve"},
		Outputs: map[string]any{"text": "3 in stock"},
	}, {
		Name: "a refusal that the flow handles",
		Flow: `
weir: 1
name: ticket
inputs:
  title: {type: text, required: true}
nodes:
  open:
    type: tool
    in: {title: "{{ run.inputs.title }}"}
    with: {tool: create_issue, approve: always, onUnknown: ask}
  note:
    type: template
    in: {problem: "{{ open.error }}"}
    with: {text: "not opened: {{ inputs.problem.code }}"}
outputs: {note: "{{ note.text }}"}
`,
		Inputs:  map[string]any{"title": "The pump is loud"},
		Tools:   map[string]any{"create_issue": "created"},
		Answers: map[string]any{"open": map[string]any{"approve": false, "reason": "not yet"}},
		Outputs: map[string]any{"note": "not opened: tool_refused"},
	}}
}

func checkToolNode(with map[string]any) []flow.Problem {
	if name, _ := with["tool"].(string); strings.Contains(name, "{{") {
		p := settingProblem("tool", "the name of a tool cannot be a template")
		p.Hint = "use a switch and one tool node for each tool"
		return []flow.Problem{p}
	}
	return nil
}

// Run calls the tool.
func (n *toolNode) Run(ctx *node.Ctx) error {
	arguments := ctx.Inputs()
	if n.Arguments.isSet() {
		var err error
		if arguments, err = objectOf(ctx, n.Arguments, "arguments"); err != nil {
			return err
		}
	}
	r, err := callTool(ctx, n.Tool, arguments, func(t *tool.Tool) {
		t.Approve = stricterApproval(t.Approve, n.Approve)
		if n.OnUnknown != "" {
			t.OnUnknown = n.OnUnknown
		}
	})
	if err != nil {
		return err
	}
	outputToolResult(ctx, r)
	return nil
}

// callTool calls a tool of this process, as changed by change.
func callTool(ctx *node.Ctx, name string, arguments map[string]any, change func(*tool.Tool)) (node.DirectResult, error) {
	found, err := toolsNamed(ctx.Tools(), []string{name})
	if err != nil {
		return node.DirectResult{}, err
	}
	t := *found[0]
	change(&t)
	b, err := engine.AppendValue(nil, arguments)
	if err != nil {
		return node.DirectResult{}, permanentError(CodeInput, "the arguments of tool %s: %v", name, err)
	}
	text := string(b)
	if schema, err := tool.NewArguments(t.Parameters); err == nil { // otherwise only the tool can check them
		if _, err := schema.Read(text); err != nil {
			return node.DirectResult{}, permanentError(CodeInput, "tool %s: %v", name, err)
		}
	}
	ctx.Meta("tool", name)
	r, err := ctx.CallTool(node.DirectCall{Tool: &t, Arguments: text})
	if err == nil && r.Approval != nil {
		ctx.Meta("approval", r.Approval["approval"])
	}
	return r, err
}

// outputToolResult sets the output ports of toolOutputs.
func outputToolResult(ctx *node.Ctx, r node.DirectResult) {
	value := r.Value
	if value == nil {
		value = r.Text
		if parsed, err := parseJSON(r.Text); err == nil {
			value = parsed
		}
	}
	ctx.Output("text", r.Text)
	ctx.Output("value", value)
}

// stricterApproval returns the stricter of two policies.
func stricterApproval(a, b tool.Approval) tool.Approval {
	strictness := func(a tool.Approval) int {
		return slices.Index([]tool.Approval{tool.ApproveOnce, tool.ApproveAlways}, a)
	}
	if strictness(b) > strictness(a) {
		return b
	}
	return a
}
