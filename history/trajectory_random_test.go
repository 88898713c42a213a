package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"pgregory.net/rapid"
)

// flowGenerator draws a flow whose nodes do all that trajectories show.
type flowGenerator struct {
	t     *rapid.T
	texts int
	hand  bool // a node sets pointers by hand
}

func (d *flowGenerator) one(of int) bool { return rapid.IntRange(0, of-1).Draw(d.t, "d") == 0 }

// words returns the instructions of a model.
func (d *flowGenerator) words() string {
	d.texts++
	out := fmt.Sprint("text", d.texts)
	for range rapid.IntRange(0, 2).Draw(d.t, "steps") {
		out += " !" + rapid.SampledFrom([]string{"look", "look+look", "write", "wrong", "helper", "look+helper", "nothere"}).Draw(d.t, "word")
	}
	switch rapid.IntRange(0, 9).Draw(d.t, "fate") {
	case 0:
		out += " !refuse"
	case 1, 2:
		out += " !flaky"
	}
	return out
}

// before is what a node of a scope can be behind.
type before struct {
	ports, ends []string
	last        string // in the main context
}

// scope draws the nodes of a flow or a body.
func (d *flowGenerator) scope(prefix string, depth int, uses []*weir.Flow) (nodes, outputs map[string]any) {
	nodes = map[string]any{}
	b := &before{}
	for i := range rapid.IntRange(1, 4).Draw(d.t, "nodes") {
		id := fmt.Sprintf("%s%c", prefix, 'a'+i)
		n, in := map[string]any{}, map[string]any{}
		for _, port := range []string{"x", "y"} {
			if len(b.ports) > 0 && d.one(2) {
				in[port] = "{{ " + rapid.SampledFrom(b.ports).Draw(d.t, "from") + " }}"
			}
		}
		kind := d.node(n, in, id, depth, uses)
		d.addInput(b, n, in, id, kind)
		nodes[id] = n
		port := map[string]string{"forEach": "results"}[kind]
		if port == "" {
			port = "text"
		}
		b.ports, b.ends = append(b.ports, id+"."+port), append(b.ends, id)
		if kind == "decision" {
			b.ends = append(b.ends, id+".left", id+".right")
		}
	}
	return nodes, map[string]any{"text": "{{ " + rapid.SampledFrom(b.ports).Draw(d.t, "out") + " }}"}
}

// addInput draws what a node is behind, besides what it reads.
func (d *flowGenerator) addInput(b *before, n, in map[string]any, id, kind string) {
	var behind []string
	if len(b.ends) > 0 && d.one(3) {
		behind = append(behind, rapid.SampledFrom(b.ends).Draw(d.t, "after"))
	}
	switch kind {
	case "llmRequest", "agent", "userInput": // one after another in the main context
		if b.last != "" {
			behind = append(behind, b.last)
		}
		b.last = id
	}
	delete(in, "y")
	reads := slices.Contains([]string{"template", "job", "pure", "hand"}, kind)
	if x, ok := in["x"].(string); ok && !reads { // only to be behind it
		from, _, _ := strings.Cut(strings.Trim(x, "{} "), ".")
		behind = append(behind, from)
		delete(in, "x")
	}
	if len(in) > 0 {
		n["in"] = in
	}
	if len(behind) > 0 {
		slices.Sort(behind)
		n["after"] = slices.Compact(behind)
		if d.one(2) {
			n["join"] = "all"
		}
	}
}

