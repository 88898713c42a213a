package engine_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

var update = flag.Bool("update", false, "rewrite the decisions in testdata")

// TestGoldenRuns drives the core with the events of each file in testdata and
// compares what it decides. A file is a sentence, a flow, and lines of events:
//
//	> KIND {fields}    an event from outside, as the journal has it
//	  KIND {fields}    what the core decides, or, for ends of scopes, what
//	                   follows from their outputs
//	@ 5000             the clock, in milliseconds
//	! text             the event before is refused with this error
//	? STATUS ...       where the run and its nodes stand
func TestGoldenRuns(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, flowText, events := split(t, string(data))
			g := newGolden(t, file, flowText)
			got := head + "-- flow --\n" + flowText + "-- run --\n" + g.play(events)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(data) {
				t.Errorf("decisions differ; -update rewrites them\n%s", difference(string(data), got))
			}
		})
	}
}

func split(t *testing.T, text string) (head, flowText, events string) {
	t.Helper()
	head, rest, ok := strings.Cut(text, "-- flow --\n")
	flowText, events, ok2 := strings.Cut(rest, "-- run --\n")
	if !ok || !ok2 || strings.TrimSpace(head) == "" {
		t.Fatal("a scenario is a sentence, -- flow -- and -- run --")
	}
	return head, flowText, events
}

func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(b), len(a))
}

// golden is one scenario being played.
type golden struct {
	t       *testing.T
	run     *engine.Run
	journal []engine.Event // with the clock's moves as commits of their own
	times   []int64
	now     int64
	out     strings.Builder
	plan    *engine.Plan
}

func newGolden(t *testing.T, file, text string) *golden {
	t.Helper()
	c, err := node.NewCatalogue(append(builtin.Types(), noopType{}, needsType{})...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := flow.Parse(file, []byte(text), c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := engine.Compile(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return &golden{t: t, plan: p, run: engine.NewRun("r", p), now: 1000}
}

// play feeds the events of a script and returns it with what was decided.
func (g *golden) play(script string) string {
	g.t.Helper()
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "@ "):
			if _, err := fmt.Sscanf(line, "@ %d", &g.now); err != nil {
				g.t.Fatal(line, err)
			}
			fmt.Fprintln(&g.out, line)
		case strings.HasPrefix(line, "> "):
			fmt.Fprintln(&g.out, line)
			g.step(g.decode(line[2:]))
		case strings.HasPrefix(line, "#") || line == "":
			fmt.Fprintln(&g.out, line)
		}
		if strings.HasPrefix(line, "?") {
			g.status()
		}
	}
	g.replay()
	return g.out.String()
}

func (g *golden) decode(line string) engine.Event {
	g.t.Helper()
	kind, fields, _ := strings.Cut(line, " ")
	if fields == "" {
		fields = "{}"
	}
	sep := ","
	if fields == "{}" {
		sep = ""
	}
	events, err := engine.DecodeEvents([]byte(`[{"type":"` + kind + `"` + sep + fields[1:] + `]`))
	if err != nil {
		g.t.Fatalf("%s: %v", line, err)
	}
	return events[0]
}

