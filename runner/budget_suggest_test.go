package runner

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

func TestSuggestedIncreaseCoversEveryExhaustedBound(t *testing.T) {
	t.Parallel()
	call := func(input, output int, micros, ofOutput int64) *node.Reserve {
		return &node.Reserve{Usage: engine.Usage{Calls: 1, Input: input, Output: output, CostMicros: micros}, OutputCost: ofOutput}
	}
	for name, c := range map[string]struct {
		most, used engine.Usage
		call       *node.Reserve
		want       string
	}{
		"calls": {
			engine.Usage{Calls: 3, Input: 100_000}, engine.Usage{Calls: 3, Input: 60}, call(15, 100, 0, 0), `{"maxCalls": 10}`,
		},
		"tokens": {
			engine.Usage{Calls: 3, Input: 60}, engine.Usage{}, call(15, 100, 0, 0), `{"maxTokens": 10000}`,
		},
		"tokens of a large call": {
			engine.Usage{Input: 60}, engine.Usage{}, call(150_000, 100, 0, 0), `{"maxTokens": 1000000}`,
		},
		"money": {
			engine.Usage{CostMicros: 1000}, engine.Usage{CostMicros: 900}, call(15, 100, 600, 500), `{"maxCost": 0.50}`,
		},
		"money for an answer": {
			engine.Usage{CostMicros: 1000}, engine.Usage{CostMicros: 700}, call(15, 128, 1000, 900), `{"maxCost": 0.50}`,
		},
		"money of a large call": {
			engine.Usage{CostMicros: 1000}, engine.Usage{CostMicros: 900}, call(15, 100, 2_000_000, 500), `{"maxCost": 5.00}`,
		},
		"two of them": {
			engine.Usage{Calls: 1, Input: 60}, engine.Usage{Calls: 1, Input: 60}, call(15, 100, 0, 0), `{"maxCalls": 10, "maxTokens": 10000}`,
		},
	} {
		a := &engine.Account{Path: engine.RunBudget, Max: c.most, Used: c.used}
		if got := suggestedIncrease(a, c.call); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if reached, ok := errors.AsType[*limitReached](limitError(a, c.call, "short")); !ok || !strings.Contains(reached.failure.Hint, c.want) {
			t.Errorf("%s: the hint is %+v", name, reached)
		}
	}
}
