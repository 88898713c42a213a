package builtin

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// agentNode lets a model work with tools in a lane of the agent.
type agentNode struct {
	ModelSettings
	FallbackSettings
	ToolSettings
	agentQueues
	Schema    map[string]any `json:"schema"`
	MaxTokens int            `json:"maxTokens"`
	MaxTime   duration       `json:"maxTime"`
}

// The limits that end the work of an agent, in addition to llm.StopSteps.
const (
	stopTokens = "tokens"
	stopTime   = "time"
)

func agentType() node.Type {
	return define[agentNode](&flow.TypeSpec{
		Name:       "agent",
		Aliases:    []string{"deep_agent"},
		Category:   "model",
		Summary:    "Has a model work with tools by itself; only its final answer enters the conversation.",
		Doc:        agentDoc,
		Ports:      agentPorts(nil),
		PortsFor:   agentPorts,
		AsksModels: always,
		Steered:    always,
		Settings: objectSchema(withFallbackSettings(withQueueSettings(withToolSettings(withModelSettings(map[string]any{
			"schema": settingSchema("object", "JSON Schema of the final answer; text where there is none."),
			"maxTokens": map[string]any{
				"type": "integer", "minimum": 1,
				"description": "No model call begins once the calls have taken this many tokens, input and output together. Default: no limit.",
			},
			"maxTime": durationSchema("No model call begins once the agent has worked this long. Default: no limit."),
		}))))),
		Check:    checkAgent,
		Flows:    agentFlows,
		Context:  flow.ContextWrite,
		Examples: append(agentExamples(), agentQueueExamples()...),
	})
}

// agentPorts has the port value only with a schema.
func agentPorts(with map[string]any) flow.Ports {
	p := llmRequestPorts(with)
	p.Out = append(p.Out, flow.Port{Name: "trace", Type: flow.TypeMessages, Description: "The model's calls and their results, as messages."})
	return p
}

func (n *agentNode) finish() error {
	return (&llmRequestNode{Schema: n.Schema}).finish()
}

// Run lets the model work in a lane, and returns its final answer.
func (n *agentNode) Run(ctx *node.Ctx) error {
	m, err := outputContext(ctx)
	if err != nil {
		return err
	}
	if n.usesQueues() {
		return n.runQueued(ctx, m)
	}
	asks := llmRequestNode{ModelSettings: n.ModelSettings, FallbackSettings: n.FallbackSettings, ToolSettings: n.ToolSettings, Schema: n.Schema}
	t, err := asks.turn(ctx, m)
	if err != nil {
		return err
	}
	if t.Message != nil {
		if _, err := m.AddUserInput(*t.Message); err != nil {
			return err
		}
		t.Message = nil
	}
	lane := forkLane(ctx, m)
	before := lane.Get().History.Len()
	t.Context, t.CheckLimit = lane, n.stopCondition(ctx)
	steerTurn(ctx, &t, userInputs(m))
	host := &countingHost{Host: ctx.LLMHost()}
	result, err := ctx.LLM().Turn(ctx, host, t)
	ctx.Meta("agent", host.summary())
	if err != nil {
		return node.ModelError(err)
	}
	if err := demandsOn(ctx, m).check(result); err != nil {
		return err
	}
	trace, err := traceOf(lane, before)
	if err != nil {
		return err
	}
	ctx.Output("trace", trace)
	if err := addAnswer(m, result.Text); err != nil {
		return err
	}
	if wasCutOff(result.Stop) {
		asks.Schema = nil // the last thing said is not the answer that was asked for
	}
	return asks.outputResult(ctx, result)
}

// forkLane returns a fork of the node's context for this node alone. It is discarded when
// the node ends.
func forkLane(ctx *node.Ctx, m *convo.Manager) *convo.Manager {
	lane := convo.NewManager(m.Get().Fork(m.ID()+"@"+ctx.Info().Path), true)
	lane.SetIDPrefix(ctx.MessageID(ctx.Info().Path))
	return lane
}

// addAnswer adds the message, if there is one, and its answer to a context, and clears the
// context's current output.
func addAnswer(m *convo.Manager, text string) error {
	if text != "" {
		if _, err := m.Add(convo.Message{Role: convo.Assistant, Text: text}); err != nil {
			return err
		}
	}
	return m.SetOutput("")
}

// stopCondition returns the limit of tokens and time, nil if there is none.
func (n *agentNode) stopCondition(ctx *node.Ctx) func(r llm.Result) (string, error) {
	var watch *node.Stopwatch
	if n.MaxTime.Duration > 0 {
		watch = ctx.Stopwatch()
	}
	if n.MaxTokens == 0 && watch == nil {
		return nil
	}
	return func(r llm.Result) (string, error) {
		if n.MaxTokens > 0 && r.Usage.Input+r.Usage.Output >= n.MaxTokens {
			return stopTokens, nil
		}
		if watch == nil {
			return "", nil
		}
		worked, err := watch.Elapsed()
		if err == nil && worked >= n.MaxTime.Duration {
			return stopTime, nil
		}
		return "", err
	}
}