func encoded(t *testing.T, e engine.Event) string {
	t.Helper()
	b, err := engine.EncodeEvents(nil, []engine.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimPrefix(string(b[1:len(b)-1]), `{"type":"`+e.Kind()+`"`)
	if text = strings.TrimPrefix(text, ","); text == "}" {
		return e.Kind()
	}
	return e.Kind() + " {" + text
}

// step steps the run as a runner does: writes are checked before they are
// journaled, lanes go with their composite, ends of scopes are collected.
func (g *golden) step(e engine.Event) {
	g.t.Helper()
	g.run.Tick(g.now)
	if s, ok := e.(*engine.RunStarted); ok && s.Contexts == nil {
		s.Contexts = []engine.ContextChange{{ID: engine.MainContext, Create: true}}
	}
	if done, ok := e.(*engine.NodeCompleted); ok {
		e = g.complete(done)
	}
	first := true
	for e != nil {
		events, err := g.run.Step(nil, e)
		for i, d := range events {
			g.journal, g.times = append(g.journal, d), append(g.times, g.now)
			if i > 0 || !first {
				fmt.Fprintln(&g.out, "  "+encoded(g.t, d))
			}
		}
		if err != nil {
			fmt.Fprintln(&g.out, "! "+err.Error())
			return
		}
		first = false
		e = g.collect()
	}
}

func (g *golden) complete(e *engine.NodeCompleted) engine.Event {
	changes := append(g.run.LaneChanges(e.Path), e.State...)
	if err := g.run.CheckWrites(e.Path, changes); err != nil {
		return &engine.NodeFailed{Path: e.Path, Error: err}
	}
	e.State = changes
	for _, l := range g.run.Lanes(e.Path) {
		e.Contexts = append(e.Contexts, engine.ContextChange{ID: l.Parent, Adds: l.To - l.From, Body: json.RawMessage(`"` + l.Lane + `"`)})
	}
	return e
}

// collect makes the outputs of a scope that has ended, from references alone.
func (g *golden) collect() engine.Event {
	path, ok := g.run.FinishedScope()
	if !ok {
		return nil
	}
	s, _ := g.run.ScopeAt(path)
	var out engine.Values
	from, to := s.OutputRange()
	for _, b := range s.Graph().Def.Outputs[from:to] {
		text, _ := b.Value.(string)
		id, port, _ := strings.Cut(strings.Trim(text, "{ }"), ".")
		if vs, ended, ok := s.Outputs(id); ok && ended {
			if v, ok := vs.Get(port); ok {
				out = append(out, engine.Named{Name: b.Name, Value: v})
			}
		}
	}
	if path == "" {
		return &engine.RunCompleted{Outputs: out}
	}
	return &engine.IterationCompleted{Path: path, Outputs: out}
}

// status prints where everything stands.
func (g *golden) status() {
	fmt.Fprintf(&g.out, "? %s\n", g.summary(g.run))
}

func (g *golden) summary(r *engine.Run) string {
	parts := []string{r.Status().String()}
	for _, n := range r.Nodes() {
		parts = append(parts, n.Path+"="+n.Status.String())
	}
	for _, i := range r.Interrupts() {
		parts = append(parts, "asks:"+i.ID)
	}
	if id, at, ok := r.NextTimer(); ok {
		parts = append(parts, fmt.Sprintf("timer:%s@%d", id, at))
	}
	for _, k := range r.State().Keys() {
		v, _ := r.State().Get(k)
		b, err := engine.AppendValue(nil, v)
		if err != nil {
			g.t.Fatal(err)
		}
		parts = append(parts, "state."+k+"="+string(b))
	}
	return strings.Join(parts, " ")
}

// replay holds that the journal alone makes the same run.
func (g *golden) replay() {
	g.t.Helper()
	b, err := engine.EncodeEvents(nil, g.journal)
	if err != nil {
		g.t.Fatal(err)
	}
	events, err := engine.DecodeEvents(b)
	if err != nil {
		g.t.Fatal(err)
	}
	r := engine.NewRun("r", g.plan)
	for i, e := range events {
		r.Tick(g.times[i])
		if err := r.Apply(e); err != nil && i < len(events)-1 {
			g.t.Fatalf("replay: %v", err)
		}
		r = g.restored(r)
	}
	if a, b := g.summary(g.run), g.summary(r); a != b {
		g.t.Errorf("the replay differs:\nlive     %s\nreplayed %s", a, b)
	}
}

// restored returns the run after a snapshot and its restoration, where a snapshot can be
// taken. The rest of a replay continues from there.
func (g *golden) restored(r *engine.Run) *engine.Run {
	g.t.Helper()
	if r.Start == nil || !r.CanSnapshot() {
		return r
	}
	data, err := r.Snapshot()
	if err != nil {
		g.t.Fatal(err)
	}
	again, err := engine.Restore("r", g.plan, data)
	if err != nil {
		g.t.Fatal(err)
	}
	if a, b := g.summary(r), g.summary(again); a != b {
		g.t.Fatalf("the restored run differs:\nwas %s\nis  %s", a, b)
	}
	if a, b := fmt.Sprint(r.Usage(), r.CommittedUsage(), r.SharedUsage(), r.Executing(), r.Events()), fmt.Sprint(again.Usage(), again.CommittedUsage(), again.SharedUsage(), again.Executing(), again.Events()); a != b {
		g.t.Fatalf("the restored run differs:\nwas %s\nis  %s", a, b)
	}
	return again
}

// noopType does nothing; scenarios say what it did. With `say` it writes its
// context, with `branches` it has those as ports.
type noopType struct{}

// Spec implements node.Type.
func (noopType) Spec() *flow.TypeSpec {
	return &flow.TypeSpec{
		Name: "step", Version: 1, Category: "test", Summary: "Does what the scenario says.",
		ActsOutside: func(map[string]any) bool { return false },
		Settings: map[string]any{"type": "object", "properties": map[string]any{
			"say":      map[string]any{"type": "boolean"},
			"branches": map[string]any{"type": "array"},
			"lazy":     map[string]any{"type": "boolean"},
		}},
		PortsFor: func(with map[string]any) flow.Ports {
			p := flow.Ports{AnyIn: true, Out: []flow.Port{{Name: "value", Type: flow.TypeAny}, {Name: "other", Type: flow.TypeAny}}}
			branches, _ := with["branches"].([]any)
			for _, b := range branches {
				p.Out = append(p.Out, flow.Port{Name: fmt.Sprint(b), Type: flow.TypeAny, Branch: true})
			}
			c := flow.Port{Name: "context", Type: flow.TypeContext}
			p.In, p.Out = append(p.In, c), append(p.Out, c)
			if with["lazy"] == true {
				p.In = append(p.In, flow.Port{Name: "pull", Type: flow.TypeAny, Lazy: true})
			}
			return p
		},
		ContextFor: func(with map[string]any) flow.ContextUse {
			if with["say"] == true {
				return flow.ContextWrite
			}
			return flow.ContextNone
		},
	}
}

// Prepare implements node.Type.
func (noopType) Prepare(map[string]any) (node.Node, error) {
	return node.NodeFunc(func(*node.Ctx) error { return nil }), nil
}

// needsType has a required port.
type needsType struct{ noopType }

// Spec implements node.Type.
func (needsType) Spec() *flow.TypeSpec {
	return &flow.TypeSpec{
		Name: "needs", Version: 1, Category: "test", Summary: "Runs only with a value on x.",
		Settings: map[string]any{"type": "object"},
		Ports: flow.Ports{
			In:  []flow.Port{{Name: "x", Type: flow.TypeAny, Required: true}},
			Out: []flow.Port{{Name: "value", Type: flow.TypeAny}}, AnyIn: true,
		},
	}
}
