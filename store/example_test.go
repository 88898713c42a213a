package store_test

import (
	"context"
	"fmt"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// announcing is a store that says which events became durable. What it does not define
// itself, the store that it wraps does.
type announcing struct{ store.Store }

// Append implements store.Journal.
func (s announcing) Append(ctx context.Context, as []store.Append) []error {
	errs := s.Store.Append(ctx, as)
	for i, a := range as {
		if errs[i] != nil {
			continue
		}
		for _, e := range a.Commit.Events {
			fmt.Println(a.Commit.Seq, e.Kind())
		}
	}
	return errs
}

// A store of one's own. This one wraps another; docs/store.md says how to write a whole one,
// and package storetest checks it.
func Example() {
	ctx := context.Background()
	w, err := weir.Open(weir.Options{Store: announcing{memory.New()}})
	if err != nil {
		panic(err)
	}
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f, err := w.Parse("wait.yaml", []byte(`{weir: 1, name: wait, nodes: {ask: {type: userInput, with: {prompt: "Ready?"}}}, outputs: {said: "{{ ask.text }}"}}`))
	if err != nil {
		panic(err)
	}
	run, err := w.Start(ctx, f, weir.Start{})
	if err != nil {
		panic(err)
	}
	result, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	if err := run.Answer(ctx, result.Interrupts[0].ID, "yes"); err != nil {
		panic(err)
	}
	if result, err = run.Wait(ctx); err != nil {
		panic(err)
	}
	fmt.Println(result.Status)
	// Output:
	// 1 run.started
	// 1 node.started
	// 1 node.waiting
	// 2 interrupt.answered
	// 2 node.resumed
	// 2 node.completed
	// 2 run.completed
	// completed
}
