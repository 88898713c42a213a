package runner_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// TestNodeOfAChainTakesFewAllocations counts the allocations of chains of 200 and of 2,000 nodes
// in memory: what a node takes must not depend on the length of the chain.
func TestNodeOfAChainTakesFewAllocations(t *testing.T) {
	const maxPure, maxOther = 5, 9
	pass := func(weir.Ctx, struct{}) (struct{}, error) { return struct{}{}, nil }
	w := weirkit.Open(t, weir.Options{Types: []weir.Type{weir.Func("pure", pass).Inline().Pure(), weir.Func("spawn", pass)}})
	for typ, most := range map[string]float64{"pure": maxPure, "spawn": maxOther} {
		perNode := func(n int) float64 {
			var nodes strings.Builder
			for i := range n {
				fmt.Fprintf(&nodes, "  n%d: {type: %s, after: n%d}\n", i+1, typ, i)
			}
			f := weirkit.Parse(t, w, "weir: 1\nname: chain\nnodes:\n  n0: {type: "+typ+"}\n"+nodes.String())
			weirkit.RunToEnd(t, w, f)
			least := math.Inf(1) // other goroutines of the process allocate too
			for range 3 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				weirkit.RunToEnd(t, w, f)
				runtime.ReadMemStats(&after)
				least = min(least, float64(after.Mallocs-before.Mallocs)/float64(n))
			}
			return least
		}
		few, many := perNode(200), perNode(2000)
		t.Logf("%s: %.1f allocations a node of 200, %.1f of 2,000", typ, few, many)
		if many > most || many > few+1 {
			t.Errorf("%s: %.1f allocations a node of 200, %.1f of 2,000; at most %v are allowed", typ, few, many, most)
		}
	}
}

// heldModel answers when it is released.
type heldModel struct {
	waiting atomic.Int64
	all     chan struct{} // closed when as many calls wait as are expected
	expect  int64
	release chan struct{}
}

func (h *heldModel) Generate(_ context.Context, _ *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	if h.waiting.Add(1) == h.expect {
		close(h.all)
	}
	<-h.release
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "yes"}}, nil
}

// memoryInUse returns how many bytes the stacks of all goroutines and the heap have, once
// collections have halved the stacks of which a quarter or less is used.
func memoryInUse() (stacks, heap int64) {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse), int64(m.HeapAlloc)
}

// TestWaitingModelCallTakesTwoGoroutines counts the goroutines of runs that wait for a model,
// and the memory that they keep, in both kinds of stores. The heap includes the rows of the
// runs in the memory store.
func TestWaitingModelCallTakesTwoGoroutines(t *testing.T) {
	t.Run("memory", func(t *testing.T) { checkWaitingModelCalls(t, weir.Options{}) })
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkWaitingModelCalls(t, weir.Options{Store: s})
	})
}

func checkWaitingModelCalls(t *testing.T, o weir.Options) {
	t.Helper()
	const runs, most, margin, maxStack, maxHeap = 500, 2, 60, 16 << 10, 23 << 10
	m := &heldModel{all: make(chan struct{}), expect: runs, release: make(chan struct{})}
	o.Providers = map[string]weir.Provider{"p": m}
	w := weirkit.Open(t, o)
	f := weirkit.Parse(t, w, "weir: 1\nname: asks\ncontext: {model: p/m}\nnodes: {a: {type: llmRequest, in: {message: hello}}}\n")
	before := runtime.NumGoroutine()
	stacks, heap := memoryInUse()
	var all []*weir.Run
	for range runs {
		run, err := w.Start(t.Context(), f, weir.Start{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, run)
	}
	<-m.all
	if n := runtime.NumGoroutine() - before; n > most*runs+margin {
		t.Errorf("%d runs that wait for a model take %d goroutines; at most %d each are allowed", runs, n, most)
	}
	stacksThen, heapThen := memoryInUse()
	perRun, kept := (stacksThen-stacks)/runs, (heapThen-heap)/runs
	t.Logf("stacks of %d B and %d B of the heap for each run that waits", perRun, kept)
	if perRun > maxStack && !testing.Short() { // the race detector needs more
		t.Errorf("the stacks of a run that waits take %d B; at most %d are allowed", perRun, maxStack)
	}
	if kept > maxHeap && !testing.Short() {
		t.Errorf("a run that waits keeps %d B of the heap; at most %d are allowed", kept, maxHeap)
	}
	close(m.release)
	for _, run := range all {
		weirkit.Wait(t, run)
	}
}
