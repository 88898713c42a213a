package gemini

import (
	"strconv"
	"strings"

	"github.com/weir-run/weir/llm"
)

// isBeforeGemini3 says that a model is of before Gemini 3.
func isBeforeGemini3(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2")
}

// needsSignatures says that a model demands a signature on the calls of its history:
// Gemini 3 and later.
func needsSignatures(model string) bool {
	return strings.HasPrefix(strings.TrimPrefix(model, "models/"), "gemini-") && !isBeforeGemini3(model)
}

// Budgets of models that know no levels, in tokens; those of the vendor's own
// OpenAI-compatible API.
const (
	budgetLow    = 1024
	budgetMedium = 8192
	budgetHigh   = 24576
	// minBudget is what a model that cannot but think takes at least.
	minBudget = 128
)

// thinking is req's Reasoning: a level from Gemini 3 on, a budget before, and
// a budget where it is given as one. Thoughts are told wherever it asks for any.
func (p *Provider) thinking(req *llm.Request) (*thinkingConfig, error) {
	if req.Reasoning == "" {
		return nil, nil
	}
	if budget, ok := tokens(req.Reasoning); ok {
		return &thinkingConfig{Budget: &budget, IncludeThoughts: budget != 0}, nil
	}
	level, ok := levelOf(req)
	if !ok {
		return nil, p.errors.InvalidRequest("the reasoning %q is neither none, minimal, low, medium or high nor a number of tokens", req.Reasoning)
	}
	told := req.Reasoning != "none"
	if !isBeforeGemini3(req.Model) {
		return &thinkingConfig{Level: level, IncludeThoughts: told}, nil
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
	return &thinkingConfig{Budget: &budget, IncludeThoughts: told}, nil
}

// tokens is a reasoning that is a budget; -1 leaves it to the model.
func tokens(reasoning string) (int32, bool) {
	n, err := strconv.ParseInt(reasoning, 10, 32)
	if err != nil || n < -1 {
		return 0, false
	}
	return int32(n), true
}

// levelOf is the level of a reasoning; a model of the pro line cannot do
// without thinking.
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
