package cli

import (
	"testing"

	"github.com/weir-run/weir/engine"
)

func TestUsageTextShowsTokensAndKnownCost(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]engine.Usage{
		"3 tokens in, 4 out":          {Input: 3, Output: 4},
		"3 tokens in, 4 out, $0.0012": {Input: 3, Output: 4, CostMicros: 1200},
	} {
		if got := usageText(u); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
