package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

// value is what the no-op nodes pass on.
type value struct {
	In any `weir:"in,optional"`
}

type result struct {
	Out any `weir:"out"`
}

// wide takes any number of edges.
type wide struct {
	In []any `weir:"in,many,optional"`
}

func passValue(_ weir.Ctx, in value) (result, error) { return result{in.In}, nil }

func gather(_ weir.Ctx, in wide) (result, error) { return result{int64(len(in.In))}, nil }

// types returns the no-op node in its modes: on the run's own goroutine, on one of
// its own, and pure (which may run before its start is durable).
func types() []weir.Type {
	return []weir.Type{
		weir.Func("inline", passValue).Inline(),
		weir.Func("spawn", passValue),
		weir.Func("pure", passValue).Inline().Pure(),
		weir.Func("gather", gather).Inline(),
	}
}

func open(b *testing.B, o weir.Options) *weir.Weir {
	b.Helper()
	o.Types = types()
	w, err := weir.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return w
}

func define(b *testing.B, w *weir.Weir, d weir.Definition) *weir.Flow {
	b.Helper()
	f, err := w.Define(d)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// chain is n nodes one after another.
func chain(n int, typ string) weir.Definition {
	nodes := make(map[string]weir.NodeSpec, n)
	for i := range n {
		in := map[string]any{"in": "x"}
		if i > 0 {
			in["in"] = fmt.Sprintf("{{ n%06d.out }}", i-1)
		}
		nodes[fmt.Sprintf("n%06d", i)] = weir.NodeSpec{Type: typ, In: in}
	}
	return weir.Definition{Name: "chain", Nodes: nodes}
}

// fan returns 1 -> n -> 1.
func fan(n int, typ string) weir.Definition {
	nodes := map[string]weir.NodeSpec{"a": {Type: typ, In: map[string]any{"in": "x"}}}
	all := make([]any, n)
	for i := range n {
		id := fmt.Sprintf("m%06d", i)
		nodes[id] = weir.NodeSpec{Type: typ, In: map[string]any{"in": "{{ a.out }}"}}
		all[i] = "{{ " + id + ".out }}"
	}
	nodes["z"] = weir.NodeSpec{Type: "gather", In: map[string]any{"in": all}}
	return weir.Definition{Name: "fan", Nodes: nodes}
}

// lattice is n by n nodes, each after its left and upper neighbours.
func lattice(n int, typ string) weir.Definition {
	nodes := make(map[string]weir.NodeSpec, n*n)
	id := func(i, j int) string { return fmt.Sprintf("g%03d_%03d", i, j) }
	for i := range n {
		for j := range n {
			s := weir.NodeSpec{Type: typ, Join: "all", In: map[string]any{"in": "x"}}
			if i > 0 {
				s.After = append(s.After, id(i-1, j))
			}
			if j > 0 {
				s.After = append(s.After, id(i, j-1))
			}
			nodes[id(i, j)] = s
		}
	}
	return weir.Definition{Name: "lattice", Nodes: nodes}
}

// runs runs the flow b.N times and reports the time a node.
func runs(b *testing.B, w *weir.Weir, f *weir.Flow) {
	b.Helper()
	ctx := context.Background()
	runOnce(ctx, b, w, f)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		runOnce(ctx, b, w, f)
	}
	n := float64(b.N) * float64(len(f.Nodes))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/node")
}

func runOnce(ctx context.Context, b *testing.B, w *weir.Weir, f *weir.Flow) {
	b.Helper()
	run, err := w.Start(ctx, f, weir.Start{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := run.Wait(ctx)
	if err != nil || r.Status != engine.Completed {
		b.Fatalf("run: %+v, %v", r, err)
	}
}

func BenchmarkMemory(b *testing.B) {
	for _, typ := range []string{"inline", "spawn", "pure"} {
		for _, c := range []struct {
			name string
			def  weir.Definition
		}{
			{"chain10", chain(10, typ)},
			{"chain1000", chain(1000, typ)},
			{"fan1000", fan(1000, typ)},
			{"lattice30", lattice(30, typ)},
			{"chain100000", chain(100_000, typ)},
		} {
			b.Run(c.name+"/"+typ, func(b *testing.B) {
				w := open(b, weir.Options{})
				runs(b, w, define(b, w, c.def))
			})
		}
	}
}
