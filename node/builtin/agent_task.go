package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// queuedTask is an entry of a queue that is ready to be processed: exactly one of say, tool
// and flow is set.
type queuedTask struct {
	instruction string
	tool        *tool.Tool
	arguments   string // JSON
	flow        string // the reference of the settings
	in          engine.Values
	step        int // its number in the plan, 0 for none
}

// describe names the task in error messages.
func (t *queuedTask) describe() string {
	switch {
	case t.tool != nil:
		return "tool " + t.tool.Name
	case t.flow != "":
		return "flow " + t.flow
	}
	return "say"
}

// String returns the task as a model is shown it.
func (t *queuedTask) String() string {
	switch {
	case t.tool != nil:
		return "call the tool " + t.tool.Name + " with " + t.arguments
	case t.flow != "":
		return "run the flow " + t.flow + " with " + jsonText(t.in.Map())
	}
	return t.instruction
}

// newTask converts an entry of the settings to a task.
func (w *agentWorker) newTask(at string, e *queueEntry) (queuedTask, error) {
	switch {
	case e.Tool != "":
		v, err := objectOf(w.ctx, e.Arguments, at+".arguments")
		if err != nil {
			return queuedTask{}, err
		}
		return queuedTask{tool: w.tools[e.Tool], arguments: jsonText(v)}, nil
	case e.Flow != "":
		v, err := objectOf(w.ctx, e.In, at+".in")
		if err != nil {
			return queuedTask{}, err
		}
		in, err := flowInputs(w.ctx.Flow(e.Flow), e.Flow, v)
		if err != nil {
			return queuedTask{}, permanentError(CodeInput, "%s: %v", at, err)
		}
		return queuedTask{flow: e.Flow, in: in}, nil
	}
	text, err := e.Instruction.text(w.ctx, at)
	if err == nil && strings.TrimSpace(text) == "" {
		err = permanentError(CodeExpression, "%s: the instruction is empty", at)
	}
	return queuedTask{instruction: text}, err
}

// objectOf returns the object that a template evaluates to, an empty one if the template is
// not set.
func objectOf(ctx *node.Ctx, t template, at string) (map[string]any, error) {
	v, err := t.value(ctx, at)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return map[string]any{}, nil
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, permanentError(CodeExpression, "%s: the template gave %s, expected an object", at, describeValue(v))
	}
	return o, nil
}

// flowInputs checks the inputs for a flow against the flow's declaration.
func flowInputs(f *flow.Flow, ref string, given map[string]any) (engine.Values, error) {
	if f == nil {
		return nil, fmt.Errorf("the flow %s is none that this flow uses", ref)
	}
	in := sortedValues(given)
	if _, err := node.CheckInputs(f.Inputs, in); err != nil {
		return nil, fmt.Errorf("flow %s: %w", f.Name, err)
	}
	return in, nil
}

// modelEntry is an entry as a model writes it.
type modelEntry struct {
	Instruction string       `json:"say"`
	Tool        string       `json:"tool"`
	Arguments   objectOrJSON `json:"arguments"`
	Flow        string       `json:"flow"`
	In          objectOrJSON `json:"in"`
}

// objectOrJSON is an object, or a text that contains the JSON of one.
type objectOrJSON map[string]any

// UnmarshalJSON reads both forms.
func (a *objectOrJSON) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if raw = []byte(text); strings.TrimSpace(text) == "" {
			return nil
		}
	}
	v, err := engine.ParseValue(raw)
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	o, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("expected an object, got %s", describeValue(v))
	}
	*a = o
	return nil
}

// taskFromModel converts an entry that a model wrote to a task. The entry may use only the
// tools that the model is offered and the flows that the settings allow. The error is for
// the model.
func (w *agentWorker) taskFromModel(o *modelEntry) (queuedTask, error) {
	if kinds := countKinds(o.Instruction != "", o.Tool != "", o.Flow != ""); kinds != 1 {
		return queuedTask{}, errors.New(oneKindMessage)
	}
	if o.Arguments == nil {
		o.Arguments = objectOrJSON{}
	}
	switch {
	case o.Tool != "":
		i := slices.IndexFunc(w.offeredTools, func(t *tool.Tool) bool { return t.Name == o.Tool || t.Alias == o.Tool })
		if i < 0 {
			return queuedTask{}, fmt.Errorf("there is no tool %q; there are: %s", o.Tool, strings.Join(w.toolNames(), ", "))
		}
		return queuedTask{tool: w.offeredTools[i], arguments: jsonText(map[string]any(o.Arguments))}, nil
	case o.Flow != "":
		for _, f := range w.flows {
			if f.name == o.Flow || f.ref == o.Flow {
				in, err := flowInputs(f.flow, f.ref, o.In)
				return queuedTask{flow: f.ref, in: in}, err
			}
		}
		return queuedTask{}, fmt.Errorf("there is no flow %q; there are: %s", o.Flow, strings.Join(w.flowNames(), ", "))
	}
	return queuedTask{instruction: o.Instruction}, nil
}

// queueableFlow is a flow that a model may put into the queue.
type queueableFlow struct {
	name, ref string
	flow      *flow.Flow
}

// findFlows returns the flows of the setting flows. Their keys are their own names if these
// are distinct.
func (w *agentWorker) findFlows() error {
	for _, ref := range w.n.Flows {
		f := w.ctx.Flow(ref)
		if f == nil {
			return permanentError(engine.CodeChildFlow, "flows: the flow %s is none that this flow uses", ref)
		}
		name := f.Name
		if slices.ContainsFunc(w.flows, func(r queueableFlow) bool { return r.name == name }) {
			name = ref
		}
		w.flows = append(w.flows, queueableFlow{name, ref, f})
	}
	return nil
}

// String describes a flow to a model.
func (r queueableFlow) String() string {
	var b strings.Builder
	b.WriteString(r.name)
	if r.flow.Description != "" {
		b.WriteString(": " + r.flow.Description)
	}
	for i, in := range r.flow.Inputs {
		b.WriteString(map[bool]string{true: " Its inputs: ", false: ", "}[i == 0])
		fmt.Fprintf(&b, "%s (%s", in.Name, in.Type)
		if in.Required && in.Default == nil {
			b.WriteString(", required")
		}
		b.WriteString(")")
		if in.Description != "" {
			b.WriteString(" " + in.Description)
		}
	}
	return b.String()
}

func (w *agentWorker) toolNames() []string {
	names := make([]string, len(w.offeredTools))
	for i, t := range w.offeredTools {
		names[i] = t.Name
	}
	return names
}

func (w *agentWorker) flowNames() []string {
	names := make([]string, len(w.flows))
	for i, f := range w.flows {
		names[i] = f.name
	}
	return names
}
