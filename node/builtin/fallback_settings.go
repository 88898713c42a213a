package builtin

import (
	"cmp"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
)

// FallbackSettings list the models that a node asks one after another.
type FallbackSettings struct {
	Models      []string    `json:"models"`
	On          []string    `json:"on"`
	CallTimeout callTimeout `json:"callTimeout"`
}

// callTimeout bounds each model call of a node, in place of the provider's bounds.
type callTimeout struct {
	First duration `json:"first"`
	Idle  duration `json:"idle"`
	Total duration `json:"total"`
}

// bounds returns the bounds as the service takes them; zero leaves those of the provider.
func (c callTimeout) bounds() llm.Timeouts {
	return llm.Timeouts{First: c.First.Duration, Idle: c.Idle.Duration, Total: c.Total.Duration}
}

// withFallbackSettings adds the settings of FallbackSettings.
func withFallbackSettings(properties map[string]any) map[string]any {
	var codes []any
	for _, c := range llm.AllFallbackCodes() {
		codes = append(codes, c)
	}
	properties["models"] = map[string]any{
		"type": "array", "minItems": 2, "uniqueItems": true, "items": map[string]any{"type": "string", "pattern": ".+/.+"},
		"description": "Models as provider/model, in place of model: the first one is asked, and the next one if that fails.",
	}
	properties["on"] = map[string]any{
		"type": "array", "minItems": 1, "uniqueItems": true, "items": map[string]any{"enum": codes},
		"description": "The codes of the failures after which the next of models is asked.",
	}
	limits := objectSchema(map[string]any{
		"first": durationSchema("Until the answer begins: text, reasoning or a tool call."),
		"idle":  durationSchema("Without anything arriving, once the answer has begun."),
		"total": durationSchema("Of the whole answer."),
	})
	limits["description"] = "How long one model call may take, in place of the provider's timeouts."
	properties["callTimeout"] = limits
	return properties
}

// checkFallbackSettings refuses settings that the others make meaningless.
func checkFallbackSettings(with map[string]any) []flow.Problem {
	out := checkThinking(with)
	for _, key := range []string{"model", "provider"} {
		if with["models"] != nil && with[key] != nil {
			out = append(out, settingProblem(key, "models replaces %s: write the model as the first of models", key))
		}
	}
	if limits, ok := with["callTimeout"].(map[string]any); ok {
		total, _ := durationOf(limits["total"])
		for _, key := range []string{"first", "idle", "total"} {
			d, err := durationOf(limits[key])
			switch {
			case limits[key] == nil:
			case err != nil || d <= 0:
				out = append(out, settingProblem("callTimeout", "callTimeout.%s must be a duration above 0, such as 20s", key))
			case key != "total" && total > 0 && d >= total:
				out = append(out, settingProblem("callTimeout."+key, "callTimeout.%s never passes, as callTimeout.total is not longer", key))
			}
		}
	}
	if budget, ok := with["budget"].(map[string]any); ok {
		window, _ := budget["window"].(int64)
		if reserve, _ := budget["reserve"].(int64); window > 0 && reserve >= window {
			out = append(out, settingProblem("budget.reserve", "budget.reserve must be less than budget.window, %d; got %d", window, reserve))
		}
	}
	if with["on"] != nil && with["models"] == nil {
		out = append(out, settingProblem("on", "on says when the next of models is asked, and there are no models"))
	}
	return out
}

// applyFallback returns s with the settings of the node in place of its own.
func (n *FallbackSettings) applyFallback(s convo.Settings) convo.Settings {
	if len(n.Models) > 1 {
		s.Provider, s.Model = llm.SplitModel(n.Models[0])
		s.Fallback = &convo.Fallback{Models: n.Models[1:], On: n.On}
	}
	own := n.CallTimeout.bounds()
	s.CallTimeout = convo.CallTimeout{
		First: cmp.Or(own.First, s.CallTimeout.First), Idle: cmp.Or(own.Idle, s.CallTimeout.Idle), Total: cmp.Or(own.Total, s.CallTimeout.Total),
	}
	return s
}

// fallback returns the models of the turns of one attempt, nil if there is only one.
func (n *FallbackSettings) fallback() *llm.Fallback {
	if len(n.Models) == 0 {
		return nil
	}
	return &llm.Fallback{Models: n.Models, On: n.On}
}

// fallbackDoc are the rows of FallbackSettings in the table of a type's settings. A test
// compares the codes with llm.FallbackCodes.
const fallbackDoc = "| `models` | models as `provider/model`, at least two, in place of `model`: the next one is asked if one fails; see [fallback](../fallback.md) |\n" +
	"| `on` | the codes of the failures after which the next model is asked (default `model_overloaded`, `model_rate_limited`, `model_timeout`, " +
	"`model_unavailable`, `model_context_length`, `breaker_open`) |\n" +
	"| `callTimeout` | `{first, idle, total}`: how long one model call may take until its answer begins, without anything arriving, and in all, in place of the provider's `timeouts` (`model_timeout`) |\n"
