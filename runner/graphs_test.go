package runner_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
)

var allGraphs = flag.Bool("graphs.all", false, "simulate the graphs of more than 300 tasks too")

// graph is a real scientific workflow: what its tasks wait for.
type graph struct {
	Tasks []struct {
		ID      string   `json:"id"`
		Parents []string `json:"parents"`
	} `json:"tasks"`
	nodes map[string]string // task id -> node id
}

// loadGraphs reads the graphs that are in the folder next to the repository.
func loadGraphs(t *testing.T) map[string]*graph {
	t.Helper()
	files, err := filepath.Glob(shareddata.Path(t, "dags/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		shareddata.Missing(t, fs.ErrNotExist)
	}
	out := make(map[string]*graph, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := &graph{nodes: map[string]string{}}
		if err := json.Unmarshal(data, d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i, task := range d.Tasks {
			d.nodes[task.ID] = fmt.Sprintf("n%d", i)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = d
	}
	return out
}

// definition makes a flow of the graph: parents become data edges for every
// other task and control edges for the rest.
func (d *graph) definition(name string) weir.Definition {
	def := weir.Definition{Name: name, Nodes: make(map[string]weir.NodeSpec, len(d.Tasks))}
	for i, task := range d.Tasks {
		n := weir.NodeSpec{Type: "task"}
		var values []any
		for _, p := range task.Parents {
			if i%2 == 0 {
				values = append(values, "{{ "+d.nodes[p]+".done }}")
			} else {
				n.After = append(n.After, d.nodes[p])
			}
		}
		if values != nil {
			n.In = map[string]any{"parents": values}
		}
		if n.After != nil {
			n.Join = "all"
		}
		def.Nodes[d.nodes[task.ID]] = n
	}
	return def
}

// taskLog stands outside and notes every task it is asked to do, in order.
type taskLog struct {
	mu    sync.Mutex
	asked []string // idempotency keys
}

type taskIn struct {
	Parents []string `weir:"parents,optional,many"`
}

type taskOut struct{ Done string }

// taskType asks the ledger, once a node.
func taskType(l func() *taskLog) weir.Type {
	return weir.Func("task", func(ctx weir.Ctx, in taskIn) (taskOut, error) {
		v, err := ctx.Do(node.Effect{Name: "work", Do: func(_ context.Context, key string) (node.Outcome, error) {
			led := l()
			led.mu.Lock()
			defer led.mu.Unlock()
			led.asked = append(led.asked, key)
			return node.Outcome{Value: ctx.Info().Path}, nil
		}})
		done, _ := v.(string)
		return taskOut{Done: done}, err
	})
}

// check holds what the ledger was asked, and in which order, against the graph.
// Repeats are allowed only where the process died meanwhile.
func (d *graph) check(run string, l *taskLog, crashes int) error {
	first, last := map[string]int{}, map[string]int{}
	for i, key := range l.asked {
		id := strings.TrimSuffix(strings.TrimPrefix(key, run+"/"), "/work#1")
		if _, again := first[id]; !again {
			first[id] = i
		}
		last[id] = i
	}
	if extra := len(l.asked) - len(first); extra > 0 && crashes == 0 {
		return fmt.Errorf("%d tasks were asked for again", extra)
	}
	for _, task := range d.Tasks {
		n := d.nodes[task.ID]
		if _, ok := first[n]; !ok {
			return fmt.Errorf("task %s was never done", task.ID)
		}
		for _, p := range task.Parents {
			if last[d.nodes[p]] > first[n] {
				return fmt.Errorf("task %s began before its parent %s had ended", task.ID, p)
			}
		}
	}
	if len(first) != len(d.Tasks) {
		return fmt.Errorf("%d tasks were done, the graph has %d", len(first), len(d.Tasks))
	}
	return nil
}

func TestRealGraphsRunEachTaskOnceAfterItsParents(t *testing.T) {
	ctx := t.Context()
	l := &taskLog{}
	w := weirkit.Open(t, weir.Options{Types: []weir.Type{taskType(func() *taskLog { return l })}})
	tasks := 0
	for name, d := range loadGraphs(t) {
		f, err := w.Define(d.definition(name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		l = &taskLog{}
		run, err := w.Start(ctx, f, weir.Start{ID: name})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(ctx)
		if err != nil || r.Status != engine.Completed {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		if err := d.check(name, l, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		tasks += len(d.Tasks)
	}
	t.Logf("%d tasks", tasks)
}

func TestRealGraphsCompleteAfterProcessDeath(t *testing.T) {
	l := &taskLog{}
	w := weirkit.Open(t, weir.Options{Types: []weir.Type{taskType(func() *taskLog { return l })}})
	crashes, faults, tasks := 0, 0, 0
	for name, d := range loadGraphs(t) {
		if !*allGraphs && len(d.Tasks) > 300 {
			continue
		}
		f, err := w.Define(d.definition(name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, err := runner.Prepare(f, w.Catalogue())
		if err != nil {
			t.Fatal(err)
		}
		l = &taskLog{}
		sim := &runner.Sim{Seed: uint64(len(d.Tasks)), Crash: 2 / float64(len(d.Tasks)), Fault: 2 / float64(len(d.Tasks))}
		report, err := sim.Run(p, runner.Services{}, runner.StartOptions{ID: name})
		if err != nil || report.Status != engine.Completed {
			t.Fatalf("%s: %+v, %v", name, report.Result, err)
		}
		if err := d.check(name, l, report.Crashes); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.checkJournal(report.Commits); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		crashes, faults, tasks = crashes+report.Crashes, faults+report.Faults, tasks+len(d.Tasks)
	}
	t.Logf("%d tasks, %d crashes, %d store faults", tasks, crashes, faults)
	if crashes == 0 || faults == 0 {
		t.Error("nothing crashed")
	}
}

// checkJournal: each node starts, does its work and completes once.
func (d *graph) checkJournal(commits []engine.Commit) error {
	n := map[string]int{}
	for _, c := range commits {
		for _, e := range c.Events {
			switch e := e.(type) {
			case *engine.NodeStarted:
				n["start "+e.Path]++
			case *engine.EffectCompleted:
				n["effect "+e.Key]++
			case *engine.NodeCompleted:
				n["end "+e.Path]++
			}
		}
	}
	for what, times := range n {
		if times != 1 {
			return fmt.Errorf("%s is journaled %d times", what, times)
		}
	}
	if len(n) != 3*len(d.Tasks) {
		return fmt.Errorf("the journal has %d facts, expected %d", len(n), 3*len(d.Tasks))
	}
	return nil
}
