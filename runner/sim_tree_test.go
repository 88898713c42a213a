package runner

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/store"
)

var (
	simTreesN   = flag.Int("simtrees.n", 100, "how many schedules TestSimulatedTrees runs")
	simTreeSeed = flag.Uint64("simtrees.seed", 0, "the one schedule that TestSimulatedTrees runs; 0 is all")
)

// schedulesPerTree is how many schedules each random tree is run under.
const schedulesPerTree = 50

// childFlowType is a node type that runs the flow that its setting names.
type childFlowType struct{ spec flow.TypeSpec }

func newChildFlowType() *childFlowType {
	return &childFlowType{flow.TypeSpec{
		Name: "sub", Version: 1, Context: flow.ContextWrite,
		Ports: flow.Ports{Out: []flow.Port{{Name: "out", Type: flow.TypeAny}, {Name: "error", Type: flow.TypeObject}}},
		Settings: map[string]any{"type": "object", "properties": map[string]any{
			"flow": map[string]any{"type": "string"}, "isolation": map[string]any{"type": "string"},
		}},
	}}
}

// Spec implements node.Type.
func (s *childFlowType) Spec() *flow.TypeSpec { return &s.spec }

// Prepare implements node.Type.
func (s *childFlowType) Prepare(with map[string]any) (node.Node, error) {
	ref, _ := with["flow"].(string)
	isolation, _ := with["isolation"].(string)
	return node.NodeFunc(func(c *node.Ctx) error {
		r, err := c.Child(engine.ChildName, node.Child{Flow: ref, Isolation: isolation})
		if err != nil {
			return err
		}
		if r.Error != nil {
			return r.Error
		}
		if v, ok := r.Outputs.Get("out"); ok {
			c.Output("out", v)
		}
		return nil
	}), nil
}

// treeCase is a tree of random flows, which its schedules share.
type treeCase struct {
	world    *switchedWorld
	c        *node.Catalogue
	programs map[string]*Program
	root     *Program
	texts    []string
	fails    bool // some of it may fail, or be cancelled because its time is up
	want     string
}

func newTreeCase(tb testing.TB, seed uint64) *treeCase {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	f := &treeCase{world: &switchedWorld{}, programs: make(map[string]*Program), fails: rng.IntN(3) == 0}
	var err error
	if f.c, err = node.NewCatalogue(append(builtin.Types(), newOpType(f.world), newChildFlowType())...); err != nil {
		tb.Fatal(err)
	}
	uses := map[string]*flow.Flow{}
	levels := 2 + rng.IntN(3)
	for level := range levels {
		for variant := range 1 + rng.IntN(2) {
			name := fmt.Sprintf("level%d%c", level, 'a'+variant)
			f.add(tb, name, f.text(rng, level, name[5:], uses), uses)
		}
	}
	f.root = f.add(tb, "root", f.text(rng, levels, "", uses), uses)
	return f
}

// text returns a random flow that runs those of the levels below. Its ids end as no
// other flow's do: a child that continues a conversation says nothing twice.
func (f *treeCase) text(rng *rand.Rand, level int, as string, uses map[string]*flow.Flow) string {
	var b strings.Builder
	b.WriteString("nodes:\n")
	op := func(id, rest string) {
		fmt.Fprintf(&b, "  %s%s: {type: op, %swith: {effects: %d, say: %t, ask: %t, announce: %t}}\n",
			id, as, rest, rng.IntN(3), rng.IntN(3) == 0, rng.IntN(5) == 0, rng.IntN(6) == 0)
	}
	op("a", "")
	port := "out"
	if level > 0 {
		var below []string
		for name := range uses {
			if strings.HasPrefix(name, fmt.Sprint("level", level-1)) {
				below = append(below, name)
			}
		}
		slices.Sort(below)
		for i := range 1 + rng.IntN(2) {
			if each := f.childNode(rng, &b, fmt.Sprintf("s%d", i), as, below[rng.IntN(len(below))]); each && i == 0 {
				port = "results"
			}
		}
	}
	switch {
	case level > 0:
		op("z", "after: a"+as+", in: {x: \"{{ s0."+port+" }}\"}, ")
	case f.fails && rng.IntN(4) == 0:
		fmt.Fprintf(&b, "  z%s: {type: op, after: a%s, retry: {attempts: 2, backoff: 1s}, with: {effects: 1, fails: %d}}\n", as, as, 1+rng.IntN(2))
	default:
		op("z", "after: a"+as+", ")
	}
	b.WriteString("outputs: {out: \"{{ z" + as + ".value }}\"}\n")
	return b.String()
}

