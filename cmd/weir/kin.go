package main

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// kin follows a run together with its child runs, and theirs. What is seen of a
// child names the child as its Run and has the path of its node and ">" before its
// own Path; events have that alone as their Path.
type kin struct {
	desk  *desk
	items chan<- runner.Item
}

// child is a child run that goes on.
type child struct {
	run   string
	above string        // what stands before its paths: "review>"
	last  int64         // number of the last event that was seen
	stop  chan struct{} // closed once its end is known, or nobody follows any more
	done  chan struct{} // closed once it is not followed any more
	below map[string]*child
}

// grace is how long what a child has left to say is waited for once its end is
// known.
const grace = time.Second

// follow passes on what is seen of a run, "" for the one at the root, until its
// source ends. open are its children that go on, which it keeps.
func (k *kin) follow(ctx context.Context, source iter.Seq2[runner.Item, error], run, above string, open map[string]*child) error {
	for _, id := range slices.Sorted(maps.Keys(open)) {
		k.begin(ctx, open[id])
	}
	defer func() {
		for _, id := range slices.Sorted(maps.Keys(open)) {
			k.end(open[id])
		}
	}()
	for it, err := range source {
		if err != nil {
			return err
		}
		k.heed(ctx, it.Event, above, open)
		it.Run, it.Path = run, above+it.Path
		k.items <- it
	}
	return nil
}

// heed begins to follow the children that an event begins, and ends that of those
// whose end it tells.
func (k *kin) heed(ctx context.Context, e engine.Event, above string, open map[string]*child) {
	switch e := e.(type) {
	case *engine.NodeWaiting:
		for _, i := range e.Interrupts {
			if i.Child != nil && open[i.Child.Run] == nil {
				c := &child{run: i.Child.Run, above: above + e.Path + ">"}
				open[c.run] = c
				k.begin(ctx, c)
			}
		}
	case *engine.ChildReported:
		if c := open[e.Run]; c != nil && e.Status.Ended() {
			k.end(c)
			delete(open, e.Run)
		}
	}
}

// begin follows a child until its end.
func (k *kin) begin(ctx context.Context, c *child) {
	c.stop, c.done = make(chan struct{}), make(chan struct{})
	stop := c.stop // the goroutine below may outlive this following
	if c.below == nil {
		c.below = make(map[string]*child)
	}
	go func() {
		defer close(c.done)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-stop:
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(grace):
				cancel()
			case <-ctx.Done():
			}
		}()
		for k.attend(ctx, c) {
		}
	}()
}

// end waits until a child is not followed any more.
func (k *kin) end(c *child) {
	close(c.stop)
	<-c.done
}

// attend follows one execution of a child, or looks for it; false is the end.
func (k *kin) attend(ctx context.Context, c *child) bool {
	over := false
	select {
	case <-c.stop:
		over = true
	case <-ctx.Done():
		return false
	default:
	}
	source := k.journal(ctx, c.run, c.last)
	if run := k.desk.Driven(c.run); run != nil {
		source = run.EventsAfter(ctx, c.last)
	} else if !over {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-c.stop:
		}
		return true
	}
	counted := func(yield func(runner.Item, error) bool) {
		for it, err := range source {
			c.last = max(c.last, it.Number)
			if !yield(it, err) {
				return
			}
		}
	}
	if k.follow(ctx, counted, c.run, c.above, c.below) != nil {
		return false // what is durable is in the record
	}
	return !over
}

// journal yields the events of a run after number last that are durable.
func (k *kin) journal(ctx context.Context, run string, last int64) iter.Seq2[runner.Item, error] {
	return func(yield func(runner.Item, error) bool) {
		for c, err := range k.desk.store.Commits(ctx, run, 0) {
			if err != nil {
				yield(runner.Item{}, err)
				return
			}
			for i, e := range c.Events {
				if n := c.First + int64(i); n > last && !yield(runner.Item{Number: n, At: whenOf(&c, i), Event: e}, nil) {
					return
				}
			}
		}
	}
}

// openChildren are the child runs that a run waits for, and theirs, of which what
// was is no news.
func (d *desk) openChildren(ctx context.Context, r *engine.Run, above string) (map[string]*child, error) {
	open := make(map[string]*child)
	for _, c := range r.OpenChildren() {
		v, err := d.Inspect(ctx, c.Start.Run, 0)
		if errors.Is(err, store.ErrNotFound) { // it is about to begin
			continue
		}
		if err != nil {
			return nil, err
		}
		x := &child{run: c.Start.Run, above: above + c.Node + ">", last: v.Run.Events()}
		if x.below, err = d.openChildren(ctx, v.Run, x.above); err != nil {
			return nil, err
		}
		open[x.run] = x
	}
	return open, nil
}
