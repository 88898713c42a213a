package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/workflowagent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"
)

// adk runs a graph workflow of ADK Go through its runner, each run in a session
// of its own in memory. Where edges join, ADK wants a node for it: those are
// not counted as nodes.
func adk(ctx context.Context, s shape) (job, error) {
	a, err := workflowagent.New(workflowagent.Config{Name: "shape", Edges: adkEdges(s)})
	if err != nil {
		return nil, err
	}
	sessions := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "peers", Agent: a, SessionService: sessions})
	if err != nil {
		return nil, err
	}
	var count atomic.Int64
	return func() error {
		sid := strconv.FormatInt(count.Add(1), 10)
		at := session.CreateRequest{AppName: "peers", UserID: "u", SessionID: sid}
		if _, err := sessions.Create(ctx, &at); err != nil {
			return err
		}
		var last any
		for e, err := range r.Run(ctx, "u", sid, genai.NewContentFromText("0", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				return err
			}
			if e.Output != nil {
				last = e.Output
			}
		}
		if last != s.depth {
			return fmt.Errorf("adk returned %v for %s, not %d", last, s.name, s.depth)
		}
		return sessions.Delete(ctx, &session.DeleteRequest{AppName: "peers", UserID: "u", SessionID: sid})
	}, nil
}

func adkEdges(s shape) []workflow.Edge {
	var edges []workflow.Edge
	nodes := make([]workflow.Node, s.nodes)
	for i, from := range s.into {
		switch len(from) {
		case 0:
			nodes[i] = workflow.NewFunctionNode(id(i), func(agent.Context, string) (int, error) { return 1, nil },
				workflow.NodeConfig{})
			edges = append(edges, workflow.Edge{From: workflow.Start, To: nodes[i]})
		case 1:
			nodes[i] = workflow.NewFunctionNode(id(i), func(_ agent.Context, in int) (int, error) { return in + 1, nil },
				workflow.NodeConfig{})
			edges = append(edges, workflow.Edge{From: nodes[from[0]], To: nodes[i]})
		default:
			join := workflow.NewJoinNode("join" + id(i))
			nodes[i] = workflow.NewFunctionNode(id(i), adkMax, workflow.NodeConfig{})
			for _, j := range from {
				edges = append(edges, workflow.Edge{From: nodes[j], To: join})
			}
			edges = append(edges, workflow.Edge{From: join, To: nodes[i]})
		}
	}
	return edges
}

func adkMax(_ agent.Context, in map[string]any) (int, error) {
	most := 0
	for name, v := range in {
		n, ok := v.(int)
		if !ok {
			return 0, fmt.Errorf("%s gave %T", name, v)
		}
		most = max(most, n)
	}
	return most + 1, nil
}
