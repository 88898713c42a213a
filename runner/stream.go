package runner

import (
	"context"
	"iter"
	"slices"
)

// Items yields the run's events from the one after number `after` on, first
// from the journal, then as they become durable, with live output between
// them, until the execution ends or ctx does. What is being streamed when the
// reader comes begins with a snapshot of it so far. A reader that falls behind is
// never waited for: it misses live output, which an Item with Gap says, and no event.
func (x *Execution) Items(ctx context.Context, after int64) iter.Seq2[Item, error] {
	return x.items(ctx, after, false)
}

// Tree is Items with what is seen of the runs below, as far as this process
// drives them: theirs is live only, from now on, and may be missed.
func (x *Execution) Tree(ctx context.Context, after int64) iter.Seq2[Item, error] {
	x.hub.watches()
	return x.items(ctx, after, true)
}

func (x *Execution) items(ctx context.Context, after int64, tree bool) iter.Seq2[Item, error] {
	a := x.hub.join(x.local.clock.now())
	return func(yield func(Item, error) bool) {
		r := &reader{x: x, last: after, pos: a.pos, tree: tree}
		if r.earlier(ctx, &a, yield) {
			r.live(ctx, yield)
		}
	}
}

// publishUp shows the runs above what is seen of this one.
func (x *Execution) publishUp(items ...Item) {
	for p := x.bond.parent; p != nil; p = p.bond.parent {
		if !p.hub.watched() {
			continue
		}
		of := slices.Clone(items)
		for i := range of {
			of[i].Run = x.ID
		}
		p.hub.publish(of...)
	}
}

type reader struct {
	x    *Execution
	tree bool
	last int64 // number of the last event yielded
	pos  uint64
}

// earlier yields what was before the reader came: what was kept for it, where
// that goes back far enough, else what is durable and what is being streamed.
func (r *reader) earlier(ctx context.Context, a *arrival, yield func(Item, error) bool) bool {
	i := slices.IndexFunc(a.early, func(it Item) bool { return it.Event != nil })
	if i < 0 || a.early[i].Number > r.last+1 {
		return r.journal(ctx, a.last, yield) && r.snapshots(a.live, yield)
	}
	for _, it := range a.early {
		if r.fresh(it) && !yield(it, nil) {
			return false
		}
	}
	return true
}

func (r *reader) snapshots(live []Item, yield func(Item, error) bool) bool {
	for _, it := range live {
		if !yield(it, nil) {
			return false
		}
	}
	return true
}

// lagged brings a reader that was too slow to where it would be if it came now.
func (r *reader) lagged(ctx context.Context, yield func(Item, error) bool) bool {
	a := r.x.hub.join(r.x.local.clock.now())
	r.pos = a.pos
	return yield(Item{At: r.x.local.clock.now(), Gap: true}, nil) && r.journal(ctx, a.last, yield) && r.snapshots(a.live, yield)
}

// journal yields what is durable and has not been yielded, up to event number to,
// 0 for all.
func (r *reader) journal(ctx context.Context, to int64, yield func(Item, error) bool) bool {
	seq := int64(0)
	for c, err := range r.x.local.o.Store.Commits(ctx, r.x.ID, seq) {
		if err != nil {
			yield(Item{}, err)
			return false
		}
		for i, e := range c.Events {
			n := c.First + int64(i)
			if n <= r.last {
				continue
			}
			if to > 0 && n > to {
				return true
			}
			r.last = n
			if !yield(Item{Number: n, At: c.At, Event: e}, nil) {
				return false
			}
		}
	}
	return true
}

func (r *reader) live(ctx context.Context, yield func(Item, error) bool) {
	buf := make([]Item, 0, 256)
	for {
		items, next, lagged, ended := r.x.hub.read(ctx, r.pos, buf[:0])
		if ended {
			if err := ctx.Err(); err != nil {
				yield(Item{}, err)
			}
			return
		}
		if lagged {
			if !r.lagged(ctx, yield) {
				return
			}
			continue
		}
		r.pos = next
		for _, it := range items {
			if r.fresh(it) && !yield(it, nil) {
				return
			}
		}
	}
}

// fresh reports whether an item is to be yielded: events that the journal gave
// already are not.
func (r *reader) fresh(it Item) bool {
	if it.Run != "" {
		return r.tree
	}
	if it.Event == nil {
		return true
	}
	if it.Number <= r.last {
		return false
	}
	r.last = it.Number
	return true
}
