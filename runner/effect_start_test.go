package runner_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// journaledStarts returns the keys of the effects whose start is in the journal of a run.
func journaledStarts(t *testing.T, st runner.Store, run string) (keys []string) {
	t.Helper()
	for c, err := range st.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if s, ok := e.(*engine.EffectStarted); ok {
				keys = append(keys, s.Key)
			}
		}
	}
	return keys
}

func TestTheStartOfAnEffectThatMustNotBeRepeatedIsDurableBeforeIt(t *testing.T) {
	t.Parallel()
	for policy, want := range map[node.UnknownPolicy]int{node.UnknownRetry: 0, node.UnknownAsk: 1, node.UnknownFail: 1} {
		var tr *tree
		started := 0
		tr = newTree(t, &funcType{
			spec: flow.TypeSpec{Name: "pay", Version: 1, Ports: flow.Ports{Out: []flow.Port{{Name: "out", Type: flow.TypeAny}}}},
			run: func(c *node.Ctx) error {
				_, err := c.Do(node.Effect{Name: "pay", Request: "1 EUR", Unknown: policy, Do: func(context.Context, string) (node.Outcome, error) {
					started = len(journaledStarts(t, tr.store, "r"))
					return node.Outcome{Value: "paid"}, nil
				}})
				c.Output("out", "paid")
				return err
			},
		})
		p := tr.add("a", "nodes:\n  a: {type: pay}\noutputs: {v: \"{{ a.out }}\"}\n")
		x, err := tr.local.Start(t.Context(), p, runner.StartOptions{ID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		if r := tr.wait(x); r.Status != engine.Completed || started != want {
			t.Errorf("policy %v: the run is %s, and %d starts were durable when the effect ran, want %d", policy, r.Status, started, want)
		}
	}
}

func TestMessagesOfAChildRunHaveIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.add("a", "nodes:\n  a: {type: template, with: {text: x}}\noutputs: {out: \"{{ a.text }}\"}\n")
	p := tr.add("b", wrapFlow("a"))
	if r := tr.wait(tr.start(p)); r.Status != engine.Completed {
		t.Fatalf("the run is %s", r.Status)
	}
	children := 0
	for _, row := range tr.runs() {
		for c, err := range tr.store.Commits(t.Context(), row.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			s, ok := c.Events[0].(*engine.RunStarted)
			if !ok {
				continue
			}
			want := ""
			if s.Parent != "" {
				children++
				want = row.ID + "/"
			}
			if s.MessagePrefix != want {
				t.Errorf("ids of messages of run %s begin with %q, want %q", row.ID, s.MessagePrefix, want)
			}
		}
	}
	if children != 1 {
		t.Errorf("there are %d child runs", children)
	}
}

// seizedStore is a store in which another process has acquired every run.
type seizedStore struct{ *memory.Store }

func (s *seizedStore) Renew(_ context.Context, leases []store.Lease, _ time.Duration) (lost []string, err error) {
	for _, l := range leases {
		lost = append(lost, l.Run)
	}
	return lost, nil
}

func TestARunWhoseLeaseIsLostEndsWithoutACommit(t *testing.T) {
	t.Parallel()
	l := runner.NewLocal(runner.Options{Store: &seizedStore{memory.New()}, Lease: 30 * time.Millisecond})
	x, err := l.Start(t.Context(), eventsProgram(t), runner.StartOptions{ID: "r"}) // it waits for an hour
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := x.Wait(ctx); !errors.Is(err, store.ErrFenced) {
		t.Errorf("it ends with %v", err)
	}
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}
