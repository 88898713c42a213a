package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// promptOf returns a question as it is put in a terminal, and how it is answered
// there. How it is answered elsewhere, which questions about calls and budgets
// end with, is left out.
func promptOf(i engine.Interrupt) (prompt, help string) {
	switch i.Kind {
	case engine.AwaitBreak:
		return i.Prompt + "; press Enter to continue", ""
	case engine.AwaitApproval:
		return beforeLast(i.Prompt, " Answer "+approveAnswer), "y to allow it, n to refuse it, n and a reason for the model"
	case engine.AwaitBudget:
		return beforeLast(i.Prompt, " Answer with what to add"), "what to add to it, as 10000 tokens, 3 calls or $0.50, several with commas between; or stop"
	default:
		return i.Prompt, ""
	}
}

func beforeLast(s, part string) string {
	if at := strings.LastIndex(s, part); at >= 0 {
		return s[:at]
	}
	return s
}

// The answers to a question about a tool call.
const (
	approveAnswer = "approve"
	rejectAnswer  = "reject"
)

func isYes(line string) bool {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes", approveAnswer:
		return true
	}
	return false
}

// parseApproval reads whether a call of a tool may be made: y, n, n and a reason, or
// what the question's schema takes. No other text is an approval.
func parseApproval(i engine.Interrupt, line string) (engine.Value, error) {
	if isYes(line) {
		return approveAnswer, nil
	}
	word, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(strings.TrimRight(word, ",:;")) {
	case "n", "no", rejectAnswer:
		if reason = strings.TrimSpace(reason); reason == "" {
			return rejectAnswer, nil
		}
		return map[string]any{"approve": false, "reason": reason}, nil
	}
	if v, err := node.ParseAnswer(i.Schema, line); err == nil {
		return v, nil
	}
	return nil, fmt.Errorf("expected %s (y), %s (n, or n and a reason), or {\"approve\": false, \"reason\": \"...\"}", approveAnswer, rejectAnswer)
}

// budgetIncrease is one thing that is added to a budget.
var budgetIncrease = regexp.MustCompile(`^(?:(\d+)\s*(tokens?|calls?)|(?:\$|usd\s*)(\d*\.?\d+)|(\d*\.?\d+)\s*(?:\$|usd|dollars?))$`)

// parseBudgetAnswer reads what is added to a budget, "stop", or what the question's
// schema takes.
func parseBudgetAnswer(i engine.Interrupt, line string) (engine.Value, error) {
	line = strings.TrimSpace(line)
	if strings.EqualFold(line, "stop") {
		return "stop", nil
	}
	if strings.HasPrefix(line, "{") {
		return node.ParseAnswer(i.Schema, line)
	}
	sum, err := parseBudgetIncrease(line)
	if err != nil {
		return nil, fmt.Errorf("%w; or stop", err)
	}
	return sum, node.CheckAnswer(i.Schema, sum)
}

// parseBudgetIncrease reads what is added to a budget.
func parseBudgetIncrease(line string) (map[string]any, error) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "{") {
		v, err := engine.ParseValue([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("expected a JSON object such as {\"maxTokens\": 10000}: %w", err)
		}
		sum, _ := v.(map[string]any)
		return sum, nil
	}
	sum := make(map[string]any)
	for part := range strings.SplitSeq(strings.ToLower(line), ",") {
		m := budgetIncrease.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return nil, errors.New("expected what to add, as 10000 tokens, 3 calls or $0.50; or {\"maxTokens\": 10000}")
		}
		if m[1] != "" {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s is too much", m[1])
			}
			sum[map[byte]string{'t': "maxTokens", 'c': "maxCalls"}[m[2][0]]] = n
			continue
		}
		usd, err := strconv.ParseFloat(m[3]+m[4], 64)
		if err != nil {
			return nil, fmt.Errorf("%s is no amount of money", part)
		}
		sum["maxCost"] = usd
	}
	return sum, nil
}