// node draws one node and returns its type.
func (d *flowGenerator) node(n, in map[string]any, id string, depth int, uses []*weir.Flow) string {
	kinds := []string{"template", "llmRequest", "llmRequest", "agent", "agent", "decision", "job", "job", "hand", "pure", "userInput"}
	if depth > 0 {
		kinds = append(kinds, "loop", "forEach", "forEach")
	}
	if len(uses) > 0 {
		kinds = append(kinds, "flow", "flow")
	}
	kind := rapid.SampledFrom(kinds).Draw(d.t, "kind")
	n["type"] = kind
	with := map[string]any{}
	switch kind {
	case "template":
		with["text"] = "text"
	case "llmRequest", "agent":
		in["message"], in["tools"] = d.words(), []string{"look", "write", "wrong", "helper"}
	case "decision":
		with["expr"], with["branches"] = "size(run.id) > 3 ? 'left' : 'right'", []string{"left", "right"}
	case "job":
		d.job(n, in, with)
	case "hand":
		with["ask"], with["point"] = d.one(3), d.one(4)
		d.hand = d.hand || with["point"].(bool)
	case "pure":
		n["cache"] = map[string]any{"ttl": "1h"}
	case "userInput":
		with["prompt"], with["history"] = "What of "+id+"?", d.one(2)
	case "loop", "forEach":
		nodes, outputs := d.scope(id+"_", depth-1, uses)
		with["body"] = map[string]any{"nodes": nodes, "outputs": outputs}
		if kind == "loop" {
			with["max"] = rapid.IntRange(1, 3).Draw(d.t, "max")
			break
		}
		in["items"] = []string{"i", "j", "k"}[:rapid.IntRange(0, 3).Draw(d.t, "items")]
		with["concurrency"] = rapid.SampledFrom([]int{1, 1, 4}).Draw(d.t, "concurrency")
		if d.one(3) {
			n["isolation"] = "fork"
		}
	case "flow":
		with["flow"] = rapid.SampledFrom(uses).Draw(d.t, "flow").Name
		if d.one(3) {
			with["reply"] = true
		}
	}
	d.addFailure(n, kind)
	if len(with) > 0 {
		n["with"] = with
	}
	return kind
}

func (d *flowGenerator) job(_, in, with map[string]any) {
	with["effects"], with["ask"] = rapid.IntRange(0, 2).Draw(d.t, "effects"), d.one(5)
	if d.one(3) {
		with["declare"] = rapid.SampledFrom([]string{"dams", "weirs"}).Draw(d.t, "declare")
	}
	if d.one(4) {
		with["fails"] = rapid.IntRange(1, 2).Draw(d.t, "fails")
	}
	if in["x"] != nil && d.one(3) {
		in["later"], with["pull"] = in["x"], d.one(2)
		delete(in, "x")
	}
}

// addFailure draws what becomes of a node that fails.
func (d *flowGenerator) addFailure(n map[string]any, kind string) {
	if kind == "loop" || kind == "forEach" || kind == "decision" || kind == "template" {
		return
	}
	if d.one(3) {
		n["retry"] = map[string]any{"attempts": 3, "backoff": "1ms", "on": []string{"model_filtered", "node_failed"}}
	}
	if d.one(6) && kind != "userInput" {
		n["onError"] = map[string]any{"value": nil}
	}
	if d.one(10) && kind != "flow" {
		n["interruptBefore"] = true
	}
}

// flow draws a flow and, below it, those that its nodes run.
func (d *flowGenerator) flow(w *weir.Weir, name string, below int) (*weir.Flow, string, bool) {
	var uses []*weir.Flow
	if below > 0 && d.one(2) {
		f, why, ok := d.flow(w, name+"x", below-1)
		if !ok {
			return nil, why, false
		}
		uses = append(uses, f)
	}
	nodes, outputs := d.scope("", 2, uses)
	def := map[string]any{"weir": 1, "name": name, "context": map[string]any{"model": "puppet/m"}, "nodes": nodes, "outputs": outputs}
	text, err := json.MarshalIndent(def, "", "  ")
	if err != nil {
		d.t.Fatal(err)
	}
	f, err := w.Parse(name, text, uses...)
	if err != nil {
		return nil, err.Error(), false
	}
	return f, string(text), true
}

