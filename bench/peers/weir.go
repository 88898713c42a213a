package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
)

// adder is a node type that adds one to its input, or to the greatest of many.
type adder struct{ spec flow.TypeSpec }

// adders returns the types one and join. Inline ones run on the run's own
// goroutine; ones that are not pure wait until their start is durable.
func adders(pure, inline bool) []node.Type {
	in := flow.Port{Name: "in", Type: flow.TypeAny, Required: true}
	many := in
	many.Many = true
	out := []flow.Port{{Name: "out", Type: flow.TypeAny}}
	return []node.Type{
		&adder{flow.TypeSpec{
			Name: "one", Version: 1, Pure: pure, Inline: inline,
			Ports: flow.Ports{In: []flow.Port{in}, Out: out},
		}},
		&adder{flow.TypeSpec{
			Name: "join", Version: 1, Pure: pure, Inline: inline,
			Ports: flow.Ports{In: []flow.Port{many}, Out: out},
		}},
	}
}

// Spec describes the type.
func (a *adder) Spec() *flow.TypeSpec { return &a.spec }

// Prepare needs no settings.
func (a *adder) Prepare(map[string]any) (node.Node, error) { return node.NodeFunc(addOne), nil }

func addOne(ctx *node.Ctx) error {
	v, _ := ctx.Input("in")
	most, ok := v.(int64)
	if !ok {
		list, _ := v.([]any)
		for _, e := range list {
			n, ok := e.(int64)
			if !ok {
				return fmt.Errorf("in is %v", v)
			}
			most = max(most, n)
		}
	}
	ctx.Output("out", most+1)
	return nil
}

// weirFlow builds the shape as a flow.
func weirFlow(s shape, c *node.Catalogue) (*runner.Program, error) {
	f := &flow.Flow{Name: "shape"}
	for i, from := range s.into {
		n := &flow.Node{ID: id(i), Type: "one"}
		if len(from) == 0 {
			n.In = []flow.Binding{{Name: "in", Value: int64(0)}}
		}
		if len(from) > 1 {
			n.Type = "join"
		}
		f.Nodes = append(f.Nodes, n)
		for _, j := range from {
			f.Edges = append(f.Edges, &flow.Edge{
				ID: id(j) + "->" + id(i), Kind: flow.EdgeData,
				From: id(j), FromPort: "out", To: id(i), ToPort: "in",
			})
		}
	}
	f.Outputs = []flow.Binding{{Name: "out", Value: "{{ " + id(s.nodes-1) + ".out }}"}}
	f, err := flow.Build(f, c)
	if err != nil {
		return nil, err
	}
	return runner.Prepare(f, c)
}

// weirOn runs a shape on a store that open makes; after so many runs a new one,
// so that a store in memory stays small.
func weirOn(pure, inline bool, runs int64, open func(context.Context) (runner.Store, error)) func(context.Context, shape) (job, error) {
	return func(ctx context.Context, s shape) (job, error) {
		c, err := node.NewCatalogue(adders(pure, inline)...)
		if err != nil {
			return nil, err
		}
		p, err := weirFlow(s, c)
		if err != nil {
			return nil, err
		}
		var count atomic.Int64
		var local *runner.Local
		one := func() error { return weirRun(ctx, local, p, strconv.FormatInt(count.Add(1), 10), s.depth) }
		return func() error {
			if local == nil || count.Load() >= runs {
				if local != nil {
					if err := local.Close(ctx); err != nil {
						return err
					}
				}
				st, err := open(ctx)
				if err != nil {
					return err
				}
				local = runner.NewLocal(runner.Options{Store: st})
				count.Store(0)
			}
			if s.runs > 0 {
				return together(s, one)
			}
			return one()
		}, nil
	}
}

func weirRun(ctx context.Context, l *runner.Local, p *runner.Program, id string, want int) error {
	x, err := l.Start(ctx, p, runner.StartOptions{ID: id})
	if err != nil {
		return err
	}
	r, err := x.Wait(ctx)
	if err != nil {
		return err
	}
	if out, _ := r.Outputs.Get("out"); r.Status != engine.Completed || out != int64(want) {
		return fmt.Errorf("weir %s with %v, not %d: %v", r.Status, out, want, r.Error)
	}
	return nil
}

// inMemory and onDisk are the two ways to keep a run.
func inMemory(context.Context) (runner.Store, error) { return memory.New(), nil }

func onDisk(dir string, sync sqlite.Sync) func(context.Context) (runner.Store, error) {
	var count atomic.Int64
	return func(ctx context.Context) (runner.Store, error) {
		return sqlite.Open(ctx, filepath.Join(dir, fmt.Sprintf("weir%d.db", count.Add(1))), sqlite.Options{Sync: sync})
	}
}
