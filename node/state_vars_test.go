package node_test

import (
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
)

// TestExpressionsReadTheStateWithoutCopyingIt bounds the allocations of expressions over a list of the state, which a copy
// would exceed, and checks that State gives a node a copy which it may change.
func TestExpressionsReadTheStateWithoutCopyingIt(t *testing.T) {
	const elements = 20_000
	list := make([]any, elements)
	for i := range list {
		list[i] = map[string]any{"n": int64(i)}
	}
	none := func(string) flow.Reducer { return flow.ReduceNone }
	ctx := node.NewCtx(t.Context(), node.Info{}, nil, node.NewState(engine.State{}, none), nil)
	if err := ctx.State().Update(map[string]any{"list": list, "object": map[string]any{"list": list}}); err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{"state.list", "size(state.list)", "state.list[5].n", "has(state.list)", "size(state.object.list)", "state.list.size() > 5"} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		allocs := testing.AllocsPerRun(3, func() {
			if _, err := p.Eval(&ctx); err != nil {
				t.Error(err)
			}
		})
		if allocs > elements/10 {
			t.Errorf("%s made %v allocations for a list of %d elements", src, allocs, elements)
		}
	}
	own, _ := ctx.State().Get("list")
	own.([]any)[0] = "changed"
	if again, _ := ctx.State().Get("list"); again.([]any)[0] == "changed" {
		t.Error("a change of a copy reached the state")
	}
}
