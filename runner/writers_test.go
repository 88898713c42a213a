package runner

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

var writersN = flag.Int("writers.n", 50, "how many runs of 64 parallel writers are simulated")

const writerCount = 64

// writerType is a node type that writes a message, a key of its own, and keys that
// all write.
type writerType struct{ spec flow.TypeSpec }

func (s *writerType) Spec() *flow.TypeSpec { return &s.spec }

func (s *writerType) Prepare(map[string]any) (node.Node, error) { return node.NodeFunc(writeAll), nil }

func writeAll(ctx *node.Ctx) error {
	m, err := ctx.Context()
	if err != nil {
		return err
	}
	before := m.Get().History.Len()
	// Two messages, so that a turn which another comes between is seen.
	for _, role := range []convo.Role{convo.User, convo.Assistant} {
		if _, err := m.Add(convo.Message{Role: role, Text: ctx.Info().Path}); err != nil {
			return err
		}
	}
	path := ctx.Info().Path
	return ctx.State().Update(map[string]any{"at_" + path: int64(before), "log": path, "count": int64(1)})
}

// effectType is a node type that does something outside, so that when a node after
// it is ready depends on the schedule.
type effectType struct{ spec flow.TypeSpec }

func (e *effectType) Spec() *flow.TypeSpec { return &e.spec }

func (e *effectType) Prepare(map[string]any) (node.Node, error) {
	return node.NodeFunc(func(ctx *node.Ctx) error {
		_, err := ctx.Do(node.Effect{Name: "run", Do: func(context.Context, string) (node.Outcome, error) {
			return node.Outcome{}, nil
		}})
		return err
	}), nil
}

// writersProgram returns 64 nodes, none after another, that write one context and
// one state, each once its errand is done.
func writersProgram(t *testing.T) *Program {
	t.Helper()
	var b strings.Builder
	b.WriteString("weir: 1\nname: writers\nstate:\n  log: {reducer: append, initial: []}\n  count: {reducer: sum, initial: 0}\nnodes:\n")
	for i := range writerCount {
		fmt.Fprintf(&b, "  e%02d: {type: errand}\n  w%02d: {type: scribe, after: e%02d}\n", i, i, i)
	}
	c, err := node.NewCatalogue(
		&writerType{flow.TypeSpec{Name: "scribe", Version: 1, Context: flow.ContextWrite}},
		&effectType{flow.TypeSpec{Name: "errand", Version: 1}},
	)
	if err != nil {
		t.Fatal(err)
	}
	f, err := flow.Parse("writers.yaml", []byte(b.String()), c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParallelWritersLoseNothing(t *testing.T) {
	p := writersProgram(t)
	crashes, orders := 0, map[string]bool{}
	n := int(seedCount(uint64(*writersN)))
	for seed := range uint64(n) {
		sim := &Sim{Seed: seed, Parallel: writerCount, Crash: 0.01, Fault: 0.03}
		report, err := sim.Run(p, Services{}, StartOptions{ID: "writers"})
		if err != nil {
			t.Fatal(err)
		}
		order, err := checkWriters(p, report)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		crashes += report.Crashes
		orders[order] = true
	}
	t.Logf("%d runs of %d writers, %d crashes, %d orders", n, writerCount, crashes, len(orders))
	if crashes < n/4 || len(orders) < min(n/4, 1000) {
		t.Error("the simulation does not simulate what it should")
	}
}

// checkWriters holds a run, and the replay of its journal, to what 64 writers
// must leave behind. It returns the order they wrote in.
func checkWriters(p *Program, report SimReport) (string, error) {
	if report.Status != engine.Completed {
		return "", fmt.Errorf("the run is %s: %w", report.Status, report.Error)
	}
	live, err := written(report.Contexts[engine.MainContext])
	if err != nil {
		return "", err
	}
	again := newReplica("writers", p)
	for _, c := range report.Commits {
		if err := again.m.replay(c); err != nil {
			return "", err
		}
	}
	replayed, err := written(again.m.contexts[engine.MainContext])
	if err != nil {
		return "", err
	}
	if !slices.Equal(live, replayed) {
		return "", fmt.Errorf("live %v, replayed %v", live, replayed)
	}
	return strings.Join(live, " "), checkWrittenState(again.m.run.State(), live)
}

// written returns who wrote a context, in order: everybody once, uninterrupted.
func written(c convo.Context) ([]string, error) {
	ms, err := c.Messages()
	if err != nil {
		return nil, err
	}
	var order []string
	ids := map[string]bool{}
	for i, m := range ms {
		ids[m.ID] = true
		if i%2 == 0 {
			order = append(order, m.Text)
		} else if m.Text != ms[i-1].Text {
			return nil, fmt.Errorf("%s writes in the middle of the turn of %s", m.Text, ms[i-1].Text)
		}
	}
	if once := slices.Compact(slices.Sorted(slices.Values(order))); len(once) != writerCount || len(order) != writerCount || len(ids) != 2*writerCount {
		return nil, fmt.Errorf("%d writers in %d turns with %d ids", len(once), len(order), len(ids))
	}
	return order, nil
}

func checkWrittenState(s engine.State, order []string) error {
	for i, who := range order {
		if at, _ := s.Get("at_" + who); at != int64(2*i) {
			return fmt.Errorf("%s saw %v messages and wrote the turn %d", who, at, i)
		}
	}
	if n, _ := s.Get("count"); n != int64(writerCount) {
		return fmt.Errorf("the count is %v", n)
	}
	log, _ := s.Get("log")
	var names []string
	for _, v := range log.([]any) {
		names = append(names, v.(string))
	}
	if !slices.Equal(names, order) {
		return fmt.Errorf("the log is %v, the messages are in the order %v", names, order)
	}
	return nil
}
