package runner

import "testing"

func TestCheckOutcomeAcceptsOnlyEffectOutcomes(t *testing.T) {
	result := map[string]any{"result": nil}
	for _, v := range []any{"retry", "fail", result} {
		if err := checkOutcome(v); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
	for _, v := range []any{"", "Retry", "hello", true, int64(1), nil, []any{"retry"}, map[string]any{}, map[string]any{"result": 1, "more": 2}} {
		if checkOutcome(v) == nil {
			t.Errorf("%v is taken", v)
		}
	}
}
