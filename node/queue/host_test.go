package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/queue"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// queueType returns a node type whose model puts errands into a queue, which are run then.
func queueType(capacity int) weir.Type {
	type in struct{ Message string }
	type out struct{ Ran []string }
	return weir.Func("errand", func(ctx weir.Ctx, i in) (out, error) {
		m, err := ctx.Context()
		if err != nil {
			return out{}, err
		}
		q := queue.New[string](capacity)
		add := &tool.Tool{Name: "add", Call: func(_ context.Context, c tool.Call) (string, error) {
			if err := q.Add(c.Arguments); err != nil {
				return "", err
			}
			return fmt.Sprintf("number %d", q.Len()), nil
		}}
		slow, asks := ctx.Tools().Get("slow"), ctx.Tools().Get("asks")
		h := queue.Ordered(ctx, ctx.LLMHost(), add)
		for range 2 { // indexes continue from turn to turn
			turn := llm.Turn{Context: m, Message: &convo.Message{Text: i.Message}, Tools: []*tool.Tool{add, slow, asks}, EarlierToolCalls: h.Calls()}
			if _, err := ctx.LLM().Turn(ctx, h, turn); err != nil {
				return out{}, node.ModelError(err)
			}
		}
		o := out{Ran: []string{}}
		for e, ok := q.Next(); ok; e, ok = q.Next() {
			o.Ran = append(o.Ran, e)
		}
		return o, nil
	}).WritesContext()
}

// drawScript returns what the model says, what is run because of it, and what the model gets
// of its calls.
func drawScript(names [][]string, capacity int) (script []weirtest.Turn, want []any, results []string) {
	want = []any{}
	for turn, list := range names {
		var m convo.Message
		for i, name := range list {
			args := fmt.Sprintf(`{"n":%d}`, turn*10+i)
			m.Calls = append(m.Calls, convo.Call{Name: name, Arguments: args})
			switch {
			case name != "add":
				results = append(results, "slow")
			case len(want) < capacity:
				want = append(want, args)
				results = append(results, fmt.Sprintf("number %d", len(want)))
			default:
				results = append(results, fmt.Sprintf("the queue is full: its capacity is %d entries, %[1]d are waiting, and 1 more do not fit", capacity))
			}
		}
		script = append(script, weirtest.Turn{Message: m}, weirtest.Says("done")[0])
	}
	return script, want, results
}

// Calls of one answer end in any order, some wait for a person so that the node is
// entered again, and a queue that is short of room takes those that were called
// first, every time.
func TestOrderedToolCallsKeepTheModelsOrder(t *testing.T) {
	t.Parallel()
	yields := func(context.Context, tool.Call) (string, error) {
		for range rand.IntN(20) {
			runtime.Gosched()
		}
		return "slow", nil
	}
	rapid.Check(t, func(rt *rapid.T) {
		capacity := rapid.IntRange(1, 6).Draw(rt, "capacity")
		names := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"add", "slow", "asks"}), 1, 8), 2, 2).Draw(rt, "calls")
		script, want, results := drawScript(names, capacity)
		r := weirtest.Node(t, queueType(capacity), weirtest.Case{
			In: map[string]any{"message": "Go."}, Script: script, Answers: map[string]any{"node": "approve"},
			Tools: []*tool.Tool{{Name: "slow", Call: yields}, {Name: "asks", Approve: tool.ApproveAlways, Call: yields}},
		})
		if r.Status != engine.Completed || !reflect.DeepEqual(r.Outputs["ran"], want) {
			rt.Fatalf("the run %s with %v, expected %v: %v", r.Status, r.Outputs, want, r.Error)
		}
		var got []string
		for _, m := range r.Messages {
			if m.Role == convo.Tool {
				got = append(got, m.Text)
			}
		}
		if !reflect.DeepEqual(got, results) {
			rt.Fatalf("the model received %q, expected %q", got, results)
		}
	})
}
