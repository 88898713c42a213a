package trajectory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// A round is filled from its messages, and by hand with what a tool made.
func ExampleRecorderPool() {
	ctx := context.Background()
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	storage := tables.New(tables.NewMemory())        // or files.New("trajectories", files.Options{})
	pool := trajectory.NewRecorderPool(storage, nil) // one a process

	key := trajectory.Key{User: "ann", Session: "s1", Round: 1}
	recorder, release, err := pool.Open(ctx, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	by := trajectory.Attribution{Run: "r1", Path: "ask"}
	_, err = recorder.AddMessages(trajectory.MessageOptions{By: by, At: at},
		convo.Message{Role: convo.User, Text: "Who was late?"},
		convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "1", Name: "query", Arguments: `{"month":10}`}}},
		convo.Message{Role: convo.Tool, CallID: "1", Text: "12 rows"},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = recorder.Add(trajectory.NewNode{Type: trajectory.Table, Name: "orders", By: by, At: at})
	fmt.Println(err)
	_, err = recorder.Add(trajectory.NewNode{Type: trajectory.Table, Name: "orders", Relation: trajectory.ToolOutput, By: by, At: at})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := recorder.AddMessages(trajectory.MessageOptions{By: by, At: at}, convo.Message{Role: convo.Assistant, Text: "ACME was."}); err != nil {
		fmt.Println(err)
		return
	}
	if err := release(ctx); err != nil { // the last to release it saves
		fmt.Println(err)
		return
	}

	graph, err := trajectory.LoadGraph(ctx, storage, "ann", "s1", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range graph.Edges {
		fmt.Println(e.Source, e.Relationship, e.Target)
	}
	// Output:
	// add Table: Action(action00001) -> Table(table00000): no relation can be inferred for Action -> Table: a relation must be given, such as produces or tool_output or refers_to
	// Query(query00000) triggers Action(action00000)
	// Action(action00000) generates Action(action00001)
	// Action(action00001) refers_to Tool(tool00000)
	// Action(action00001) tool_output Table(table00000)
	// Action(action00001) has_conclusion State(state00000)
}
