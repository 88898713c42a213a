package runner

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

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
		if r.findEvent(x, after) {
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
		r := &reader{ctx: ctx, l: x.local, yield: yield, at: *p, liveBefore: p.sawLive}
		if r.resume(x) {
			r.follow()
		}
	}
}

// reader follows a tree of runs. It belongs to the goroutine that iterates.
type reader struct {
	ctx        context.Context
	l          *Local
	x          *Execution // nil where only the journals are read
	yield      func(Item, error) bool
	at         position
	poll       time.Duration        // the longest pause between two reads
	skipping   bool                 // what is read is no news
	runsShared bool                 // an item has at.runs
	liveBefore bool                 // there was live output before the cursor, which may not have been replaced
	liveSeen   map[liveKey]struct{} // live output that was yielded, and nothing has replaced
	remote     *remoteText          // nil unless other processes execute the runs and their live text is followed
}

// findEvent brings the reader to the event of that number.
func (r *reader) findEvent(x *Execution, number int64) bool {
	r.x = x
	a := x.hub.subscribe(r.l.clock.now(), number == x.hub.start)
	if a.pos == 0 && len(a.live) == 0 && number == x.hub.start && a.lastEvents[x.ID] == number {
		r.at.runs = append([]runPosition{{run: x.ID, last: number}}, x.hub.children...)
		r.at.hub, r.at.pos = a.hub, a.pos
		return true
	}
	r.at.runs = []runPosition{{run: x.ID}}
	if number > 0 {
		r.skipping = true
		if !r.yieldJournal(x.ID, number, false) {
			return false
		}
		r.skipping = false
		for i := range r.at.runs[1:] {
			f := &r.at.runs[i+1]
			f.last = lastUnknown
			if n, here := a.lastEvents[f.run]; here {
				f.last = n
			}
		}
	}
	return r.catchUp(&a)
}

// catchUp yields what there was before the reader subscribed. Until it has, the cursors of
// items name no position of the hub: who resumes from one of them has to catch up as well.
func (r *reader) catchUp(a *subscription) bool {
	if !r.replay(a) || !r.yieldSnapshots(a.live) {
		return false
	}
	r.at.hub, r.at.pos = a.hub, a.pos
	return true
}

// resume brings the reader from its position to where it can follow an execution.
func (r *reader) resume(x *Execution) bool {
	r.x, r.remote = x, nil
	if x.hub.has(r.at.hub, r.at.pos) {
		return true
	}
	return r.rejoin()
}

// rejoin brings a reader that has lost its place to where it would be if it came now.
func (r *reader) rejoin() bool {
	a, ok := r.subscribe()
	return ok && r.yieldGap() && r.catchUp(&a)
}

// subscribe subscribes to the execution, once it has published what the reader has from the journals: live output of
// before would come after the events that complete or void it.
func (r *reader) subscribe() (subscription, bool) {
	for {
		a := r.x.hub.subscribe(r.l.clock.now(), false)
		if !r.aheadOf(&a) {
			return a, true
		}
		_, _, ended := r.x.hub.read(r.ctx, a.pos, make([]Item, 0, 1))
		if r.ctx.Err() != nil {
			r.yield(Item{}, r.ctx.Err())
			return a, false
		}
		if ended {
			a.live = nil
			return a, true
		}
	}
}

// aheadOf reports whether the reader has an event that was not published when it subscribed.
func (r *reader) aheadOf(a *subscription) bool {
	return slices.ContainsFunc(r.at.runs, func(f runPosition) bool {
		n, here := a.lastEvents[f.run]
		return here && f.last > n
	})
}

// yieldGap leaves the reader without a position in a hub: what it yields next is from the journals, which are ahead of any.
// It says that live output was lost, where there was some that nothing has replaced.
func (r *reader) yieldGap() bool {
	r.at.hub, r.at.pos = "", 0
	if !r.at.sawLive && !r.liveBefore {
		return true
	}
	r.at.sawLive, r.liveBefore = false, false
	clear(r.liveSeen)
	return r.yieldItem(Item{Run: r.at.runs[0].run, At: r.l.clock.now(), Gap: true})
}

