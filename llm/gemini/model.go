package gemini

import (
	"strconv"
	"strings"

	"github.com/weir-run/weir/llm"
)

// isBeforeGemini3 reports whether a model is older than Gemini 3.
func isBeforeGemini3(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2")
}

// needsSignatures reports whether a model requires signatures on the calls of its history: Gemini 3 and later.
func needsSignatures(model string) bool {
	return strings.HasPrefix(strings.TrimPrefix(model, "models/"), "gemini-") && !isBeforeGemini3(model)
}

// The budgets of reasoning levels for models without levels, in tokens; they are those of the vendor's
// OpenAI-compatible API.
const (
	budgetLow    = 1024
	budgetMedium = 8192
	budgetHigh   = 24576
	// minBudget is the smallest budget of a model that always thinks.
	minBudget = 128
)

// thinking converts req's Reasoning: to a level from Gemini 3 on, to a budget for older models, and to a budget if it
// is a number. Thoughts are included in the answer unless it is "none".
func (p *Provider) thinking(req *llm.Request) (*thinkingConfig, error) {
	if req.Reasoning == "" {
		return nil, nil
	}
	if budget, ok := tokens(req.Reasoning); ok {
		return &thinkingConfig{Budget: &budget, IncludeThoughts: budget != 0}, nil
	}
	level, ok := levelOf(req)
	if !ok {
		return nil, p.errors.InvalidRequest("the reasoning %q is invalid: use none, minimal, low, medium, high or a number of tokens", req.Reasoning)
	}
	include := req.Reasoning != "none"
	if !isBeforeGemini3(req.Model) {
		return &thinkingConfig{Level: level, IncludeThoughts: include}, nil
	}
	var budget int32
	switch req.Reasoning {
	case "none":
		if strings.Contains(req.Model, "-pro") {
			budget = minBudget
		}
	case "minimal", "low":
		budget = budgetLow
	case "medium":
		budget = budgetMedium
	default:
		budget = budgetHigh
	}
	return &thinkingConfig{Budget: &budget, IncludeThoughts: include}, nil
}

// tokens returns a reasoning that is a budget; -1 leaves it to the model.
func tokens(reasoning string) (int32, bool) {
	n, err := strconv.ParseInt(reasoning, 10, 32)
	if err != nil || n < -1 {
		return 0, false
	}
	return int32(n), true
}

// levelOf returns the level of a reasoning; the pro models cannot turn thinking off.
func levelOf(req *llm.Request) (level string, known bool) {
	switch req.Reasoning {
	case "none", "minimal":
		if strings.Contains(req.Model, "-pro") {
			return "LOW", true
		}
		return "MINIMAL", true
	case "low":
		return "LOW", true
	case "medium":
		return "MEDIUM", true
	case "high", "xhigh", "max":
		return "HIGH", true
	}
	return "", false
}
