package builtin

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
)

// flowChoice is the setting `flow`: the reference of a flow, or a list of which Name gives one.
type flowChoice struct {
	Ref  string
	From []string
	Name template
}

// flowSetting is the schema of a flowChoice.
func flowSetting() map[string]any {
	return map[string]any{
		"type": []any{"string", "object"}, "minLength": 1, "additionalProperties": false, "required": []any{"from", "name"},
		"description": "The flow file, by its path from the folder of this one; or self; or {from, name} to choose one of several in the run.",
		"properties": map[string]any{
			"from": map[string]any{
				"type": "array", "minItems": 1, "maxItems": 50, "uniqueItems": true, "items": map[string]any{"type": "string", "minLength": 1},
				"description": "The flow files of which the run chooses one.",
			},
			"name": templateSchema("string", "Which of them: as it stands in the list, or the name of its flow."),
		},
	}
}

// UnmarshalJSON reads either form.
func (c *flowChoice) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &c.Ref); err == nil {
		return nil
	}
	var o struct {
		From []string `json:"from"`
		Name template `json:"name"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return fmt.Errorf("flow: expected a path, or from and name: %w", err)
	}
	c.From, c.Name = o.From, o.Name
	return nil
}

// choose returns the reference of the flow that the node runs.
func (c *flowChoice) choose(ctx *node.Ctx) (string, error) {
	if c.From == nil {
		return c.Ref, nil
	}
	name, err := c.Name.text(ctx, "flow.name")
	if err != nil {
		return "", err
	}
	if slices.Contains(c.From, name) {
		return name, nil
	}
	var found []string
	known := slices.Clone(c.From)
	for _, ref := range c.From {
		f := ctx.Flow(ref)
		if f == nil {
			continue
		}
		known = append(known, f.Name)
		if f.Name == name {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		err := permanentError(CodeInput, "flow.name gave %q, which is none of the flows: %s", name, strings.Join(c.From, ", "))
		if near := flow.NearestName(name, known); near != "" {
			return "", withHint(err, "did you mean %s?", near)
		}
		return "", withHint(err, "give one of the list, or the name of its flow")
	}
	return "", withHint(permanentError(CodeInput, "flow.name gave %q, which is the name of several flows: %s", name, strings.Join(found, ", ")),
		"give the flow as it stands in the list")
}

// chosenFlows lists the flows in `from`.
func chosenFlows(with map[string]any) []flow.FlowRef {
	choice, _ := with["flow"].(map[string]any)
	list, _ := choice["from"].([]any)
	var refs []flow.FlowRef
	for i, v := range list {
		ref, _ := v.(string)
		at := fmt.Sprintf("flow.from.%d", i)
		refs = append(refs, flow.FlowRef{Setting: at, Ref: ref, Check: func(child *flow.Flow) []flow.Problem {
			problems := checkFlow(with, child)
			for i := range problems {
				if problems[i].Setting == "flow" {
					problems[i].Setting = at
				}
			}
			return problems
		}})
	}
	return refs
}

// checkFlowChoice reports a literal name that is in no case one of the flows.
func checkFlowChoice(with map[string]any) []flow.Problem {
	choice, _ := with["flow"].(map[string]any)
	if twice := flowsListedTwice(choice); len(twice) > 0 {
		return twice
	}
	if choice["name"] == nil {
		return nil
	}
	t, err := expr.ParseTemplate(choice["name"])
	if err != nil {
		return nil // reported by the loader
	}
	if name, literal := t.Literal(); literal {
		p := settingProblem("flow.name", "the name is always %q: nothing is chosen", name)
		p.Hint = "write flow: FILE for one flow, or a template for the name"
		return []flow.Problem{p}
	}
	return nil
}

// flowsListedTwice reports flow files that a choice lists more than once, by whichever spelling of
// their path: the name of such a flow would not say which is meant.
func flowsListedTwice(choice map[string]any) (problems []flow.Problem) {
	list, _ := choice["from"].([]any)
	first := make(map[string]string, len(list))
	for i, v := range list {
		ref, _ := v.(string)
		clean := path.Clean(ref)
		if earlier, ok := first[clean]; ok {
			p := settingProblem(fmt.Sprintf("flow.from.%d", i), "%q and %q are the same flow", earlier, ref)
			p.Hint = "list each flow once"
			problems = append(problems, p)
			continue
		}
		first[clean] = ref
	}
	return problems
}

// flowPortsForAny are the ports of a node that runs one of several flows: the inputs and outputs
// of all. Where flows declare a name with different types, it is of any type.
func flowPortsForAny(with map[string]any, children []*flow.Flow) flow.Ports {
	all := flow.Ports{AnyIn: true} // the name may read further inputs
	for _, child := range children {
		p := flowPorts(with, child)
		all.In, all.Out = unitePorts(all.In, p.In), unitePorts(all.Out, p.Out)
	}
	return all
}

func unitePorts(all, more []flow.Port) []flow.Port {
	for _, p := range more {
		i := slices.IndexFunc(all, func(q flow.Port) bool { return q.Name == p.Name })
		if i < 0 {
			all = append(all, p)
			continue
		}
		all[i].Required = all[i].Required || p.Required
		if all[i].Type != p.Type {
			all[i].Type = flow.TypeAny
		}
		all[i].Schema = nil // the child checks its own
	}
	return all
}

// declaredInputs are those of the values that a flow declares as inputs.
func declaredInputs(f *flow.Flow, given engine.Values) engine.Values {
	if f == nil {
		return given
	}
	return slices.DeleteFunc(given, func(v engine.Named) bool {
		return !slices.ContainsFunc(f.Inputs, func(in flow.Input) bool { return in.Name == v.Name })
	})
}