// replay yields what the journals have, of each run as far as an arrival says.
func (r *reader) replay(a *subscription) bool {
	for i := 0; i < len(r.at.runs); i++ { // it may grow, and shrink
		f := r.at.runs[i]
		to, here := a.lastEvents[f.run]
		if !here {
			to = lastEvent
		}
		if to > f.last && !r.yieldJournal(f.run, to, false) {
			return false
		}
	}
	return true
}

// lastEvent is after the last event of any journal.
const lastEvent = 1<<63 - 1

func (r *reader) yieldSnapshots(live []Item) bool {
	for _, it := range live {
		if r.runPosition(it.Run) != nil && !r.yieldItem(it) {
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
			return r.replay(&subscription{lastEvents: map[string]int64{r.x.ID: r.x.hub.lastPublished()}})
		case lagged:
			r.liveBefore = true
			if !r.rejoin() {
				return false
			}
			continue
		}
		for pos := r.at.pos + 1; len(items) > 0 && r.at.pos == pos-1; pos++ { // another position: it has rejoined
			it := items[0]
			it.pos, items = pos, items[1:]
			if !r.yieldPublished(it) {
				return false
			}
			r.at.pos = max(r.at.pos, pos)
		}
	}
}

// yieldPublished takes an item as it was published. What it yields from the journals before
// the item itself has the position before the item.
func (r *reader) yieldPublished(it Item) bool {
	f := r.runPosition(it.Run)
	switch {
	case it.attached && f == nil:
		return true
	case it.attached && f.last == lastUnknown:
		r.updateRun(it.Run, func(f *runPosition) { f.last = it.Number })
		return true
	case it.attached && f.last > it.Number: // it was read further than where its live output begins
		r.liveBefore = true
		return r.rejoin()
	case it.attached:
		return r.yieldJournal(it.Run, it.Number, false)
	case f == nil:
		return true
	case it.Event == nil:
		return r.yieldItem(it)
	case it.Number <= f.last:
		return true
	case it.Number > f.last+1 && !r.yieldJournal(it.Run, it.Number-1, false):
		return false
	}
	return r.yieldEvent(it)
}

// yieldJournal yields the events of a run that are not yielded yet from its journal, up to a
// number, or up to the one that ends it.
func (r *reader) yieldJournal(run string, to int64, end bool) bool {
	f := r.runPosition(run)
	if f == nil || f.last == lastUnknown {
		return true
	}
	for c, err := range r.l.store.Commits(r.ctx, run, f.seq) {
		if errors.Is(err, store.ErrNotFound) && run != r.at.runs[0].run { // it has not begun, or was deleted
			return true
		}
		if err != nil {
			r.yield(Item{}, err)
			return false
		}
		if more, done := r.yieldCommit(run, &c, to, end); done || !more {
			return more
		}
		r.updateRun(run, func(f *runPosition) { f.seq = c.Seq })
	}
	return true
}

// yieldCommit yields the events of a commit that are not yielded yet; done says that no later
// ones are to be.
func (r *reader) yieldCommit(run string, c *engine.Commit, to int64, end bool) (more, done bool) {
	for i, e := range c.Events {
		n := c.First + int64(i)
		if n > to {
			return true, true
		}
		if n <= r.runPosition(run).last {
			continue
		}
		if !r.yieldEvent(Item{Run: run, Number: n, At: c.When(i), Event: e, seq: c.Seq}) {
			return false, true
		}
		if end && terminal(e) {
			return true, true
		}
	}
	return true, false
}

