package weir

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/tool"
)

// FlowTool is a flow that models may call as a tool. Each call is a run of its own, with its
// own history. The arguments of the call are the inputs of the run, and the model receives its
// outputs. The run id is derived from the key of the call, so a call that is repeated after a
// crash continues the same run. It is a child run of the caller, as that of a node of type flow
// with isolation: fresh: its questions are questions of the caller, which pauses for them.
type FlowTool struct {
	// Name is the name of the tool; "" is the name of the flow.
	Name string
	// Description tells the model when to call the tool; "" is the description of the flow.
	Description string
	// Flow is the flow; alternatively, File is the path of its file.
	Flow *Flow
	File string
	// Model replaces the flow's model: "provider/model".
	Model string
	// Isolation is "" or "fresh": the flow neither reads nor writes the conversation of its
	// caller. Open refuses "fork" and "share".
	Isolation string
	// Approve and MaxOutput are those of the Tool.
	Approve   tool.Approval
	MaxOutput int
}

// flowTools makes the tools of Options.Flows.
func (w *Weir) flowTools(list []FlowTool) ([]*Tool, error) {
	out := make([]*Tool, 0, len(list))
	for _, ft := range list {
		if ft.Flow == nil {
			f, err := flow.Load(ft.File, w.catalogue) // the tools are not known yet
			if err != nil {
				return nil, err
			}
			ft.Flow = f
		}
		if ft.Name == "" {
			ft.Name = ft.Flow.Name
		}
		if ft.Isolation != "" && ft.Isolation != "fresh" {
			return nil, fmt.Errorf("flow %s as a tool: isolation: %s: a tool never shares its caller's conversation; run the flow by a node of type flow", ft.Name, ft.Isolation)
		}
		if ft.Description == "" {
			ft.Description = ft.Flow.Description
		}
		t, err := tool.FromSchema(ft.Name, ft.Description, FlowParameters(ft.Flow), callFlow)
		if err != nil {
			return nil, err
		}
		t.Timeout = -1 // the flow's nodes have their own
		// A repeated call joins the run that the first call started.
		t.ReadOnly, t.Origin = true, "flow:"+ft.Flow.Fingerprint()
		t.Approve, t.MaxOutput, t.Flow = ft.Approve, ft.MaxOutput, ft.Flow.Fingerprint()
		w.toolFlows[t.Name] = ft
		out = append(out, t)
	}
	return out, nil
}

// FlowParameters returns the JSON Schema of a flow's inputs, as a model that may call the flow
// as a tool receives it.
func FlowParameters(f *Flow) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, in := range f.Inputs {
		s := in.Schema
		if s == nil {
			s = map[string]any{}
			if t := jsonType(in.Type); t != "" {
				s["type"] = t
			}
		}
		if in.Description != "" {
			s = maps.Clone(s)
			s["description"] = in.Description
		}
		properties[in.Name] = s
		if in.Required {
			required = append(required, in.Name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// jsonType returns the JSON Schema type of a port type, "" for any.
func jsonType(t flow.PortType) string {
	switch t {
	case flow.TypeText:
		return "string"
	case flow.TypeNumber:
		return "number"
	case flow.TypeBool:
		return "boolean"
	case flow.TypeObject:
		return "object"
	case flow.TypeList:
		return "array"
	case flow.TypeMessage, flow.TypeMessages, flow.TypeContext, flow.TypeTools, flow.TypeFile, flow.TypeAny:
	}
	return ""
}

// callFlow is the function of tools that are flows. Nodes run the flow as a child run instead.
func callFlow(context.Context, tool.Call, map[string]any) (string, error) {
	return "", tool.NotMade(errors.New("a flow is run by nodes only"))
}

// flowOfTool returns the program of a flow that is offered as a tool, and its model. The flow
// is stored, so that any process can continue a run of it.
func (w *Weir) flowOfTool(ctx context.Context, name string) (*runner.Program, string, error) {
	t := w.tools.Get(name)
	if t == nil || w.toolFlows[t.Name].Flow == nil {
		return nil, "", fmt.Errorf("the tool %s is no flow", name)
	}
	ft := w.toolFlows[t.Name]
	p, err := w.program(ctx, ft.Flow)
	return p, ft.Model, err
}
