package runner

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Items yields what is seen of the run and of the runs below it, from the event after
// number `after` of the run on: first events from the journals, then events as they
// become durable, with live output between them, until the execution ends or ctx does.
// Of child runs that the run was waiting for at that event it yields what is new. A
// child's events come after the event that starts it and before the report of its end.
//
// A reader is never waited for. What is being streamed when it comes begins with a
// snapshot; one that falls behind misses live output, which a Gap says, and no event.
// Where ctx ends first its error is the last element.
func (x *Execution) Items(ctx context.Context, after int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r := &reader{ctx: ctx, l: x.local, yield: yield}
		if r.after(x, after) {
			r.follow()
		}
	}
}

// Stream is Items from behind the item that has the cursor: of this execution, of an
// earlier one or of another process. Where live output since cannot be had again it
// begins with a Gap. The error is ErrCursor for what is no cursor of the run.
func (x *Execution) Stream(ctx context.Context, cursor string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		p, err := parseCursor(x.ID, cursor)
		if err != nil {
			yield(Item{}, err)
			return
		}
		r := &reader{ctx: ctx, l: x.local, yield: yield, at: *p, before: p.heard}
		if r.resume(x) {
			r.follow()
		}
	}
}

// reader follows a tree of runs. It belongs to the goroutine that iterates.
type reader struct {
	ctx    context.Context
	l      *Local
	x      *Execution // nil where only the journals are read
	yield  func(Item, error) bool
	at     position
	silent bool                 // what is read is no news
	shared bool                 // an item has at.runs
	before bool                 // there was live output before the cursor, which may not have been replaced
	heard  map[liveKey]struct{} // live output that was yielded, and nothing has replaced
}

// after brings the reader to the event of that number.
func (r *reader) after(x *Execution, number int64) bool {
	r.x = x
	a := x.hub.join(r.l.clock.now(), number == x.hub.start)
	r.at.hub, r.at.pos = a.hub, a.pos
	if a.pos == 0 && len(a.live) == 0 && number == x.hub.start && a.ends[x.ID] == number {
		r.at.runs = append([]followed{{run: x.ID, last: number}}, x.hub.below...)
		return true
	}
	r.at.runs = []followed{{run: x.ID}}
	if number > 0 {
		r.silent = true
		if !r.fill(x.ID, number, false) {
			return false
		}
		r.silent = false
		for i := range r.at.runs[1:] {
			f := &r.at.runs[i+1]
			f.last = unset
			if n, here := a.ends[f.run]; here {
				f.last = n
			}
		}
	}
	return r.replay(&a) && r.snapshots(a.live)
}

// resume brings the reader from its position to where it can follow an execution.
func (r *reader) resume(x *Execution) bool {
	r.x = x
	if x.hub.has(r.at.hub, r.at.pos) {
		return true
	}
	return r.rejoin()
}

// rejoin brings a reader that has lost its place to where it would be if it came now.
func (r *reader) rejoin() bool {
	a := r.x.hub.join(r.l.clock.now(), false)
	r.at.hub, r.at.pos = a.hub, a.pos
	return r.gap() && r.replay(&a) && r.snapshots(a.live)
}

// gap says that live output was lost, where there was some that nothing has replaced.
func (r *reader) gap() bool {
	if !r.at.heard && !r.before {
		return true
	}
	r.at.heard, r.before = false, false
	clear(r.heard)
	return r.give(Item{Run: r.at.runs[0].run, At: r.l.clock.now(), Gap: true})
}

// replay yields what the journals have, of each run as far as an arrival says.
func (r *reader) replay(a *arrival) bool {
	for i := 0; i < len(r.at.runs); i++ { // it may grow, and shrink
		f := r.at.runs[i]
		to, here := a.ends[f.run]
		if !here {
			to = lastEvent
		}
		if to > f.last && !r.fill(f.run, to, false) {
			return false
		}
	}
	return true
}

// lastEvent is after the last event of any journal.
const lastEvent = 1<<63 - 1

func (r *reader) snapshots(live []Item) bool {
	for _, it := range live {
		if r.find(it.Run) != nil && !r.give(it) {
			return false
		}
	}
	return true
}

// follow yields what the execution publishes until it ends.
func (r *reader) follow() bool {
	buf := make([]Item, 0, 256)
	for {
		items, lagged, ended := r.x.hub.read(r.ctx, r.at.pos, buf[:0])
		switch {
		case r.ctx.Err() != nil:
			r.yield(Item{}, r.ctx.Err())
			return false
		case ended:
			// What children have that ended or rest elsewhere.
			return r.replay(&arrival{ends: map[string]int64{r.x.ID: r.x.hub.end()}})
		case lagged:
			r.before = true
			if !r.rejoin() {
				return false
			}
			continue
		}
		for pos := r.at.pos; len(items) > 0; items = items[1:] {
			pos++
			if r.at.pos != pos-1 { // it has rejoined
				break
			}
			r.at.pos = pos
			if !r.item(items[0]) {
				return false
			}
		}
	}
}

