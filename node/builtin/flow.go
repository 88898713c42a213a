package builtin

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// flowNode runs another flow as a child run.
type flowNode struct {
	Flow        flowChoice `json:"flow"`
	LastMessage string     `json:"lastMessage"`
	State       []string   `json:"state"`
	Reply       bool       `json:"reply"`
}

// The ports of a flow node that are not its child's.
const (
	outputsPort   = "outputs"
	runPort       = "run"
	textPort      = "text"
	summaryOutput = "summary" // the output of a child that is said in its parent's context
)

func flowType() node.Type {
	return define[flowNode](&flow.TypeSpec{
		Name:     "flow",
		Aliases:  []string{"workflow"},
		Category: "flow",
		Summary:  "Runs another flow as a child run and returns its outputs.",
		Doc:      flowDoc,
		Ports:    flow.Ports{In: []flow.Port{contextIn()}, Out: flowOutputs(), AnyIn: true, AnyOut: true},
		Uses:     &flow.UseSpec{PortsFor: flowPorts, Check: checkFlow, PortsForAny: flowPortsForAny},
		Flows:    chosenFlows,
		Reads: func(with map[string]any) ([]string, bool) {
			_, chooses := with["flow"].(map[string]any)
			return nil, !chooses
		},
		Check: checkFlowChoice,
		Settings: objectSchema(map[string]any{
			"flow":        flowSetting(),
			"lastMessage": settingSchema("string", "The child's input that is given the text of the last message of the node's context."),
			"state": map[string]any{
				"type": "array", "items": map[string]any{"type": "string", "minLength": 1}, "uniqueItems": true,
				"description": "Keys of the state that the child's begins with. Default: none.",
			},
			"reply": settingSchema("boolean", "Say the child's summary, else its answer, in the node's context. Default: false."),
		}, "flow"),
		ContextFor: func(with map[string]any) flow.ContextUse {
			if reply, _ := with["reply"].(bool); reply {
				return flow.ContextWrite
			}
			return flow.ContextRead
		},
		Replays:  true,
		Inline:   true,
		Examples: flowExamples(),
	})
}

const flowDoc = `The child is a separate run with its own journal, state and conversation; its row names this
run as its parent. The ports of the node follow from the flow: the inputs of the flow are input ports, with the
declared types, and its outputs are output ports. Everything is checked when the
flow is loaded, together with the file of the child.

| setting | what |
|---|---|
| ` + "`flow`" + ` | the flow file, by its path from the folder of this file; ` + "`self`" + ` is the flow itself. It is read when this flow is read, and its fingerprint is part of this flow's |
| ` + "`flow: {from, name}`" + ` | one of several flow files, which the run chooses: ` + "`from`" + ` lists them, and ` + "`name`" + ` is a template over ` + "`inputs.*`, `state.*` and `run.*`" + ` that gives one of them as it stands in the list, or the name of its flow. All are read and pinned. The inputs of the node are those of all, of which the chosen flow gets its own; each required one must be given. The outputs are those of all, and absent where the chosen flow has none of that name |
| ` + "`lastMessage`" + ` | an input of the child: where nothing is wired to it, it is given the text of the last thing said in the node's context, by a person or a model |
| ` + "`state`" + ` | keys of the state that are copied into the child's, under the same names; what the child writes to its state stays there |
| ` + "`reply`" + ` | say one message in the node's context, as the assistant: the child's output ` + "`summary`" + ` if it has one, else its answer (default false) |

| output | what |
|---|---|
| the child's outputs | each under its name; absent where the child did not put it out |
| ` + "`outputs`" + ` | all of them, an object |
| ` + "`text`" + ` | the answer: the child's output ` + "`text`" + ` if it has one; its only output if that is a text; else what a model said last in its main context |
| ` + "`run`" + ` | the id of the child run |
| ` + "`context`" + ` | the node's context, passed on |

An output of the child called ` + "`outputs`, `run`, `context` or `error`" + ` is in ` + "`outputs`" + ` only.

The node key ` + "`isolation`" + ` decides what the child sees of the conversation:

| isolation | the child's main context | what this run's context gets |
|---|---|---|
| ` + "`fresh`" + ` (default) | empty | nothing |
| ` + "`fork`" + ` | begins with the history of the node's context | nothing |
| ` + "`share`" + ` | begins with the history of the node's context, which no other node can write meanwhile | the messages of the child's context, when the child completes |

The child acts for the same user and spends from the same budgets. Its questions are asked as
questions of this run, with the id ` + "`PATH>ID`" + `; an answer to this run finds the child. Cancelling
this run cancels the child first. A child that fails fails the node with the child's error code;
` + "`retry`" + ` then starts another child. Runs nest 8 deep.`

func flowOutputs() []flow.Port {
	return []flow.Port{
		{Name: textPort, Type: flow.TypeText, Description: "The child's answer."},
		{Name: outputsPort, Type: flow.TypeObject, Description: "The child's outputs, by name."},
		{Name: runPort, Type: flow.TypeText, Description: "The id of the child run."},
		contextOut(),
	}
}

// flowPorts returns the child's inputs and outputs, and the node's own.
func flowPorts(with map[string]any, child *flow.Flow) flow.Ports {
	p := flow.Ports{In: []flow.Port{contextIn()}, Out: flowOutputs()}
	last, _ := with["lastMessage"].(string)
	for _, in := range child.Inputs {
		if in.Name == contextPort {
			continue // refused by checkFlow
		}
		p.In = append(p.In, flow.Port{
			Name: in.Name, Type: in.Type, Schema: in.Schema, Description: in.Description,
			Required: in.Required && in.Default == nil && in.Name != last,
		})
	}
	for _, o := range child.Outputs {
		switch o.Name {
		case outputsPort, runPort, contextPort, "error":
		case textPort:
			p.Out[0].Type = portTypeAcrossRuns(child.OutputType(o.Name))
		default:
			p.Out = append(p.Out, flow.Port{Name: o.Name, Type: portTypeAcrossRuns(child.OutputType(o.Name)), Description: "An output of the child."})
		}
	}
	return p
}

