package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/queue"
)

// queueSettingNames are the settings that hold queues, in the order in which they are
// processed.
func queueSettingNames() []string { return []string{"pre", "todo", "post"} }

// checkAgent reports problems of an agent's settings that the JSON Schema cannot express.
func checkAgent(with map[string]any) []flow.Problem {
	out := append(checkSchemaSetting(with), checkFallbackSettings(with)...)
	capacity := queue.DefaultCapacity
	if q, ok := with["queue"].(map[string]any); ok {
		if n, ok := q["capacity"].(int64); ok && n > 0 {
			capacity = int(n)
		}
	}
	for _, name := range queueSettingNames() {
		list, _ := with[name].([]any)
		if len(list) > capacity {
			p := settingProblem(name, "%s has %d entries, and the queue takes %d", name, len(list), capacity)
			p.Hint = fmt.Sprintf("take entries out, or raise queue.capacity, to at most %d", maxCapacity)
			out = append(out, p)
		}
		for i, e := range list {
			out = append(out, checkEntry(fmt.Sprintf("%s.%d", name, i), e)...)
		}
	}
	out = append(out, checkQueueSettings(with)...)
	if with["planner"] != nil && with["mode"] != planMode {
		p := settingProblem("planner", "planner is for an agent that plans")
		p.Hint = "add mode: plan, or take it out"
		out = append(out, p)
	}
	return out
}

// checkQueueSettings reports settings of a queue that nothing fills.
func checkQueueSettings(with map[string]any) []flow.Problem {
	q, ok := with["queue"].(map[string]any)
	if !ok {
		return nil
	}
	if with["flows"] != nil && q["tools"] == false {
		return []flow.Problem{settingProblem("flows", "flows lists what the model may put into the queue, and queue.tools: false lets it add nothing")}
	}
	filled := with["mode"] == planMode || with["flows"] != nil || q["tools"] == true
	for _, name := range queueSettingNames() {
		filled = filled || with[name] != nil
	}
	if filled {
		return nil
	}
	p := settingProblem("queue", "nothing fills the queue of this agent")
	p.Hint = "add mode: plan, todo, flows, or queue.tools: true, or remove queue"
	return []flow.Problem{p}
}

// checkEntry reports the problems of one queue entry.
func checkEntry(at string, v any) []flow.Problem {
	e, ok := v.(map[string]any)
	if !ok {
		return nil // a text, or what the schema refuses
	}
	var out []flow.Problem
	if kinds := countKinds(e["say"] != nil, e["tool"] != nil, e["flow"] != nil); kinds != 1 {
		p := settingProblem(at, "%s; this has %d of them", oneKindMessage, kinds)
		if kinds == 0 {
			p = settingProblem(at, "%s; got none", oneKindMessage)
		}
		out = append(out, p)
	}
	for of, with := range map[string]string{"tool": "arguments", "flow": "in"} {
		if e[with] != nil && e[of] == nil {
			out = append(out, settingProblem(at+"."+with, "%s goes with %s", with, of))
		}
		if name, _ := e[of].(string); strings.Contains(name, "{{") {
			p := settingProblem(at+"."+of, "%s is a name, and no template", of)
			p.Hint = "name it as it is; " + with + " may be templates"
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b flow.Problem) int { return strings.Compare(a.Setting, b.Setting) })
	return out
}

// agentFlows returns the flows that an agent's settings name.
func agentFlows(with map[string]any) []flow.FlowRef {
	var refs []flow.FlowRef
	for _, name := range queueSettingNames() {
		list, _ := with[name].([]any)
		for i, v := range list {
			e, _ := v.(map[string]any)
			ref, _ := e["flow"].(string)
			if ref == "" || strings.Contains(ref, "{{") {
				continue
			}
			at := fmt.Sprintf("%s.%d", name, i)
			refs = append(refs, flow.FlowRef{Setting: at + ".flow", Ref: ref, Check: func(child *flow.Flow) []flow.Problem {
				return append(checkFlowInputs(at+".flow", child), checkEntryInputs(at, e["in"], child)...)
			}})
		}
	}
	list, _ := with["flows"].([]any)
	for i, v := range list {
		at := fmt.Sprintf("flows.%d", i)
		ref, _ := v.(string)
		refs = append(refs, flow.FlowRef{Setting: at, Ref: ref, Check: func(child *flow.Flow) []flow.Problem {
			return checkFlowInputs(at, child)
		}})
	}
	return refs
}

// checkFlowInputs reports required inputs of a flow that no caller can set.
func checkFlowInputs(at string, child *flow.Flow) []flow.Problem {
	out := checkFlow(nil, child)
	for i := range out {
		out[i].Setting = at
		out[i].Hint = "take the input out of the flow"
	}
	return out
}

// checkEntryInputs compares the inputs in an entry with the declared inputs of its flow.
func checkEntryInputs(at string, in any, child *flow.Flow) []flow.Problem {
	given, isObject := in.(map[string]any)
	if in != nil && !isObject {
		return nil // a template, or what the schema refuses
	}
	var out []flow.Problem
	var names []string
	for _, d := range child.Inputs {
		names = append(names, d.Name)
		v, ok := given[d.Name]
		if !ok {
			if d.Required && d.Default == nil && d.Type != flow.TypeContext {
				p := settingProblem(at+".flow", "the flow %s needs the input %s (%s)", child.Name, d.Name, d.Type)
				p.Hint = fmt.Sprintf("add in: {%s: ...} to the entry", d.Name)
				out = append(out, p)
			}
			continue
		}
		if fixed, ok := literalOf(v); ok && d.Type != flow.TypeContext {
			if _, err := node.CheckInput(d, fixed); err != nil {
				out = append(out, settingProblem(at+".in."+d.Name, "the input %s of the flow %s: %v", d.Name, child.Name, err))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(names, name) {
			continue
		}
		p := settingProblem(at+".in."+name, "the flow %s has no input %q", child.Name, name)
		if near := flow.NearestName(name, names); near != "" {
			p.Hint = "did you mean " + near + "?"
		}
		out = append(out, p)
	}
	return out
}
