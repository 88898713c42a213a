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

// funcType are the node type `do`: what the node of an id does.
type funcType map[string]func(c *node.Ctx) error

// Spec implements node.Type.
func (funcType) Spec() *flow.TypeSpec {
	return &flow.TypeSpec{
		Name: "do", Version: 1, Category: "test", Summary: "Calls a function of the test.",
		Settings: map[string]any{"type": "object", "properties": map[string]any{"call": map[string]any{"type": "string"}}},
		Ports:    flow.Ports{AnyIn: true, Out: []flow.Port{{Name: "value", Type: flow.TypeAny}}},
	}
}

// Prepare implements node.Type.
func (f funcType) Prepare(with map[string]any) (node.Node, error) {
	name, _ := with["call"].(string)
	call := f[name]
	if call == nil {
		return nil, fmt.Errorf("the test has no function %q", name)
	}
	return node.NodeFunc(call), nil
}

// program compiles a flow over the built-in types and `do`.
func program(t *testing.T, text string, f funcType) *runner.Program {
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

// completeWith completes with a value.
func completeWith(v engine.Value) func(*node.Ctx) error {
	return func(c *node.Ctx) error {
		c.Output("value", v)
		return nil
	}
}

// effectLog counts what was asked of the outside, by idempotency key.
type effectLog struct {
	mu    sync.Mutex
	asked map[string]int
}

func (l *effectLog) recordEffect(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil {
		l.asked = map[string]int{}
	}
	l.asked[key]++
}

func (l *effectLog) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[key]
}

// runEffect asks the ledger once and returns what the effect returned.
func (l *effectLog) runEffect(c *node.Ctx, name string) (engine.Value, error) {
	return c.Do(node.Effect{Name: name, Do: func(_ context.Context, key string) (node.Outcome, error) {
		l.recordEffect(key)
		return node.Outcome{Value: key}, nil
	}})
}

// Open starts a Local over a store, with short times, and closes it with the
// test.
func Open(t *testing.T, s Store) *runner.Local {
	t.Helper()
	l := runner.NewLocal(runner.Options{Store: s, Lease: 3 * time.Second, Poll: 5 * time.Millisecond})
	t.Cleanup(func() { closeLocal(t, l) })
	return l
}

func closeLocal(t *testing.T, l *runner.Local) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}

// eventIndex returns the number of the first event that is as wanted, -1 for none.
func eventIndex(commits []engine.Commit, wanted func(engine.Event) bool) int {
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

// lastEvent returns the last event of a journal.
func lastEvent(commits []engine.Commit) engine.Event {
	c := commits[len(commits)-1]
	return c.Events[len(c.Events)-1]
}