// item takes an item as it was published.
func (r *reader) item(it Item) bool {
	f := r.find(it.Run)
	switch {
	case it.attached && f == nil:
		return true
	case it.attached && f.last == unset:
		r.set(it.Run, func(f *followed) { f.last = it.Number })
		return true
	case it.attached && f.last > it.Number: // it was read further than where its live output begins
		r.before = true
		return r.rejoin()
	case it.attached:
		return r.fill(it.Run, it.Number, false)
	case f == nil:
		return true
	case it.Event == nil:
		return r.give(it)
	case it.Number <= f.last:
		return true
	case it.Number > f.last+1 && !r.fill(it.Run, it.Number-1, false):
		return false
	}
	return r.event(it)
}

// fill yields the events of a run that are not yielded yet from its journal, up to a
// number, or up to the one that ends it.
func (r *reader) fill(run string, to int64, end bool) bool {
	f := r.find(run)
	if f == nil || f.last == unset {
		return true
	}
	for c, err := range r.l.o.Store.Commits(r.ctx, run, f.seq) {
		if errors.Is(err, store.ErrNotFound) && run != r.at.runs[0].run { // it has not begun, or was deleted
			return true
		}
		if err != nil {
			r.yield(Item{}, err)
			return false
		}
		if more, done := r.commit(run, &c, to, end); done || !more {
			return more
		}
		r.set(run, func(f *followed) { f.seq = c.Seq })
	}
	return true
}

// commit yields the events of a commit that are not yielded yet; done says that no later
// ones are to be.
func (r *reader) commit(run string, c *engine.Commit, to int64, end bool) (more, done bool) {
	for i, e := range c.Events {
		n := c.First + int64(i)
		if n > to {
			return true, true
		}
		if n <= r.find(run).last {
			continue
		}
		if !r.event(Item{Run: run, Number: n, At: c.When(i), Event: e, seq: c.Seq}) {
			return false, true
		}
		if end && terminal(e) {
			return true, true
		}
	}
	return true, false
}

// event yields the next event of a run, and notes the children that it starts or ends.
func (r *reader) event(it Item) bool {
	rep, reported := it.Event.(*engine.ChildReported)
	if reported = reported && rep.Status.Ended(); reported {
		if f := r.find(rep.Run); f != nil && !f.ended && !r.fill(rep.Run, lastEvent, true) {
			return false
		}
	}
	r.set(it.Run, func(f *followed) {
		f.last, f.seq = it.Number, max(f.seq, it.seq-1)
		if _, note := it.Event.(*engine.NoteRecorded); !note {
			f.ended = terminal(it.Event)
		}
	})
	if reported && rep.Status != engine.Failed { // one that failed can be made to go on
		r.drop(rep.Run)
	}
	if e, ok := it.Event.(*engine.NodeWaiting); ok {
		above := r.find(it.Run).above
		for _, i := range e.Interrupts {
			if i.Child != nil && r.find(i.Child.Run) == nil {
				r.own()
				r.at.runs = append(r.at.runs, followed{run: i.Child.Run, above: above + e.Path + ">", parent: it.Run})
			}
		}
	}
	return r.give(it)
}

func (r *reader) find(run string) *followed {
	for i := range r.at.runs {
		if r.at.runs[i].run == run {
			return &r.at.runs[i]
		}
	}
	return nil
}

// set changes what is known of a run.
func (r *reader) set(run string, change func(*followed)) {
	r.own()
	if f := r.find(run); f != nil {
		change(f)
	}
}

// own makes at.runs the reader's alone.
func (r *reader) own() {
	if r.shared {
		r.at.runs, r.shared = slices.Clone(r.at.runs), false
	}
}

// drop forgets a run and those below it.
func (r *reader) drop(run string) {
	r.own()
	gone := map[string]bool{run: true}
	r.at.runs = slices.DeleteFunc(r.at.runs, func(f followed) bool { // parents come before children
		if gone[f.parent] {
			gone[f.run] = true
		}
		return gone[f.run]
	})
}

// give yields an item, unless it is no news.
func (r *reader) give(it Item) bool {
	if r.silent {
		return true
	}
	it.Above = r.find(it.Run).above
	r.hear(&it)
	at := r.at
	it.from, r.shared = &at, true
	return r.yield(it, nil)
}

// hear notes what live output the reader's user has that nothing has replaced.
func (r *reader) hear(it *Item) {
	k := liveKey{it.Run, it.Path, it.Effect}
	switch e := it.Event.(type) {
	case nil:
		switch {
		case it.Retracted:
			delete(r.heard, k)
		case it.Chunk != nil:
			if r.heard == nil {
				r.heard = make(map[liveKey]struct{})
			}
			r.heard[k] = struct{}{}
		}
	case *engine.EffectCompleted:
		path, _ := cutLast(e.Key, '/')
		delete(r.heard, liveKey{it.Run, path, e.Key})
	case *engine.NodeCompleted:
		delete(r.heard, liveKey{it.Run, e.Path, ""})
	default:
		return
	}
	r.at.heard = r.before || len(r.heard) > 0
}
