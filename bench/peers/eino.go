package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/cloudwego/eino/compose"
)

// einoModes returns the ways Eino offers to run a graph; the table shows each, so
// that the best one is there to compare with.
func einoModes() []contender {
	return []contender{
		{"eino graph, any predecessor", func(ctx context.Context, s shape) (job, error) {
			return einoGraph(ctx, s, compose.WithNodeTriggerMode(compose.AnyPredecessor),
				compose.WithMaxRunSteps(s.depth+10))
		}},
		{"eino graph, all predecessors", func(ctx context.Context, s shape) (job, error) {
			return einoGraph(ctx, s, compose.WithNodeTriggerMode(compose.AllPredecessor))
		}},
		{"eino graph, all predecessors, eager", func(ctx context.Context, s shape) (job, error) {
			return einoGraph(ctx, s, compose.WithNodeTriggerMode(compose.AllPredecessor),
				compose.WithEagerExecution())
		}},
		{"eino chain", einoChain},
		{"eino workflow", einoWorkflow},
	}
}

func plusOne() *compose.Lambda {
	return compose.InvokableLambda(func(_ context.Context, in int) (int, error) { return in + 1, nil })
}

// mergeEino says how Eino joins the values of several edges: any of them.
func mergeEino() {
	compose.RegisterValuesMergeFunc(func(in []int) (int, error) { return slices.Max(in), nil })
}

func einoGraph(ctx context.Context, s shape, opts ...compose.GraphCompileOption) (job, error) {
	g := compose.NewGraph[int, int]()
	for i := range s.nodes {
		if err := g.AddLambdaNode(id(i), plusOne()); err != nil {
			return nil, err
		}
	}
	if err := g.AddEdge(compose.START, id(0)); err != nil {
		return nil, err
	}
	for i, from := range s.into {
		for _, j := range from {
			if err := g.AddEdge(id(j), id(i)); err != nil {
				return nil, err
			}
		}
	}
	if err := g.AddEdge(id(s.nodes-1), compose.END); err != nil {
		return nil, err
	}
	r, err := g.Compile(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return einoJob(ctx, s, r), nil
}

func einoChain(ctx context.Context, s shape) (job, error) {
	if !s.isChain() {
		return nil, nil
	}
	c := compose.NewChain[int, int]()
	for range s.nodes {
		c.AppendLambda(plusOne())
	}
	r, err := c.Compile(ctx, compose.WithMaxRunSteps(s.depth+10))
	if err != nil {
		return nil, err
	}
	return einoJob(ctx, s, r), nil
}

// einoWorkflow builds a Workflow, which maps fields and cannot join two whole
// values into one port: it is measured where nothing joins.
func einoWorkflow(ctx context.Context, s shape) (job, error) {
	if !s.isChain() {
		return nil, nil
	}
	w := compose.NewWorkflow[int, int]()
	from := compose.START
	for i := range s.nodes {
		w.AddLambdaNode(id(i), plusOne()).AddInput(from)
		from = id(i)
	}
	w.End().AddInput(from)
	r, err := w.Compile(ctx)
	if err != nil {
		return nil, err
	}
	return einoJob(ctx, s, r), nil
}

func einoJob(ctx context.Context, s shape, r compose.Runnable[int, int]) job {
	return func() error {
		out, err := r.Invoke(ctx, 0)
		if err != nil {
			return err
		}
		if out != s.depth {
			return fmt.Errorf("eino returned %d for %s, not %d", out, s.name, s.depth)
		}
		return nil
	}
}