// yieldEvent yields the next event of a run, and notes the children that it starts or ends.
func (r *reader) yieldEvent(it Item) bool {
	endedRuns, again := r.endedRuns(&it)
	for _, run := range endedRuns {
		if f := r.runPosition(run); f != nil && !f.ended && !r.yieldJournal(run, lastEvent, true) {
			return false
		}
	}
	if !r.yieldRemoteBefore(&it) {
		return false
	}
	r.updateRun(it.Run, func(f *runPosition) {
		f.last, f.seq = it.Number, max(f.seq, it.seq-1)
		if _, note := it.Event.(*engine.NoteRecorded); !note {
			f.ended = terminal(it.Event)
		}
	})
	for _, run := range endedRuns {
		if !again {
			r.dropRun(run)
		}
	}
	above := r.runPosition(it.Run).pathPrefix
	switch e := it.Event.(type) {
	case *engine.NodeWaiting:
		for _, i := range e.Interrupts {
			if i.Child != nil {
				r.addRun(runPosition{run: i.Child.Run, pathPrefix: above + engine.BelowChild(i.ID, ""), parent: it.Run})
			}
		}
	case *engine.NoteRecorded:
		if t, ok := toolRunOf(e); ok {
			r.addRun(runPosition{run: t.run, pathPrefix: above + t.effect + ">", parent: it.Run, last: t.events})
		}
	}
	return r.yieldItem(it)
}

// endedRuns returns the child runs whose end an event reports, and whether they can continue: a run that failed can.
func (r *reader) endedRuns(it *Item) (runs []string, again bool) {
	switch e := it.Event.(type) {
	case *engine.ChildReported:
		if e.Status.Ended() {
			return []string{e.Run}, e.Status == engine.Failed
		}
	case *engine.EffectCompleted: // of a tool call; an attempt that was cancelled may have left a run of its own
		prefix := r.runPosition(it.Run).pathPrefix + e.Key + ">"
		for i := range r.at.runs {
			if f := &r.at.runs[i]; f.parent == it.Run && f.pathPrefix == prefix {
				runs = append(runs, f.run)
			}
		}
		return runs, e.Error != nil
	}
	return nil, false
}

// addRun notes a child run that begins, or continues.
func (r *reader) addRun(child runPosition) {
	if r.runPosition(child.run) == nil {
		r.ownRuns()
		r.at.runs = append(r.at.runs, child)
	}
}

func (r *reader) runPosition(run string) *runPosition {
	for i := range r.at.runs {
		if r.at.runs[i].run == run {
			return &r.at.runs[i]
		}
	}
	return nil
}

// updateRun changes what is known of a run.
func (r *reader) updateRun(run string, change func(*runPosition)) {
	r.ownRuns()
	if f := r.runPosition(run); f != nil {
		change(f)
	}
}

// ownRuns makes at.runs the reader's alone.
func (r *reader) ownRuns() {
	if r.runsShared {
		r.at.runs, r.runsShared = slices.Clone(r.at.runs), false
	}
}

// dropRun forgets a run and those below it.
func (r *reader) dropRun(run string) {
	r.ownRuns()
	gone := map[string]bool{run: true}
	r.at.runs = slices.DeleteFunc(r.at.runs, func(f runPosition) bool { // parents come before children
		if gone[f.parent] {
			gone[f.run] = true
		}
		return gone[f.run]
	})
}

// yieldItem yields an item, unless it is no news.
func (r *reader) yieldItem(it Item) bool {
	if r.skipping {
		return true
	}
	it.PathPrefix = r.runPosition(it.Run).pathPrefix
	r.at.pos = max(r.at.pos, it.pos)
	r.trackLive(&it)
	at := r.at
	it.from, r.runsShared = &at, true
	return r.yield(it, nil)
}

// trackLive notes what live output the reader's user has that nothing has replaced.
func (r *reader) trackLive(it *Item) {
	k := liveKey{it.Run, it.Path, it.Effect}
	switch e := it.Event.(type) {
	case nil:
		switch {
		case it.Retracted:
			delete(r.liveSeen, k)
		case it.Chunk != nil:
			if r.liveSeen == nil {
				r.liveSeen = make(map[liveKey]struct{})
			}
			r.liveSeen[k] = struct{}{}
		}
	case *engine.EffectCompleted:
		path, _ := engine.SplitEffectKey(e.Key)
		delete(r.liveSeen, liveKey{it.Run, path, e.Key})
	case *engine.NodeCompleted:
		delete(r.liveSeen, liveKey{it.Run, e.Path, ""})
	default:
		return
	}
	r.at.sawLive = r.liveBefore || len(r.liveSeen) > 0
}
