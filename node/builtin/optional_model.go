package builtin

import (
	"slices"

	"github.com/weir-run/weir/flow"
)

// optionalModelDoc documents the settings of withOptionalModel for a node that asks a model
// only with ask.
const optionalModelDoc = singleCallSettings + "\n| | those of the model, from `model` on, only with `ask` |"

// modelSettingNames returns the settings of withCallSettings and withFallbackSettings.
func modelSettingNames() []string {
	return []string{
		"provider", "model", "system", "temperature", "maxOutput", "reasoning", "thinkingBudget", "budget", "models", "on", "callTimeout",
	}
}

// checkOptionalModel checks the settings of a model that a node asks only with the setting
// that, which must be set then.
func checkOptionalModel(with map[string]any, that string) []flow.Problem {
	if with[that] != nil {
		return checkFallbackSettings(with)
	}
	var out []flow.Problem
	for _, name := range modelSettingNames() {
		if with[name] != nil {
			out = append(out, settingProblem(name, "%s belongs to a model, which is asked only with %s", name, that))
		}
	}
	return out
}

// withOptionalModel adds the settings of a model to those of a node that asks one only with
// one of its other settings.
func withOptionalModel(properties map[string]any) map[string]any {
	return withFallbackSettings(withCallSettings(properties))
}

// optionalContext is TypeSpec.ContextFor of a node that asks a model only with a setting.
func optionalContext(that string) func(map[string]any) flow.ContextUse {
	return func(with map[string]any) flow.ContextUse {
		if with[that] == nil {
			return flow.ContextNone
		}
		return flow.ContextRead
	}
}

// optionalModelPorts returns the ports with those that exist only with the setting.
func optionalModelPorts(p flow.Ports, that string) func(map[string]any) flow.Ports {
	return func(with map[string]any) flow.Ports {
		if with[that] == nil {
			return p
		}
		model := singleCallPorts()
		model.In = slices.Concat(p.In, model.In)
		model.Out = slices.Concat(p.Out, model.Out)
		model.AnyIn = p.AnyIn
		return model
	}
}
