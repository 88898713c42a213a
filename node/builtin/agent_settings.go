package builtin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node/queue"
)

// agentQueues are the settings of an agent's queues: pre (before the message), todo (the
// steps of the work) and post (after the work).
type agentQueues struct {
	Mode    string          `json:"mode"`
	Pre     []queueEntry    `json:"pre"`
	Todo    []queueEntry    `json:"todo"`
	Post    []queueEntry    `json:"post"`
	Flows   []string        `json:"flows"`
	Queue   queueSettings   `json:"queue"`
	Planner plannerSettings `json:"planner"`
}

// planMode is the mode in which a planner fills the queue; reactMode is the other mode.
const (
	reactMode = "react"
	planMode  = "plan"
)

// defaultPlanSteps is the default limit of model calls of an agent that works to a plan.
const defaultPlanSteps = 64

// queueSettings limits a queue and says whether a model may add to it; nil is the default:
// it may if the queue is in use.
type queueSettings struct {
	Capacity int   `json:"capacity"`
	Tools    *bool `json:"tools"`
}

// plannerSettings are the model settings of the planner, which replace those of the agent.
type plannerSettings struct {
	Provider    string   `json:"provider"`
	Model       string   `json:"model"`
	System      template `json:"system"`
	Temperature *float64 `json:"temperature"`
	MaxOutput   int      `json:"maxOutput"`
	Reasoning   string   `json:"reasoning"`
}

// usesQueues reports whether any setting of queues is present.
func (q *agentQueues) usesQueues() bool {
	return q.Mode == planMode || len(q.Pre)+len(q.Post) > 0 || q.hasTodo()
}

// hasTodo reports whether the loop has a queue other than a plan.
func (q *agentQueues) hasTodo() bool {
	return len(q.Todo)+len(q.Flows) > 0 || q.Queue.Tools != nil && *q.Queue.Tools
}

// offersTools reports whether the model gets the tools that add to the queue.
func (q *agentQueues) offersTools() bool {
	if q.Queue.Tools != nil {
		return *q.Queue.Tools
	}
	return q.Mode == planMode || q.hasTodo()
}

// maxSteps returns the maximum number of model calls.
func (n *agentNode) maxSteps() int {
	if n.Mode == planMode {
		return cmp.Or(n.MaxSteps, defaultPlanSteps)
	}
	return cmp.Or(n.MaxSteps, llm.DefaultMaxSteps)
}

// queueEntry is one entry of a queue in the settings: an instruction to the model, a tool
// call or a flow.
type queueEntry struct {
	Instruction template
	Tool        string
	Arguments   template
	Flow        string
	In          template
}

// UnmarshalJSON reads a text, which is an instruction, or an object.
func (e *queueEntry) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) {
		return e.Instruction.UnmarshalJSON(raw)
	}
	var o struct {
		Say       *template `json:"say"`
		Tool      string    `json:"tool"`
		Arguments template  `json:"arguments"`
		Flow      string    `json:"flow"`
		In        template  `json:"in"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return err
	}
	*e = queueEntry{Tool: o.Tool, Arguments: o.Arguments, Flow: o.Flow, In: o.In}
	if o.Say != nil {
		e.Instruction = *o.Say
	}
	if kinds := countKinds(o.Say != nil, o.Tool != "", o.Flow != ""); kinds != 1 {
		return errors.New(oneKindMessage)
	}
	return nil
}

// oneKindMessage describes the valid forms of an entry.
const oneKindMessage = "an entry must be one of say (an instruction), tool (a tool call) and flow (a flow that is run)"

func countKinds(is ...bool) (n int) {
	for _, b := range is {
		if b {
			n++
		}
	}
	return n
}

// withQueueSettings adds the settings of agentQueues.
func withQueueSettings(properties map[string]any) map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	values := map[string]any{"type": "object", "additionalProperties": map[string]any{}}
	list := func(description string) map[string]any {
		return map[string]any{"type": "array", "description": description, "items": map[string]any{
			"type": []any{"string", "object"}, "x-weir": "template", "minLength": 1, "additionalProperties": false,
			"description": "An instruction, or one of say, tool and flow.",
			"properties":  map[string]any{"say": text, "tool": text, "arguments": values, "flow": text, "in": values},
		}}
	}
	properties["mode"] = choiceSchema("Whether the message is answered, or a plan is made and worked off.", reactMode, planMode)
	properties["pre"] = list("What is done first, in order.")
	properties["todo"] = list("What the loop works off, in order, beside what is added as it works.")
	properties["post"] = list("What is done last, in order, also where the work failed.")
	properties["flows"] = map[string]any{
		"type": "array", "items": text, "uniqueItems": true,
		"description": "Flows that the model may put into the queue, each by its path from the folder of this one; or self.",
	}
	bounds := objectSchema(map[string]any{
		"capacity": map[string]any{
			"type": "integer", "minimum": 1, "maximum": maxCapacity,
			"description": fmt.Sprintf("How many entries each queue takes. Default: %d.", queue.DefaultCapacity),
		},
		"tools": settingSchema("boolean", "Offer the model tools that add to the queue. Default: where there is a plan, todo or flows."),
	})
	bounds["description"] = "How much the queues take, and whether the model adds to them."
	properties["queue"] = bounds
	planner := objectSchema(map[string]any{
		"provider":    settingSchema("string", "Who serves the planner's model; not needed where the model names it."),
		"model":       settingSchema("string", "The model that plans, as provider/model."),
		"system":      templateSchema("string", "Instructions for the planner."),
		"temperature": map[string]any{"type": "number", "minimum": 0, "maximum": 2, "description": "How varied its answers are."},
		"maxOutput":   map[string]any{"type": "integer", "minimum": 1, "description": "The longest plan, in tokens."},
		"reasoning":   settingSchema("string", "How hard to think, in the provider's words: low, medium, high."),
	})
	planner["description"] = "What the planner is asked with, in place of the node's own settings."
	properties["planner"] = planner
	return properties
}

// maxCapacity is the largest capacity of a queue that may be set.
const maxCapacity = 10_000

// literalOf returns a setting without templates.
func literalOf(v any) (engine.Value, bool) {
	t, err := expr.ParseTemplate(v)
	if err != nil {
		return nil, false
	}
	return t.Literal()
}