func TestStoredTrajectoriesOfRandomRunsMatchJournals(t *testing.T) {
	t.Parallel()
	theatres := map[bool]*trajectoryHarness{}
	for _, onDisk := range []bool{false, true} {
		path := ""
		if onDisk {
			path = filepath.Join(t.TempDir(), "weir.db")
		}
		theatres[onDisk] = newTrajectoryHarness(t, path)
		if err := theatres[onDisk].open(); err != nil {
			t.Fatal(err)
		}
	}
	runs, forks, seen := 0, 0, map[engine.Status]int{}
	rapid.Check(t, func(rt *rapid.T) {
		s := theatres[rapid.IntRange(0, 3).Draw(rt, "disk") == 0]
		d := &flowGenerator{t: rt}
		f, text, ok := d.flow(s.w, "f", 2)
		if !ok {
			rt.Skip(text) // not a valid flow
		}
		id := fmt.Sprintf("run%x", rand.Uint64())
		res, err := d.run(s, f, id)
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		runs++
		seen[res.Status]++
		if err := d.check(s, f, id); err != nil {
			rt.Fatalf("the run %s, %v: %v\n%s", res.Status, res.Error, err, text)
		}
		if !d.one(3) {
			return
		}
		fork, err := d.fork(s, id)
		if err == nil && fork != "" {
			forks++
			err = d.check(s, f, fork)
		}
		if err != nil {
			rt.Fatalf("the fork of a run that %s, %v: %v\n%s", res.Status, res.Error, err, text)
		}
	})
	t.Logf("%d runs and %d forks: %v", runs, forks, seen)
	if len(seen) < 2 || runs < 15 {
		t.Error("little was tested")
	}
}

// run runs a flow, in processes that come and go, or are killed; one that failed
// may be tried again where it failed, and one that waits may be cancelled.
func (d *flowGenerator) run(s *trajectoryHarness, f *weir.Flow, id string) (res weir.Result, err error) {
	ctx := context.Background()
	again := func() bool { return d.one(3) }
	if d.one(4) {
		res, err = s.runKilled(f, id, rapid.IntRange(1, 20).Draw(d.t, "commits"), again)
	} else {
		var run *weir.Run
		if run, err = s.w.Start(ctx, f, weir.Start{ID: id}); err != nil {
			return res, err
		}
		if d.one(8) {
			res, err = d.stop(ctx, s, run)
		} else {
			res, err = s.runThrough(ctx, run, again)
		}
	}
	for range 3 {
		if err != nil || res.Status != engine.Failed || res.Error == nil || res.Error.Node == "" || !d.one(2) {
			return res, err
		}
		run, err := s.w.OverrideNode(ctx, id, "retry", res.Error.Node, nil, "ann")
		if err != nil {
			return res, err
		}
		if res, err = s.runThrough(ctx, run, again); err != nil {
			return res, err
		}
	}
	return res, err
}

// stop cancels a run that waits.
func (d *flowGenerator) stop(ctx context.Context, s *trajectoryHarness, run *weir.Run) (weir.Result, error) {
	if res, err := run.Wait(ctx); err != nil || res.Status.Ended() {
		return res, err
	}
	run, err := s.w.Cancel(ctx, run.ID, "ann", "enough")
	if err != nil {
		return weir.Result{}, err
	}
	return run.Wait(ctx)
}

// fork forks a run somewhere, and sees the fork to its end.
func (d *flowGenerator) fork(s *trajectoryHarness, id string) (string, error) {
	ctx := context.Background()
	row, err := s.store.Run(ctx, id)
	if err != nil {
		return "", err
	}
	at := rapid.Int64Range(1, row.Events).Draw(d.t, "at")
	run, _, err := s.w.Fork(ctx, id, weir.ForkOptions{ID: id + "f", At: at})
	if err != nil {
		var e *weir.Error
		if errors.As(err, &e) && e.Code == engine.CodeFork { // there is no such point
			err = nil
		}
		return "", err
	}
	_, err = s.runThrough(ctx, run, func() bool { return d.one(3) })
	return run.ID, err
}

func (d *flowGenerator) check(s *trajectoryHarness, f *weir.Flow, id string) error {
	ctx := context.Background()
	if err := compareStored(ctx, s.w, s.kept, "", id); err != nil {
		return err
	}
	g, err := s.w.Trajectory(ctx, id, 0)
	if err != nil {
		return err
	}
	if !d.hand {
		if err := checkEnds(g); err != nil {
			return fmt.Errorf("%w in\n%s", err, graphText(g))
		}
	}
	return checkPaths(g, f)
}