// portTypeAcrossRuns returns the type of a value that comes out of another run: a handle leads
// nowhere there.
func portTypeAcrossRuns(t flow.PortType) flow.PortType {
	if t == flow.TypeContext {
		return flow.TypeAny
	}
	return t
}

// checkFlow reports what cannot be given to the child.
func checkFlow(with map[string]any, child *flow.Flow) []flow.Problem {
	var out []flow.Problem
	for _, in := range child.Inputs {
		if in.Name == contextPort || in.Type == flow.TypeContext {
			p := settingProblem("flow", "the flow %s has the input %s, which cannot be given: contexts do not go from run to run", child.Name, in.Name)
			p.Hint = "take the input out of the flow, and give it the conversation with isolation: fork or share"
			out = append(out, p)
		}
	}
	last, set := with["lastMessage"].(string)
	if !set {
		return out
	}
	var names []string
	for _, in := range child.Inputs {
		names = append(names, in.Name)
		if in.Name != last {
			continue
		}
		if !slices.Contains([]flow.PortType{flow.TypeText, flow.TypeMessage, flow.TypeAny}, in.Type) {
			out = append(out, settingProblem("lastMessage", "the input %s of the flow %s is %s; a message is a text", last, child.Name, in.Type))
		}
		return out
	}
	p := settingProblem("lastMessage", "the flow %s has no input %q", child.Name, last)
	if near := flow.NearestName(last, names); near != "" {
		p.Hint = "did you mean " + near + "?"
	}
	return append(out, p)
}

// Run starts the child, or returns its outcome.
func (n *flowNode) Run(ctx *node.Ctx) error {
	m, err := outputContext(ctx)
	if err != nil {
		return err
	}
	child := node.Child{} // its isolation is the node's key
	if child.Flow, err = n.Flow.choose(ctx); err != nil {
		return err
	}
	if child.Inputs, err = n.inputs(ctx, m); err != nil {
		return err
	}
	if n.Flow.From != nil {
		ctx.Meta("flow", child.Flow)
		child.Inputs = declaredInputs(ctx.Flow(child.Flow), child.Inputs)
	}
	for _, key := range slices.Sorted(slices.Values(n.State)) {
		if v, ok := ctx.State().Get(key); ok {
			child.State = append(child.State, engine.Named{Name: key, Value: v})
		}
	}
	r, err := ctx.Child("child", child)
	if err != nil {
		return err
	}
	ctx.Meta("run", r.Run)
	if r.Error != nil {
		if r.Error.Hint == "" {
			return withHint(r.Error, "`%s` shows the child", engine.CommandLine("show", r.Run))
		}
		return r.Error
	}
	text := childAnswer(r)
	for _, o := range r.Outputs {
		ctx.Output(o.Name, o.Value)
	}
	if _, own := r.Outputs.Get(textPort); !own {
		ctx.Output(textPort, text)
	}
	ctx.Output(outputsPort, r.Outputs.Map())
	ctx.Output(runPort, r.Run)
	ctx.Output(contextPort, engine.Handle{ID: m.ID()})
	if n.Reply {
		if s, ok := r.Outputs.Get(summaryOutput); ok {
			text = node.TextOf(s)
		}
		return addAnswer(m, text)
	}
	return nil
}

// inputs returns what is wired to the node, and the last message where it is asked
// for.
func (n *flowNode) inputs(ctx *node.Ctx, m *convo.Manager) (engine.Values, error) {
	given := ctx.Inputs()
	delete(given, contextPort)
	if _, wired := given[n.LastMessage]; n.LastMessage != "" && !wired {
		text, err := lastMessageText(m.Get())
		if err != nil {
			return nil, err
		}
		if text == "" {
			return nil, withHint(permanentError(CodeInput, "the context %s has no message for the input %s", m.ID(), n.LastMessage),
				"run the node after one that says something there, or wire the input")
		}
		given[n.LastMessage] = text
	}
	return sortedValues(given), nil
}

// lastMessageText returns the text of the last message of a person or model, "" for none.
func lastMessageText(c convo.Context) (string, error) {
	said := func(m convo.Message) bool {
		return (m.Role == convo.User || m.Role == convo.Assistant) && m.Text != ""
	}
	if c.History.Versions() {
		all, err := c.Messages()
		if err != nil {
			return "", fmt.Errorf("read context %s: %w", c.ID, err)
		}
		for _, m := range slices.Backward(all) {
			if said(m) {
				return m.Text, nil
			}
		}
		return "", nil
	}
	for i := c.History.Len() - 1; i >= c.Epoch; i-- {
		m, err := c.History.Read(i)
		if err != nil {
			return "", fmt.Errorf("read context %s: %w", c.ID, err)
		}
		if said(m) {
			return m.Text, nil
		}
	}
	return "", nil
}

// childAnswer returns a child's answer as a text.
func childAnswer(r node.ChildResult) string {
	if v, ok := r.Outputs.Get(textPort); ok {
		return node.TextOf(v)
	}
	if len(r.Outputs) == 1 {
		if s, ok := r.Outputs[0].Value.(string); ok {
			return s
		}
	}
	return r.Answer
}
