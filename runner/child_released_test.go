package runner_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

const askAndHoldFlow = `
weir: 1
name: ask-and-hold
nodes:
  talk: {type: flow, with: {flow: asks}}
  hold: {type: hold}
outputs: {said: "{{ talk.said }}"}
`

const asksFlow = `
weir: 1
name: asks
nodes:
  ask: {type: userInput, with: {prompt: "What?"}}
  work: {type: work, after: ask}
outputs: {said: "{{ ask.text }}"}
`

// unreadInboxStore is that of a process which never reads the messages to its runs in time.
type unreadInboxStore struct{ weirkit.SharedMemory }

func (unreadInboxStore) PostsForOwner(context.Context, string) ([]store.Post, error) { return nil, nil }

// latePostStore is that of a process whose messages to runs are stored after the owner has released the run.
type latePostStore struct {
	weirkit.SharedMemory
	before func()
}

func (s latePostStore) Post(ctx context.Context, p store.Post) error {
	s.before()
	return s.SharedMemory.Post(ctx, p)
}

// A child is answered by its own id while another process executes its parent, and that process then releases the
// parent without having read that the child continues.
func TestChildAnsweredWhileItsParentIsReleasedContinues(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"after the message": false, "before the message": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answerWhileReleased(t, late)
		})
	}
}

func answerWhileReleased(t *testing.T, late bool) {
	t.Helper()
	shared, hold := weirkit.SharedMemory{Store: memory.New()}, make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	first := openHolding(t, unreadInboxStore{shared}, hold)
	second := openHolding(t, latePostStore{shared, func() {
		if late {
			release()
			awaitRow(t, shared, "r", func(r store.Run) bool { return r.Owner == "" })
		}
	}}, hold)
	f, err := first.Parse("main.yaml", []byte(askAndHoldFlow), weirkit.Parse(t, first, asksFlow))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Start(t.Context(), f, weir.Start{ID: "r"}); err != nil {
		t.Fatal(err)
	}
	child := awaitRow(t, shared, childOf(t, shared, "r"), func(r store.Run) bool { return r.Head.Status == engine.Paused && r.Owner == "" })
	run, err := second.Answer(t.Context(), child.ID, child.Head.Waiting[0].ID, "well", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil && !errors.Is(err, store.ErrOwned) {
		t.Fatal(err)
	}
	release()
	awaitRow(t, shared, child.ID, func(r store.Run) bool { return r.Head.Status == engine.Completed })
	awaitRow(t, shared, "r", func(r store.Run) bool { return r.Head.Status == engine.Completed })
}

func openHolding(t *testing.T, s weir.Store, hold chan struct{}) *weir.Weir {
	t.Helper()
	return weirkit.Open(t, weir.Options{Store: s, Types: []weir.Type{
		weir.Func("hold", func(ctx weir.Ctx, _ struct{}) (struct{}, error) {
			select {
			case <-hold:
				return struct{}{}, nil
			case <-ctx.Done():
				return struct{}{}, ctx.Err()
			}
		}),
		weir.Func("work", func(weir.Ctx, struct{}) (struct{}, error) { return struct{}{}, nil }),
	}})
}

// childOf waits until a run has a child run and returns its id.
func childOf(t *testing.T, s store.Store, run string) string {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		ids, err := s.FindRunIDs(t.Context(), run+".")
		if err == nil && len(ids) > 0 {
			return ids[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %s has no child: %v", run, err)
		}
		<-time.After(time.Millisecond)
	}
}

// awaitRow waits until the row of a run is as wanted.
func awaitRow(t *testing.T, s store.Store, run string, wanted func(store.Run) bool) store.Run {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		row, err := s.Run(t.Context(), run)
		if err == nil && wanted(row) {
			return row
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %s is %s, owner %q: %v", run, row.Head.Status, row.Owner, err)
		}
		<-time.After(time.Millisecond)
	}
}
