package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"

	"trpc.group/trpc-go/trpc-agent-go/agent"
	"trpc.group/trpc-go/trpc-agent-go/graph"
)

// trpcKey is the key of the state that the nodes write: the largest value so far.
const trpcKey = "n"

// trpc runs a graph of trpc-agent-go with its executor, in memory and without checkpoints.
// The state goes from node to node; nodes of one step write one key, of which a reducer
// keeps the largest value.
func trpc(ctx context.Context, s shape) (job, error) {
	schema := graph.NewStateSchema().AddField(trpcKey, graph.StateField{Type: reflect.TypeFor[int](), Reducer: trpcMax})
	g := graph.NewStateGraph(schema)
	for i := range s.nodes {
		g.AddNode(id(i), trpcPlusOne)
	}
	for i, from := range s.into {
		for _, j := range from {
			g.AddEdge(id(j), id(i))
		}
	}
	compiled, err := g.SetEntryPoint(id(0)).SetFinishPoint(id(s.nodes - 1)).Compile()
	if err != nil {
		return nil, err
	}
	x, err := graph.NewExecutor(compiled, graph.WithMaxSteps(s.depth+10))
	if err != nil {
		return nil, err
	}
	var count atomic.Int64
	return func() error {
		run := agent.NewInvocation(agent.WithInvocationID(strconv.FormatInt(count.Add(1), 10)))
		events, err := x.Execute(ctx, graph.State{trpcKey: 0}, run)
		if err != nil {
			return err
		}
		last, failed := 0, ""
		for e := range events {
			if e.Error != nil {
				failed = e.Error.Message
			}
			if v, ok := e.StateDelta[trpcKey]; ok {
				if err := json.Unmarshal(v, &last); err != nil {
					return err
				}
			}
		}
		if last != s.depth || failed != "" {
			return fmt.Errorf("trpc-agent-go returned %d for %s, not %d: %s", last, s.name, s.depth, failed)
		}
		return nil
	}, nil
}

func trpcPlusOne(_ context.Context, s graph.State) (any, error) {
	n, ok := graph.GetStateValue[int](s, trpcKey)
	if !ok {
		return nil, fmt.Errorf("the state has %T", s[trpcKey])
	}
	return graph.State{trpcKey: n + 1}, nil
}

func trpcMax(existing, update any) any {
	a, _ := existing.(int)
	b, _ := update.(int)
	return max(a, b)
}
