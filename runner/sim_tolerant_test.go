package runner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
)

// randomTolerant returns a forEach whose items fail alone. Each item is a chain of ops that
// speak, write, ask, wait and have effects; some items then fail, and some lists have items
// in which a nested forEach tolerates failures of its own.
func randomTolerant(rng *rand.Rand) map[string]any {
	items := make([]any, rng.IntN(6))
	for i := range items {
		items[i] = int64(rng.IntN(3)) // 0 fails
	}
	mode := []string{"null", "drop"}[rng.IntN(2)]
	nodes, last := map[string]any{}, ""
	for i := range 1 + rng.IntN(3) {
		with := map[string]any{"write": true, "say": rng.IntN(2) == 0, "effects": rng.IntN(3), "ask": rng.IntN(6) == 0}
		if rng.IntN(4) == 0 {
			with["sleep"] = 1 + rng.IntN(50)
		}
		id := fmt.Sprintf("n%d", i)
		n := map[string]any{"type": "op", "with": with, "in": map[string]any{"index": "{{ inputs.index }}"}}
		if last != "" {
			n["after"] = last
		}
		nodes[id], last = n, id
	}
	nodes["check"] = map[string]any{
		"type": "transform", "in": map[string]any{"n": "{{ inputs.item }}"}, "with": map[string]any{"expr": "6 / inputs.n"},
	}
	if rng.IntN(2) == 0 {
		nodes["check"].(map[string]any)["after"] = last
	}
	if rng.IntN(3) == 0 { // the inner items share the failure of the outer one
		nodes["inner"] = map[string]any{"type": "forEach", "in": map[string]any{"items": []any{int64(0), int64(1)}, "n": "{{ inputs.item }}"}, "with": map[string]any{
			"onItemError": "null", "concurrency": int64(1 + rng.IntN(2)),
			"body": map[string]any{"nodes": map[string]any{
				"deep":  map[string]any{"type": "op", "with": map[string]any{"write": true, "effects": rng.IntN(2)}, "in": map[string]any{"index": "{{ inputs.index }}"}},
				"stops": map[string]any{"type": "transform", "in": map[string]any{"m": "{{ inputs.item }}", "n": "{{ inputs.n }}"}, "with": map[string]any{"expr": "inputs.n / inputs.m"}},
			}},
		}}
	}
	return map[string]any{
		"weir": 1, "name": "tolerant",
		"nodes": map[string]any{"each": map[string]any{"type": "forEach", "in": map[string]any{"items": items}, "with": map[string]any{
			"onItemError": mode, "concurrency": int64(1 + rng.IntN(3)),
			"body": map[string]any{"nodes": nodes, "outputs": map[string]any{"result": "{{ check.value }}"}},
		}}},
		"state": map[string]any{
			"sum": map[string]any{"reducer": "sum"}, "max": map[string]any{"reducer": "max"},
			"log": map[string]any{"reducer": "append"}, "map": map[string]any{"reducer": "merge"},
		},
		"outputs": map[string]any{
			"results": "{{ each.results }}", "failed": "{{ each.errors.map(e, e.index) }}", "count": "{{ each.count }}",
			"items": items, "mode": mode,
		},
	}
}

// checkTolerant compares the end of a run with its items: every failing item is reported and
// has left nothing, and every other item has its result and all that it wrote.
func checkTolerant(report SimReport, last *engine.Run) error {
	if report.Status != engine.Completed || len(report.Interrupts) > 0 {
		return fmt.Errorf("%s (%w) with the questions %v", report.Status, report.Error, report.Interrupts)
	}
	get := func(name string) any { v, _ := report.Outputs.Get(name); return v }
	var results, failed []any
	failing := map[string]bool{}
	for i, item := range get("items").([]any) {
		n := item.(int64)
		switch {
		case n != 0:
			results = append(results, 6/n)
			continue
		case get("mode") == "null":
			results = append(results, nil)
		}
		failed = append(failed, int64(i))
		failing[fmt.Sprintf("each#%d/", i+1)] = true
	}
	if got, want := fmt.Sprint(get("results"), get("failed")), fmt.Sprint(results, failed); got != want {
		return fmt.Errorf("results and failures are %s, expected %s", got, want)
	}
	log, _ := last.State().Get("log")
	paths, _ := log.([]any)
	seen := map[string]bool{}
	for _, p := range paths {
		item, rest, _ := strings.Cut(fmt.Sprint(p), "/")
		if failing[item+"/"] || strings.HasPrefix(rest, "inner#1/") && !strings.HasPrefix(rest, "inner#2/") {
			return fmt.Errorf("%v wrote the state, and its item failed", p)
		}
		if seen[fmt.Sprint(p)] {
			return fmt.Errorf("%v is in the log twice", p)
		}
		seen[fmt.Sprint(p)] = true
	}
	for i := range get("items").([]any) {
		if item := fmt.Sprintf("each#%d/", i+1); !failing[item] && !seen[item+"n0"] {
			return fmt.Errorf("the writes of %s are lost: %v", item, paths)
		}
	}
	return checkTolerantContexts(report, failing)
}

// checkTolerantContexts checks that no failed item spoke in the main context.
func checkTolerantContexts(report SimReport, failing map[string]bool) error {
	for id, c := range report.Contexts {
		if strings.Contains(id, "@") {
			return fmt.Errorf("the lane %s is left over", id)
		}
		spoke, err := turnsOf(id, c)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(spoke, func(p string) bool { item, _, _ := strings.Cut(p, "/"); return failing[item+"/"] }) {
			return fmt.Errorf("%v spoke in %s, and the items %v failed", spoke, id, failing)
		}
	}
	return nil
}

// TestSimulatedItemsFailAlone simulates lists whose items fail alone, with crashes and failed
// commits. A replay must agree with the run at every commit.
func TestSimulatedItemsFailAlone(t *testing.T) {
	t.Parallel()
	seeds := scopeSeeds()
	failed := 0
	for seed := uint64(1); seed <= seeds; seed++ {
		rng := rand.New(rand.NewPCG(seed, 9))
		report, last, err := simulateFlow(t, rng, seed, randomTolerant(rng))
		if err == nil {
			err = checkTolerant(report, last)
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, journalText(report.Commits))
		}
		if v, _ := report.Outputs.Get("failed"); len(v.([]any)) > 0 {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no item failed")
	}
}
