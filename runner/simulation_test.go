package runner

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

var (
	simN    = flag.Int("sim.n", 5_000, "how many schedules TestSimulation runs")
	simSeed = flag.Uint64("sim.seed", 0, "the one schedule that TestSimulation runs; 0 is all")
)

// schedulesPerFlow is how many schedules each random flow is run under.
const schedulesPerFlow = 100

// simCase is a random flow with what the model expects of it.
type simCase struct {
	world    *switchedWorld
	program  *Program
	expected *expected
	forced   *expected
}

// switchedWorld lets one compiled program be run against one ledger after
// another.
type switchedWorld struct{ effectWorld }

// newCase draws a valid flow from a seed.
func newCase(tb testing.TB, seed uint64) *simCase {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	for {
		w := &switchedWorld{}
		g := randomGraph(rng.IntN, 8, 2, rng.IntN(3) == 0, "")
		if p, ok := simProgram(tb, g, w); ok {
			return &simCase{world: w, program: p, expected: newExpected(g, false), forced: newExpected(g, true)}
		}
	}
}

// scheduledRun is one simulated schedule and what is watched of it.
type scheduledRun struct {
	*simCase
	rng      *rand.Rand
	ledger   *effectLog
	replica  *replica
	mode     string // run, cancel or force
	last     *engine.Run
	contexts map[string]convo.Context
}

// run simulates one schedule of the case.
func (c *simCase) run(seed uint64, compare bool) (SimReport, error) {
	s := &scheduledRun{simCase: c, rng: rand.New(rand.NewPCG(seed, 2)), ledger: newEffectLog("sim"), mode: "run"}
	switch s.rng.IntN(8) {
	case 0:
		s.mode = "cancel"
	case 1, 2:
		s.mode = "force"
	}
	c.world.effectWorld = s.ledger
	if compare {
		s.replica = newReplica("sim", c.program)
	}
	sim := &Sim{
		Seed: seed, MaxSteps: 100_000, Command: s.command, Answer: s.answer, Committed: s.committed,
		Crashed: func() { s.ledger.life++ },
	}
	if s.rng.IntN(4) > 0 {
		sim.Crash, sim.Fault = 0.03*s.rng.Float64(), 0.1*s.rng.Float64()
	}
	report, err := sim.Run(c.program, Services{}, StartOptions{ID: "sim"})
	if err == nil {
		err = s.ledger.err
	}
	if err != nil {
		return report, err
	}
	return report, s.check(report)
}

func (s *scheduledRun) check(report SimReport) error {
	want := s.expected
	if s.mode == "force" {
		want = s.forced
	}
	if err := want.checkJournal(report.Commits, report.Result); err != nil {
		return err
	}
	if s.last != nil && report.Status == engine.Completed {
		return want.checkState(s.last, s.contexts)
	}
	return nil
}

func (s *scheduledRun) committed(c engine.Commit, r *engine.Run, contexts map[string]convo.Context) error {
	s.last, s.contexts = r, contexts
	s.ledger.committed(c)
	if s.replica != nil {
		return s.replica.apply(c, r, contexts)
	}
	return nil
}

func (s *scheduledRun) answer(i engine.Interrupt) (engine.Value, bool) {
	if i.Kind == engine.AwaitEffect {
		return "retry", true
	}
	return "yes", true
}

// command cancels the run at some time, or completes by hand what failed it.
func (s *scheduledRun) command(r *engine.Run) Command {
	switch s.mode {
	case "cancel":
		if s.rng.IntN(20) == 0 {
			return Cancel("somebody", "")
		}
	case "force":
		if r.Status() != engine.Failed {
			return nil
		}
		var failed []string
		for _, n := range r.Nodes() {
			if n.Status == engine.Failed && r.CanOverride(n.Path) && s.forced.byHand(n.Path) {
				failed = append(failed, n.Path)
			}
		}
		if len(failed) > 0 {
			p := failed[s.rng.IntN(len(failed))]
			return OverrideNode("complete", p, engine.Values{{Name: "value", Value: "forced " + p}}, "somebody")
		}
	}
	return nil
}

// flowSeed returns the seed of the flow that a schedule runs.
func flowSeed(schedule uint64) uint64 { return (schedule-1)/schedulesPerFlow + 1 }

func TestSimulationsOfRandomFlowsMatchTheModel(t *testing.T) {
	if *simSeed != 0 {
		c := newCase(t, flowSeed(*simSeed))
		report, err := c.run(*simSeed, true)
		if err != nil {
			t.Fatalf("%s\n%s\n%v", c.expected.g.file(), journalText(report.Commits), err)
		}
		return
	}
	n := uint64(*simN)
	if testing.Short() {
		n = min(n, 2_000)
	}
	var sum simCounts
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !t.Failed() {
				first := next.Add(schedulesPerFlow) - schedulesPerFlow + 1
				if first > n {
					return
				}
				sum.runAll(t, first, min(n, first+schedulesPerFlow-1))
			}
		})
	}
	wg.Wait()
	t.Logf("%d schedules: %d steps, %d crashes, %d store faults; %d cancelled, %d failed", n, sum.steps.Load(),
		sum.crashes.Load(), sum.faults.Load(), sum.cancelled.Load(), sum.failed.Load())
	if !t.Failed() && n >= 5_000 && (sum.crashes.Load() < n/10 || sum.faults.Load() < n/50 ||
		sum.cancelled.Load() == 0 || sum.failed.Load() == 0) {
		t.Error("the simulation does not simulate what it should")
	}
}

// simCounts counts what was simulated.
type simCounts struct{ crashes, faults, steps, cancelled, failed atomic.Uint64 }

// runAll runs the schedules of one flow.
func (c *simCounts) runAll(t *testing.T, first, last uint64) {
	t.Helper()
	flow := newCase(t, flowSeed(first))
	for seed := first; seed <= last; seed++ {
		report, err := flow.run(seed, seed%16 == 0)
		if err != nil {
			t.Errorf("%v\nagain: go test ./runner -run TestSimulation -sim.seed %d", err, seed)
			return
		}
		c.crashes.Add(uint64(report.Crashes))
		c.faults.Add(uint64(report.Faults))
		c.steps.Add(uint64(report.Steps))
		if report.Status == engine.Cancelled {
			c.cancelled.Add(1)
		}
		if report.Status == engine.Failed {
			c.failed.Add(1)
		}
	}
}

// journalText returns a journal, an event a line.
func journalText(commits []engine.Commit) string {
	var b strings.Builder
	for _, c := range commits {
		fmt.Fprintf(&b, "commit %d at %d\n", c.Seq, c.At)
		for _, e := range c.Events {
			fmt.Fprintf(&b, "  %s %s\n", e.Kind(), asJSON(e))
		}
	}
	return b.String()
}

// seedCount are n, less under the race detector where each is run by one goroutine.
func seedCount(n uint64) uint64 {
	if testing.Short() {
		return n / 4
	}
	return n
}

func TestSameSeedGivesSameRun(t *testing.T) {
	for seed := range seedCount(30) {
		var texts []string
		for range 2 {
			report, err := newCase(t, seed).run(seed, false)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, journalText(report.Commits))
		}
		if texts[0] != texts[1] {
			t.Fatalf("seed %d: %s", seed, firstDifference(texts[0], texts[1]))
		}
	}
}
