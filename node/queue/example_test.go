package queue_test

import (
	"context"
	"fmt"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/queue"
	"github.com/weir-run/weir/tool"
)

// shoppingNode returns a node whose model fills a list, which is bought then.
func shoppingNode(ctx weir.Ctx, in struct{ Message string }) (out struct{ Bought []string }, err error) {
	list := queue.New[string](2)
	add := &tool.Tool{Name: "add", Call: func(_ context.Context, c tool.Call) (string, error) {
		if err := list.Add(c.Arguments); err != nil { // queue.ErrFull
			return "", err
		}
		return fmt.Sprintf("%d of %d", list.Len(), list.Capacity()), nil
	}}
	host := queue.Ordered(ctx, ctx.LLMHost(), add)
	turn := llm.Turn{Message: &convo.Message{Text: in.Message}, Tools: []*tool.Tool{add}, Model: "script/demo"}
	if _, err := ctx.LLM().Turn(ctx, host, turn); err != nil {
		return out, node.ModelError(err)
	}
	for item, ok := list.Next(); ok; item, ok = list.Next() {
		_, err := ctx.Do(node.Effect{Name: "buy", Request: item, Do: func(context.Context, string) (node.Outcome, error) {
			return node.Outcome{}, nil // the shop is called here
		}})
		if err != nil {
			return out, err
		}
		out.Bought = append(out.Bought, item)
	}
	return out, nil
}

// A node type whose model puts work into a queue.
func ExampleOrdered() {
	says := []recorded.Turn{
		{Message: convo.Message{Calls: []convo.Call{
			{Name: "add", Arguments: `"tea"`}, {Name: "add", Arguments: `"milk"`}, {Name: "add", Arguments: `"sugar"`},
		}}},
		{Message: convo.Message{Text: "That is all there was room for."}},
	}
	ctx := context.Background()
	w, err := weir.Open(weir.Options{Types: []weir.Type{weir.Func("shopping", shoppingNode)}, Replay: recorded.NewScriptedTurns(says, nil)})
	if err != nil {
		panic(err)
	}
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f, err := w.Define(weir.Definition{
		Name:    "errand",
		Nodes:   map[string]weir.NodeSpec{"shop": {Type: "shopping", In: map[string]any{"message": "Breakfast."}}},
		Outputs: map[string]any{"bought": "{{ shop.bought }}"},
	})
	if err != nil {
		panic(err)
	}
	run, err := w.Start(ctx, f, weir.Start{})
	if err != nil {
		panic(err)
	}
	r, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(weir.Output[[]any](r, "bought"))
	// Output: ["tea" "milk"] <nil>
}
