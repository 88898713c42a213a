package engine_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

// goldenRun is a golden run as a plan and its whole journal.
type goldenRun struct {
	name    string
	plan    *engine.Plan
	journal []engine.Event
}

// goldenRuns reads the golden runs with what they decided.
func goldenRuns(tb testing.TB) []goldenRun {
	tb.Helper()
	c, err := node.NewCatalogue(append(builtin.Types(), noopType{}, needsType{})...)
	if err != nil {
		tb.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		tb.Fatal(files, err)
	}
	var out []goldenRun
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "-- flow --\n")
		text, run, _ := strings.Cut(rest, "-- run --\n")
		f, err := flow.Parse(file, []byte(text), c)
		if err != nil {
			tb.Fatal(err)
		}
		p, err := engine.Compile(f, c)
		if err != nil {
			tb.Fatal(err)
		}
		s := goldenRun{name: file, plan: p}
		for line := range strings.Lines(run) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "  ") {
				kind, fields, _ := strings.Cut(line[2:], " ")
				s.journal = append(s.journal, decodeEvent(tb, kind, fields))
			}
		}
		out = append(out, s)
	}
	return out
}

func decodeEvent(tb testing.TB, kind, fields string) engine.Event {
	tb.Helper()
	text := `[{"type":"` + kind + `"` + strings.Replace(fields, "{", ",", 1) + `]`
	if fields == "" {
		text = `[{"type":"` + kind + `"}]`
	}
	events, err := engine.DecodeEvents([]byte(text))
	if err != nil {
		tb.Fatalf("%s %s: %v", kind, fields, err)
	}
	return events[0]
}

// TestApplyNeverPanics feeds journals that were cut, shuffled, repeated and
// mixed with those of other flows: what cannot follow is an error.
func TestApplyNeverPanics(t *testing.T) {
	all := goldenRuns(t)
	rapid.Check(t, func(t *rapid.T) {
		s := all[rapid.IntRange(0, len(all)-1).Draw(t, "scenario")]
		events := append([]engine.Event(nil), s.journal...)
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			i := rapid.IntRange(0, len(events)-1).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				if len(events) > 1 {
					events = append(events[:i], events[i+1:]...)
				}
			case 1:
				j := rapid.IntRange(0, len(events)-1).Draw(t, "with")
				events[i], events[j] = events[j], events[i]
			case 2:
				events = append(events, events[i])
			case 3:
				other := all[rapid.IntRange(0, len(all)-1).Draw(t, "from")].journal
				events[i] = other[rapid.IntRange(0, len(other)-1).Draw(t, "event")]
			}
		}
		applyRandom(s.plan, events)
	})
}

// applyRandom applies events, ignoring what is refused, and asks the run everything.
func applyRandom(p *engine.Plan, events []engine.Event) {
	r := engine.NewRun("r", p)
	for _, e := range events {
		_ = r.Apply(e) // only a panic is wrong here
	}
	r.Status()
	for _, n := range r.Nodes() {
		r.Entry(n.Path)
		r.Lanes(n.Path)
		r.LaneChanges(n.Path)
		r.Pulled(n.Path, "pull")
		r.Origin(n.Path, "value")
		_ = r.CheckWrites(n.Path, []engine.StateChange{{Key: "k", Value: int64(1)}})
		r.CanOverride(n.Path)
	}
	r.NextTimer()
	for range 1000 {
		e := r.Decide()
		if e == nil || r.Apply(e) != nil {
			break
		}
	}
}

// FuzzApply makes journals of the bytes of an encoding, as a damaged database
// would give them.
func FuzzApply(f *testing.F) {
	all := goldenRuns(f)
	for i, s := range all {
		b, err := engine.EncodeEvents(nil, s.journal)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), uint64(i), b)
	}
	f.Fuzz(func(_ *testing.T, i uint8, seed uint64, data []byte) {
		events, err := engine.DecodeEvents(data)
		if err != nil {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		if seed%2 == 1 {
			rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		}
		applyRandom(all[int(i)%len(all)].plan, events)
	})
}