// childNode returns a node that runs a flow, once or for each of two items.
func (f *treeCase) childNode(rng *rand.Rand, b *strings.Builder, id, as, name string) (each bool) {
	var keys []string
	if rng.IntN(2) == 0 {
		keys = append(keys, "after: a"+as)
	}
	if f.fails {
		switch rng.IntN(5) {
		case 0:
			keys = append(keys, "retry: {attempts: 2, backoff: 1s}")
		case 1:
			keys = append(keys, "onError: {value: {out: gone}}")
		case 2:
			keys = append(keys, "timeout: {total: 5s}")
		}
	}
	mode := []string{"fresh", "fresh", "fork", "share"}[rng.IntN(4)]
	keys = append(keys, fmt.Sprintf("with: {flow: %s, isolation: %s}", name, mode))
	inner := "type: sub, " + strings.Join(keys, ", ")
	if rng.IntN(4) > 0 {
		fmt.Fprintf(b, "  %s: {%s}\n", id, inner)
		return false
	}
	inner = strings.ReplaceAll(inner, "after: a"+as+", ", "")
	fmt.Fprintf(b, "  %s: {type: forEach, in: {items: [1, 2]}, with: {concurrency: %d, body: {nodes: {n: {%s}}, outputs: {result: \"{{ n.out }}\"}}}}\n",
		id, 1+rng.IntN(2), inner)
	return true
}

func (f *treeCase) add(tb testing.TB, name, text string, uses map[string]*flow.Flow) *Program {
	tb.Helper()
	g, err := flow.Parse(name, []byte("weir: 1\nname: "+name+"\n"+text), f.c)
	if err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	for ref, used := range uses {
		g.Uses = append(g.Uses, flow.Use{Ref: ref, Flow: used})
	}
	slices.SortFunc(g.Uses, func(a, b flow.Use) int { return cmp.Compare(a.Ref, b.Ref) })
	p, err := Prepare(g, f.c)
	if err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	uses[name], f.programs[p.Fingerprint] = g, p
	f.texts = append(f.texts, name+":\n"+text)
	return p
}

// run simulates one schedule, without crashes and faults if calm is set.
func (f *treeCase) run(seed uint64, undisturbed bool) (SimTreeReport, *treeEffectLog, error) {
	rng := rand.New(rand.NewPCG(seed, 12))
	l := &treeEffectLog{life: 1, runs: map[string]*effectLog{}, ended: map[string]bool{}, parents: map[string]string{}, nodes: map[string]string{}}
	f.world.effectWorld = l
	s := &SimTree{
		Seed: seed, MaxSteps: 200_000, Answer: answerTree, Committed: l.committed, Acknowledged: l.acknowledged,
		Crashed: func() { l.life++ },
		Flow: func(fingerprint string) (*Program, error) {
			if p := f.programs[fingerprint]; p != nil {
				return p, nil
			}
			return nil, store.ErrNotFound
		},
	}
	if !undisturbed {
		if rng.IntN(4) > 0 {
			s.Crash, s.Fault = 0.03*rng.Float64(), 0.05*rng.Float64()
		}
		if rng.IntN(3) == 0 {
			s.Cancel = 0.02 * rng.Float64()
		}
		if f.fails {
			s.SkipTime, s.CancelChild = 0.02*rng.Float64(), 0.005*rng.Float64()
		}
	}
	report, err := s.Run(f.root, Services{}, StartOptions{ID: "sim"})
	if err == nil {
		err = l.err
	}
	if err == nil {
		err = l.check(report)
	}
	if err == nil && !f.fails {
		err = f.compare(report, undisturbed)
	}
	return report, l, err
}

func answerTree(i engine.Interrupt) (engine.Value, bool) {
	if i.Kind == engine.AwaitEffect {
		return "retry", true
	}
	return "yes", i.Kind == engine.AwaitInput
}

// compare holds a tree that completed against the undisturbed one.
func (f *treeCase) compare(report SimTreeReport, undisturbed bool) error {
	got := outcomeText(report)
	switch {
	case undisturbed:
		if f.want = got; report.Runs[0].Status != engine.Completed {
			return fmt.Errorf("it came to\n%s\n%w", got, report.Runs[0].Error)
		}
	case report.Runs[0].Status == engine.Completed && got != f.want:
		return fmt.Errorf("it came to\n%s\nundisturbed it comes to\n%s", got, f.want)
	}
	return nil
}

