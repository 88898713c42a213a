package runnertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/runner"
)

// functions are the node type `do`: what the node of an id does.
type functions map[string]func(c *node.Ctx) error

// Spec implements node.Type.
func (functions) Spec() *flow.TypeSpec {
	return &flow.TypeSpec{
		Name: "do", Version: 1, Category: "test", Summary: "Calls a function of the test.",
		Settings: map[string]any{"type": "object", "properties": map[string]any{"call": map[string]any{"type": "string"}}},
		Ports:    flow.Ports{AnyIn: true, Out: []flow.Port{{Name: "value", Type: flow.TypeAny}}},
	}
}

// Prepare implements node.Type.
func (f functions) Prepare(with map[string]any) (node.Node, error) {
	name, _ := with["call"].(string)
	call := f[name]
	if call == nil {
		return nil, fmt.Errorf("the test has no function %q", name)
	}
	return node.NodeFunc(call), nil
}

// program compiles a flow over the built-in types and `do`.
func program(t *testing.T, text string, f functions) *runner.Program {
	t.Helper()
	c, err := node.NewCatalogue(append(builtin.Types(), f)...)
	if err != nil {
		t.Fatal(err)
	}
	fl, err := flow.Parse("test.yaml", []byte(text), c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := runner.Prepare(fl, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// give completes with a value.
func give(v engine.Value) func(*node.Ctx) error {
	return func(c *node.Ctx) error {
		c.Output("value", v)
		return nil
	}
}

// ledger counts what was asked of the outside, by idempotency key.
type ledger struct {
	mu    sync.Mutex
	asked map[string]int
}

func (l *ledger) ask(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil {
		l.asked = map[string]int{}
	}
	l.asked[key]++
}

func (l *ledger) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[key]
}

// effect asks the ledger once and returns what the effect returned.
func (l *ledger) effect(c *node.Ctx, name string) (engine.Value, error) {
	return c.Do(node.Effect{Name: name, Do: func(_ context.Context, key string) (node.Outcome, error) {
		l.ask(key)
		return node.Outcome{Value: key}, nil
	}})
}

// Open starts a Local over a store, with short times, and closes it with the
// test.
func Open(t *testing.T, s Store) *runner.Local {
	t.Helper()
	l := runner.NewLocal(runner.Options{Store: s, Lease: 3 * time.Second, Poll: 5 * time.Millisecond})
	t.Cleanup(func() { shut(t, l) })
	return l
}

func shut(t *testing.T, l *runner.Local) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}

// index is the number of the first event that is as wanted, -1 for none.
func index(commits []engine.Commit, wanted func(engine.Event) bool) int {
	i := 0
	for _, c := range commits {
		for _, e := range c.Events {
			if wanted(e) {
				return i
			}
			i++
		}
	}
	return -1
}

func started(path string) func(engine.Event) bool {
	return func(e engine.Event) bool {
		s, ok := e.(*engine.NodeStarted)
		return ok && s.Path == path
	}
}

func completed(path string) func(engine.Event) bool {
	return func(e engine.Event) bool {
		s, ok := e.(*engine.NodeCompleted)
		return ok && s.Path == path
	}
}

// last is the last event of a journal.
func last(commits []engine.Commit) engine.Event {
	c := commits[len(commits)-1]
	return c.Events[len(c.Events)-1]
}
