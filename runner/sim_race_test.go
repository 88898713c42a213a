package runner

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

var simScopesN = flag.Int("simscopes.n", 200, "how many schedules the tests of races and of lists whose items fail alone run")

// randomRace returns a race of two to four branches, each a chain of one to three nodes that
// speak, write, ask, wait, have effects or fail.
func randomRace(rng *rand.Rand) map[string]any {
	branches := map[string]any{}
	for b := range 2 + rng.IntN(3) {
		nodes, last := map[string]any{}, ""
		for i := range 1 + rng.IntN(3) {
			with := map[string]any{"write": true, "say": rng.IntN(2) == 0, "effects": rng.IntN(3), "ask": rng.IntN(6) == 0}
			if rng.IntN(4) == 0 {
				with["fails"], with["permanent"] = 9, true
			}
			if rng.IntN(4) == 0 {
				with["sleep"] = 1 + rng.IntN(50)
			}
			id := fmt.Sprintf("n%d_%d", b, i)
			n := map[string]any{"type": "op", "with": with, "in": map[string]any{"index": int64(i)}}
			if last != "" {
				n["after"] = last
			}
			nodes[id], last = n, id
		}
		branches[fmt.Sprintf("b%d", b)] = map[string]any{"nodes": nodes, "outputs": map[string]any{"value": "{{ " + last + ".value }}"}}
	}
	return map[string]any{
		"weir": 1, "name": "races",
		"nodes": map[string]any{"try": map[string]any{"type": "race", "with": map[string]any{"allowEffects": true, "branches": branches}}},
		"state": map[string]any{
			"sum": map[string]any{"reducer": "sum"}, "max": map[string]any{"reducer": "max"},
			"log": map[string]any{"reducer": "append"}, "map": map[string]any{"reducer": "merge"},
		},
		"outputs": map[string]any{"by": "{{ try.winner }}"},
	}
}

// checkRace compares the end of a run with its journal: at most one branch has completed, and
// only what its nodes did is left.
func checkRace(report SimReport, last *engine.Run) error {
	winners := []string{}
	for _, c := range report.Commits {
		for _, e := range c.Events {
			if done, ok := e.(*engine.IterationCompleted); ok {
				winners = append(winners, done.Path+"/")
			}
		}
	}
	if len(winners) > 1 || (len(winners) == 1) != (report.Status == engine.Completed) || len(report.Interrupts) > 0 {
		return fmt.Errorf("%s (%w) with the winners %v and the questions %v", report.Status, report.Error, winners, report.Interrupts)
	}
	if report.Status == engine.Failed && report.Error.Code != engine.CodeRaceFailed {
		return fmt.Errorf("the run failed with %w", report.Error)
	}
	log, _ := last.State().Get("log")
	paths, _ := log.([]any)
	for _, p := range paths {
		if len(winners) == 0 || !strings.HasPrefix(fmt.Sprint(p), winners[0]) {
			return fmt.Errorf("%v wrote the state, and the winners are %v", p, winners)
		}
	}
	return checkRaceContexts(report, winners)
}

// checkRaceContexts checks that only the winner spoke in the main context.
func checkRaceContexts(report SimReport, winners []string) error {
	for id, c := range report.Contexts {
		if strings.Contains(id, "@") && report.Status == engine.Completed {
			return fmt.Errorf("the lane %s is left over", id)
		}
		spoke, err := turnsOf(id, c)
		if err != nil {
			return err
		}
		if id == "main" && slices.ContainsFunc(spoke, func(p string) bool { return len(winners) == 0 || !strings.HasPrefix(p, winners[0]) }) {
			return fmt.Errorf("%v spoke in main, and the winners are %v", spoke, winners)
		}
	}
	return nil
}

// scopeSeeds returns how many races, and lists whose items fail alone, are simulated.
func scopeSeeds() uint64 {
	if testing.Short() {
		return 200
	}
	return uint64(*simScopesN)
}

// TestSimulatedRacesLeaveOnlyTheWinner simulates races with crashes and failed commits. A
// replay must agree with the run at every commit.
func TestSimulatedRacesLeaveOnlyTheWinner(t *testing.T) {
	t.Parallel()
	seeds := scopeSeeds()
	ended := map[engine.Status]int{}
	for seed := uint64(1); seed <= seeds; seed++ {
		report, err := simulateRace(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, journalText(report.Commits))
		}
		ended[report.Status]++
	}
	if ended[engine.Completed] == 0 || ended[engine.Failed] == 0 {
		t.Errorf("the runs ended as %v", ended)
	}
}

// simulateRace simulates one schedule of a random race.
func simulateRace(t *testing.T, seed uint64) (SimReport, error) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	report, last, err := simulateFlow(t, rng, seed, randomRace(rng))
	if err == nil {
		err = checkRace(report, last)
	}
	return report, err
}

// simulateFlow simulates one schedule of a flow of ops with crashes and failed commits. It
// compares a replay with the run at every commit, and the effects with an outside ledger.
func simulateFlow(t *testing.T, rng *rand.Rand, seed uint64, text map[string]any) (SimReport, *engine.Run, error) {
	t.Helper()
	file, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	w := &switchedWorld{}
	c, err := node.NewCatalogue(append(builtin.Types(), newOpType(w), newDirectOp(w))...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := flow.Parse("random.json", file, c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(f, c)
	if err != nil {
		t.Fatal(err)
	}
	ledger := newEffectLog("sim")
	w.effectWorld = ledger
	replica := newReplica("sim", p)
	var last *engine.Run
	sim := &Sim{
		Seed: seed, MaxSteps: 100_000, Crash: 0.04 * rng.Float64(), Fault: 0.1 * rng.Float64(),
		Answer: func(i engine.Interrupt) (engine.Value, bool) {
			if i.Kind == engine.AwaitEffect {
				return "retry", true
			}
			return "yes", true
		},
		Committed: func(c engine.Commit, r *engine.Run, contexts map[string]convo.Context) error {
			last = r
			ledger.committed(c)
			return replica.apply(c, r, contexts)
		},
		Crashed: func() { ledger.life++ },
	}
	report, err := sim.Run(p, Services{}, StartOptions{ID: "sim"})
	if err == nil {
		err = ledger.err
	}
	return report, last, err
}