// outcomeText returns what a tree came to: how each run ended, with what, and what was said in
// it, whatever the order that is left open.
func outcomeText(report SimTreeReport) string {
	var lines []string
	for i := range report.Runs {
		r := &report.Runs[i]
		var said []string
		main := r.Contexts[engine.MainContext]
		ms, err := main.Messages()
		if err != nil {
			return err.Error()
		}
		for j := r.Commits[0].Events[0].(*engine.RunStarted).Contexts[0].At; j < len(ms); j++ {
			said = append(said, ms[j].ID)
		}
		slices.Sort(said)
		lines = append(lines, fmt.Sprintf("%s %s %s %v %s", r.Run, r.Status, asJSON(r.Outputs), r.Usage, strings.Join(said, " ")))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestSimulatedTreesMatchUndisturbedRuns(t *testing.T) {
	if *simTreeSeed != 0 {
		f := newTreeCase(t, treeSeed(*simTreeSeed))
		if _, _, err := f.run(1, true); err != nil {
			t.Fatalf("undisturbed: %v\n%s", err, strings.Join(f.texts, "\n"))
		}
		report, _, err := f.run(*simTreeSeed, false)
		if err != nil {
			for i := range report.Runs {
				t.Logf("%s\n%s", report.Runs[i].Run, journalText(report.Runs[i].Commits))
			}
			t.Fatalf("%s\n%v", strings.Join(f.texts, "\n"), err)
		}
		return
	}
	n := uint64(*simTreesN)
	if testing.Short() {
		n = min(n, 100)
	}
	var sum treeCounts
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !t.Failed() {
				first := next.Add(schedulesPerTree) - schedulesPerTree + 1
				if first > n {
					return
				}
				sum.runAll(t, first, min(n, first+schedulesPerTree-1))
			}
		})
	}
	wg.Wait()
	t.Logf("%d schedules of %d runs: %d steps, %d crashes, %d store faults; %d roots cancelled, %d failed, %d cancellations acknowledged before the end, %d effects",
		n, sum.runs.Load(), sum.steps.Load(), sum.crashes.Load(), sum.faults.Load(), sum.cancelled.Load(), sum.failed.Load(), sum.acked.Load(), sum.asks.Load())
	if !t.Failed() && n >= 300 && (sum.crashes.Load() < n/10 || sum.runs.Load() < 3*n || sum.cancelled.Load() < n/50 ||
		sum.acked.Load() < n/100 || sum.failed.Load() == 0 || sum.asks.Load() < n) {
		t.Error("the simulation does not simulate what it should")
	}
}

// treeSeed returns the seed of the flows that a schedule runs.
func treeSeed(schedule uint64) uint64 { return (schedule-1)/schedulesPerTree + 1 }

// treeCounts counts what was simulated.
type treeCounts struct {
	runs, crashes, faults, steps, cancelled, failed, acked, asks atomic.Uint64
}

// runAll runs the schedules of one tree.
func (c *treeCounts) runAll(t *testing.T, first, last uint64) {
	t.Helper()
	f := newTreeCase(t, treeSeed(first))
	if _, _, err := f.run(1, true); err != nil {
		t.Errorf("undisturbed: %v\nagain: go test ./runner -run TestSimulatedTrees -simtrees.seed %d", err, first)
		return
	}
	for seed := first; seed <= last; seed++ {
		report, l, err := f.run(seed, false)
		if err != nil {
			t.Errorf("%v\nagain: go test ./runner -run TestSimulatedTrees -simtrees.seed %d", err, seed)
			return
		}
		c.runs.Add(uint64(len(report.Runs)))
		c.crashes.Add(uint64(report.Crashes))
		c.faults.Add(uint64(report.Faults))
		c.steps.Add(uint64(report.Steps))
		c.asks.Add(uint64(l.asks))
		if l.ackedEarly {
			c.acked.Add(1)
		}
		root := report.Runs[0].Status
		if root == engine.Cancelled {
			c.cancelled.Add(1)
		}
		if root == engine.Failed {
			c.failed.Add(1)
		}
	}
}

func TestSameSeedGivesSameTree(t *testing.T) {
	for seed := range seedCount(40) {
		var texts []string
		for range 2 {
			f := newTreeCase(t, seed)
			_, _, undisturbed := f.run(1, true)
			report, _, err := f.run(seed, false)
			if err = cmp.Or(undisturbed, err); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for i := range report.Runs {
				b.WriteString(report.Runs[i].Run + "\n" + journalText(report.Runs[i].Commits))
			}
			texts = append(texts, b.String())
		}
		if texts[0] != texts[1] {
			t.Fatalf("seed %d: %s", seed, firstDifference(texts[0], texts[1]))
		}
	}
}
