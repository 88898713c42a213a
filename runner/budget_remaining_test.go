package runner

import (
	"testing"

	"github.com/weir-run/weir/engine"
)

func TestReservationsReduceEveryBoundOfABudget(t *testing.T) {
	t.Parallel()
	p := budgetLedger{reserved: map[string]engine.Usage{
		"a#1":   {Calls: 1, Input: 10, Output: 5, CostMicros: 100},
		"a/b#1": {Calls: 2, Input: 20, CostMicros: 200},
		"c#1":   {Calls: 4, Input: 40, CostMicros: 400},
	}}
	most, used := engine.Usage{Calls: 10, Input: 1000, CostMicros: 10_000}, engine.Usage{Calls: 1, Input: 100, Output: 1, CostMicros: 1000}
	for path, want := range map[string]engine.Usage{
		engine.RunBudget: {Calls: 2, Input: 824, CostMicros: 8300}, // all calls of the run
		"a":              {Calls: 6, Input: 864, CostMicros: 8700},
		"c":              {Calls: 5, Input: 859, CostMicros: 8600},
		"d":              {Calls: 9, Input: 899, CostMicros: 9000},
	} {
		free, others := p.remaining(&engine.Account{Path: path, Max: most, Used: used})
		if free != want || others != (path != "d") {
			t.Errorf("of the budget of %q remain %+v (others have reserved: %t), want %+v", path, free, others, want)
		}
	}
}
