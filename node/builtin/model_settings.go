package builtin

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// ModelSettings are the model settings that all nodes with model calls share.
type ModelSettings struct {
	Provider    string     `json:"provider"`
	Model       string     `json:"model"`
	System      template   `json:"system"`
	Temperature *float64   `json:"temperature"`
	MaxOutput   int        `json:"maxOutput"`
	Reasoning   string     `json:"reasoning"`
	Thinking    int        `json:"thinkingBudget"`
	History     string     `json:"history"`
	Budget      callBudget `json:"budget"`
	View        flow.View  `json:"view"`
}

// callBudget is how much one call may be given.
type callBudget struct {
	Window  int `json:"window"`
	Reserve int `json:"reserve"`
}

// withModelSettings adds the settings of ModelSettings to those of a type that answers
// in a conversation.
func withModelSettings(properties map[string]any) map[string]any {
	properties = withCallSettings(properties)
	properties["history"] = choiceSchema("Who keeps the conversation: Weir, or the provider where it can.", "client", "server")
	properties["view"] = flow.ViewSchema()
	return properties
}

// withCallSettings adds those settings of ModelSettings that mean something where a
// model is shown no conversation. Flows that were kept by earlier versions may have the
// others, which say nothing there.
func withCallSettings(properties map[string]any) map[string]any {
	tokens := map[string]any{"type": "integer", "minimum": 1}
	properties["provider"] = settingSchema("string", "Who serves the model; not needed where the model names it.")
	properties["model"] = settingSchema("string", "The model, as provider/model.")
	properties["system"] = templateSchema("string", "Instructions for the model.")
	properties["temperature"] = map[string]any{"type": "number", "minimum": 0, "maximum": 2, "description": "How varied answers are."}
	properties["maxOutput"] = map[string]any{"type": "integer", "minimum": 1, "description": "The longest answer, in tokens."}
	properties["reasoning"] = settingSchema("string", "How hard to think, in the provider's words: low, medium, high.")
	properties["thinkingBudget"] = map[string]any{"type": "integer", "minimum": 1, "description": "The most tokens to think with, in place of reasoning; for models that take a number."}
	budget := objectSchema(map[string]any{"window": tokens, "reserve": tokens})
	budget["description"] = "How much one call may be given, in tokens, and what of it is kept for the answer."
	properties["budget"] = budget
	return properties
}

// limitPort is the port that is taken if a budget with onLimit: branch is exhausted.
func limitPort() flow.Port {
	return flow.Port{Name: "limit", Type: flow.TypeObject, Description: "What is used of a budget that does not cover the call, alone."}
}

// applyTo returns s with the settings of the node in place of its own. The caller sets the
// instructions.
func (n *ModelSettings) applyTo(s convo.Settings) convo.Settings {
	if n.Model != "" {
		s.Provider, s.Model, s.Fallback = n.Provider, n.Model, nil
	} else if n.Provider != "" {
		s.Provider, s.Fallback = n.Provider, nil
	}
	if n.Temperature != nil {
		s.Temperature = n.Temperature
	}
	s.MaxOutput = cmp.Or(n.MaxOutput, s.MaxOutput)
	s.Reasoning = cmp.Or(n.reasoning(), s.Reasoning)
	s.History = cmp.Or(n.History, s.History)
	s.Window = cmp.Or(n.Budget.Window, s.Window)
	s.Reserve = cmp.Or(n.Budget.Reserve, s.Reserve)
	s.View = s.View.Override(n.viewSettings())
	return s
}

// checkThinking refuses a budget for thinking together with a named effort.
func checkThinking(with map[string]any) []flow.Problem {
	if with["thinkingBudget"] != nil && with["reasoning"] != nil {
		return []flow.Problem{settingProblem("thinkingBudget", "thinkingBudget replaces reasoning: set one of them")}
	}
	return nil
}

// reasoning returns what is asked of the model's thinking: words of the provider, or a number of
// tokens.
func (n *ModelSettings) reasoning() string {
	if n.Thinking > 0 {
		return strconv.Itoa(n.Thinking)
	}
	return n.Reasoning
}

// turn returns a turn in a context under these settings, without a message.
func (n *ModelSettings) turn(ctx *node.Ctx, m *convo.Manager) (llm.Turn, error) {
	t := llm.Turn{
		Context: m, Provider: n.Provider, Model: n.Model, Temperature: n.Temperature, MaxOutput: n.MaxOutput,
		Reasoning: n.reasoning(), History: n.History, Window: n.Budget.Window, Reserve: n.Budget.Reserve, View: n.viewSettings(),
	}
	if err := n.checkView(m.Get().Settings.View); err != nil {
		return t, err
	}
	var err error
	t.System, err = n.System.text(ctx, "system")
	return t, err
}

// checkView refuses keys of the view that the strategy of the context around it does not read.
func (n *ModelSettings) checkView(around convo.ViewSettings) error {
	strategy := cmp.Or(string(around.Strategy), flow.DefaultStrategy)
	if n.View.Strategy != "" {
		return nil // loading has checked it
	}
	set := map[string]bool{
		"low": n.View.Low != 0, "keepResults": n.View.KeepResults != 0, "maxResult": n.View.MaxResult != 0,
		"summary": n.View.Summary != 0, "model": n.View.Model != "",
	}
	for _, key := range flow.UnreadByStrategy(strategy) {
		if set[key] {
			return &engine.Error{
				Code: engine.CodeValue, Permanent: true, Hint: "remove it, or set view.strategy",
				Message: fmt.Sprintf("view.%s has no effect with strategy: %s, which the node's context has", key, strategy),
			}
		}
	}
	return nil
}

func (n *ModelSettings) viewSettings() convo.ViewSettings {
	return convo.ViewSettings{
		Strategy: convo.Strategy(n.View.Strategy), Low: n.View.Low, KeepResults: n.View.KeepResults,
		MaxResult: n.View.MaxResult, Summary: n.View.Summary, Model: n.View.Model,
	}
}
