package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/structured"
	"github.com/weir-run/weir/node"
)

// planPurpose is the purpose of the planner's model calls, and the name of their effects.
const planPurpose = "plan"

// renamingHost gives the effects of model calls another name.
type renamingHost struct {
	llm.Host
	purpose string
}

// ModelCall implements llm.Host.
func (h renamingHost) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	req.Purpose = cmp.Or(req.Purpose, h.purpose)
	return h.Host.ModelCall(req, do)
}

// plan asks the planner for steps, adds them to the queue, and adds the message and the
// plan to the lane.
func (w *agentWorker) plan(message *convo.Message) error {
	if stop, err := w.limits.reached(); stop != "" || err != nil {
		return firstError(err, &limitError{stop: stop})
	}
	if message != nil {
		if _, err := w.lane.AddUserInput(*message); err != nil {
			return err
		}
	}
	t, err := w.planTurn(w.todo.Capacity() - w.todo.Len())
	if err != nil {
		return err
	}
	r, err := w.ctx.LLM().Turn(w.ctx, renamingHost{w.counter, planPurpose}, t)
	if err != nil {
		return node.ModelError(err)
	}
	plan, _ := r.Value.(string) // read, and so a plan
	steps, err := w.parsePlan(plan)
	if err != nil {
		return permanentError(engine.CodeModelAnswer, "the planner's answer is not a plan: %v", err)
	}
	if err := w.todo.Add(steps...); err != nil {
		return permanentError(engine.CodeModelAnswer, "the plan: %v", err)
	}
	w.report.planned = len(steps)
	if len(steps) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("The plan:")
	for i := range steps {
		fmt.Fprintf(&b, "\n%d. %s", steps[i].step, &steps[i])
	}
	_, err = w.lane.Add(convo.Message{Role: convo.Assistant, Text: b.String()})
	return err
}

// planTurn returns the turn of the planner. It reads the lane and adds no message to it.
func (w *agentWorker) planTurn(room int) (llm.Turn, error) {
	p := &w.n.Planner
	t := w.base
	t.Tools, t.SkipHistory, t.History = nil, true, ""
	t.Schema, t.MaxSteps = w.planSchema(room), w.limits.stepsLeft()
	form, err := structured.Compile(t.Schema)
	if err != nil {
		return t, fmt.Errorf("schema of the plan: %w", err)
	}
	t.ParseAnswer = func(text string) (engine.Value, error) {
		plan, err := form.Read(text)
		if err == nil {
			_, err = w.parsePlan(plan)
		}
		return plan, err
	}
	if p.Model != "" || p.Provider != "" {
		t.Provider, t.Model, t.Fallback = p.Provider, cmp.Or(p.Model, t.Model), nil
	}
	if p.Temperature != nil {
		t.Temperature = p.Temperature
	}
	t.MaxOutput, t.Reasoning = cmp.Or(p.MaxOutput, t.MaxOutput), cmp.Or(p.Reasoning, t.Reasoning)
	system, err := p.System.text(w.ctx, "planner.system")
	if err != nil {
		return t, err
	}
	system = cmp.Or(system, t.System, w.lane.Get().Settings.System)
	t.System = strings.TrimPrefix(system+"\n\n"+w.planInstructions(room), "\n\n")
	return t, nil
}

// planInstructions returns the instructions for the planner.
func (w *agentWorker) planInstructions(room int) string {
	var b strings.Builder
	b.WriteString("Do not answer yet: make the plan of the work. List the steps in the order in which they are to be done. " +
		"Each is done by itself, by an assistant who sees this conversation, the plan, and what came of the steps before.")
	if len(w.offeredTools) > 0 {
		b.WriteString("\n\nThe assistant can call these tools:")
		for _, t := range w.offeredTools {
			fmt.Fprintf(&b, "\n- %s: %s", t.Name, t.Description)
		}
	}
	if len(w.flows) > 0 {
		b.WriteString("\n\nThese flows can be run:")
		for _, f := range w.flows {
			b.WriteString("\n- " + f.String())
		}
	}
	b.WriteString("\n\nA step is {\"say\": what the assistant is to do}")
	if len(w.offeredTools) > 0 {
		b.WriteString(", or {\"tool\": name, \"arguments\": text that is JSON} where a tool is to be called with arguments that are known now")
	}
	if len(w.flows) > 0 {
		b.WriteString(", or {\"flow\": name, \"in\": text that is JSON of the inputs}")
	}
	fmt.Fprintf(&b, ". List at most %d steps. The final answer is asked for after the last and is no step; where no step is needed, list none.", room)
	return b.String()
}

// planSchema returns the JSON Schema of a plan. Its objects are closed and all their
// properties required, because some providers enforce only such schemas.
func (w *agentWorker) planSchema(room int) map[string]any {
	text := map[string]any{"type": "string"}
	kinds := []any{objectSchema(map[string]any{"say": text}, "say")}
	if len(w.offeredTools) > 0 {
		name := map[string]any{"type": "string", "enum": anyOf(w.toolNames())}
		kinds = append(kinds, objectSchema(map[string]any{"tool": name, "arguments": text}, "tool", "arguments"))
	}
	if len(w.flows) > 0 {
		name := map[string]any{"type": "string", "enum": anyOf(w.flowNames())}
		kinds = append(kinds, objectSchema(map[string]any{"flow": name, "in": text}, "flow", "in"))
	}
	step := kinds[0]
	if len(kinds) > 1 {
		step = map[string]any{"anyOf": kinds}
	}
	return objectSchema(map[string]any{"steps": map[string]any{"type": "array", "maxItems": room, "items": step}}, "steps")
}

// parsePlan returns the steps of a plan, which is JSON that fits its schema. The error is
// for the planner.
func (w *agentWorker) parsePlan(text string) ([]queuedTask, error) {
	var plan struct {
		Steps []modelEntry `json:"steps"`
	}
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return nil, fmt.Errorf("it is not a plan: %w", err)
	}
	var steps []queuedTask
	for i := range plan.Steps {
		t, err := w.taskFromModel(&plan.Steps[i])
		if err != nil {
			return nil, fmt.Errorf("step %d of the plan: %w", i+1, err)
		}
		t.step = i + 1
		steps = append(steps, t)
	}
	return steps, nil
}
