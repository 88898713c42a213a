package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/store"
)

// delivery is a message of an inbox that is being delivered to an execution. Until ack is read, taken belongs to the
// execution's driver.
type delivery struct {
	store.Post
	x   *Execution
	ack chan error
	// removedByCommit: the commit that applies the message removes it.
	removedByCommit bool
}

// deliveryTimeout limits the time for applying one message. A message that takes longer stays in the inbox.
const deliveryTimeout = 10 * time.Second

// inboxReader delivers messages of other processes to the runs held here. It queries all inboxes at once, and only
// while runs are held.
type inboxReader struct {
	l         *Local
	inFlight  map[int64]bool // deliveries under way
	completed chan []int64   // those that have ended
}

func (l *Local) readInbox() {
	defer l.loops.Done()
	r := inboxReader{l: l, inFlight: make(map[int64]bool), completed: make(chan []int64)}
	t := time.NewTicker(l.o.Poll)
	defer t.Stop()
	changed, stop := l.watch(store.TopicInbox, func(run string) bool { return l.Held(run) != nil })
	defer stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-changed:
			r.read()
		case ids := <-r.completed:
			for _, id := range ids {
				delete(r.inFlight, id)
			}
		case <-t.C:
			r.read()
		}
	}
}

// watch is store.Watcher.Watch, whose channel never receives a value if the store reports no changes.
func (l *Local) watch(topic store.Topic, matches func(id string) bool) (changed <-chan struct{}, stop func()) {
	if w := l.o.Store.Capabilities().Watch; w != nil {
		return w.Watch(topic, matches)
	}
	return nil, func() {}
}

// read delivers the messages in the inboxes. Messages to one run are delivered together, so that one commit applies
// them.
func (r *inboxReader) read() {
	l := r.l
	if !l.holdsRuns() {
		l.liveWriter.setReaders(nil)
		return
	}
	posts, err := l.store.PostsForOwner(l.ctx, l.owner)
	if err != nil && l.ctx.Err() == nil {
		l.o.Logger.Warn("read inbox", "error", err)
	}
	byRun := make(map[*Execution][]*delivery)
	var read map[*Execution]string
	for _, p := range posts {
		x := l.Held(p.Run)
		if x == nil || r.inFlight[p.ID] {
			continue
		}
		if p.Kind == store.PostLiveText {
			if read == nil {
				read = make(map[*Execution]string)
			}
			read[x] = p.Name
			continue
		}
		r.inFlight[p.ID] = true
		byRun[x] = append(byRun[x], &delivery{Post: p, x: x})
	}
	if err == nil {
		l.liveWriter.setReaders(read)
	}
	for x, ds := range byRun {
		x.deliver(ds)
		l.loops.Go(func() {
			ids := l.finishDeliveries(ds)
			select {
			case r.completed <- ids:
			case <-l.ctx.Done():
			}
		})
	}
}

func (l *Local) holdsRuns() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held) > 0
}

// deliver adds messages to the execution's queue at once.
func (x *Execution) deliver(ds []*delivery) {
	mails := make([]driverMessage, 0, len(ds))
	for _, d := range ds {
		d.ack = make(chan error, 1)
		c := x.postCommand(&d.Post)
		if c == nil { // of a later version
			d.ack <- nil
			continue
		}
		mails = append(mails, driverMessage{command: c, ack: d.ack, delivery: d})
	}
	x.local.clock.markBusy(x)
	if x.messages.put(mails...) {
		x.local.workers.run(job{x, nil})
	}
}

// postCommand returns the command of a message, nil if this version does not know it.
func (x *Execution) postCommand(p *store.Post) Command {
	switch p.Kind {
	case "cancel":
		return cancellationOfPost(p)
	case "answer":
		return Answer(p.Name, p.Value, p.By)
	case PostQueuedAnswer:
		return queuedAnswerOfPost(p)
	case "event":
		return Signal(p.Name, p.Value, p.By)
	case PostSteering:
		return steeringOfPost(p)
	case "child":
		return x.recheckChild(p.Name)
	}
	return nil
}

// cancellationOfPost returns the command of a cancellation. Its value is the reason, or nil.
func cancellationOfPost(p *store.Post) Command {
	reason, _ := p.Value.(string)
	return Cancel(p.By, reason)
}

// finishDeliveries waits until messages are applied, and removes from the inbox those that no commit has removed. It
// returns their ids.
func (l *Local) finishDeliveries(ds []*delivery) []int64 {
	ctx, cancel := context.WithTimeout(l.ctx, deliveryTimeout)
	defer cancel()
	var ids, rest []int64
	for _, d := range ds {
		ids = append(ids, d.ID)
		if l.finishDelivery(ctx, d) {
			rest = append(rest, d.ID)
		}
	}
	if err := l.store.RemovePosts(l.ctx, rest); err != nil && l.ctx.Err() == nil {
		l.o.Logger.Warn("take messages", "run", ds[0].Run, "error", err)
	}
	return ids
}

// finishDelivery reports whether a message must still be removed. A message that cannot be applied is dropped with a
// warning: its sender knows that it was sent, not whether it is valid.
func (l *Local) finishDelivery(ctx context.Context, d *delivery) (remove bool) {
	err := d.x.awaitAck(ctx, d.ack)
	_, child := errors.AsType[*childCommand](err)
	if child || errors.Is(err, ErrEnded) && d.Kind != "child" {
		p := d.x.m.program
		if d.Kind == "cancel" {
			p = p.IgnoringToolChanges()
		}
		_, err = l.Do(ctx, p, d.Run, d.x.postCommand(&d.Post))
		d.removedByCommit = false
	}
	_, accepted := errors.AsType[*AcceptedByChild](err)
	switch {
	case err == nil, accepted:
		return !d.removedByCommit
	case errors.Is(err, ErrSteeringLate):
		return true // its sender sees that it was removed and not recorded
	case errors.Is(err, ErrNoInterrupt), errors.Is(err, ErrAnswer), errors.Is(err, ErrStatus), errors.Is(err, store.ErrNotQueued):
		l.o.Logger.Warn("message refused", "run", d.Run, "kind", d.Kind, "error", err)
		return true
	}
	return false // stays in the inbox, for the next owner of the run
}

// DeliverPosts applies the messages in the inbox of a run that this process executes or no process does. A message that
// the run refuses is dropped with a warning. If another process owns the run, that process takes the messages.
func (l *Local) DeliverPosts(ctx context.Context, p *Program, run string) error {
	posts, err := l.store.Inbox(ctx, run)
	if err != nil {
		return fmt.Errorf("inbox of run %s: %w", run, err)
	}
	for i := range posts {
		post := &posts[i]
		err := l.applyPost(ctx, p, post)
		_, accepted := errors.AsType[*AcceptedByChild](err)
		if leftToOwner := errors.Is(err, store.ErrOwned) || errors.Is(err, ErrEnded); !accepted && leftToOwner || ctx.Err() != nil {
			return nil //nolint:nilerr // the messages stay in the inbox, for the owner of the run
		}
		if err != nil && !accepted {
			l.o.Logger.Warn("message refused", "run", run, "kind", post.Kind, "error", err)
		}
		if err := l.store.RemovePosts(ctx, []int64{post.ID}); err != nil {
			return fmt.Errorf("inbox of run %s: %w", run, err)
		}
	}
	return nil
}

// applyPost carries out a message of an inbox.
func (l *Local) applyPost(ctx context.Context, p *Program, post *store.Post) (err error) {
	switch post.Kind {
	case "cancel":
		_, err = l.Do(ctx, p, post.Run, cancellationOfPost(post))
	case "answer":
		_, err = l.Do(ctx, p, post.Run, Answer(post.Name, post.Value, post.By))
	case PostQueuedAnswer:
		_, err = l.Do(ctx, p, post.Run, queuedAnswerOfPost(post))
	case "event":
		_, err = l.Do(ctx, p, post.Run, Signal(post.Name, post.Value, post.By))
	case PostSteering:
		_, err = l.Do(ctx, p, post.Run, steeringOfPost(post))
	case "child": // the process that takes the run continues its children
		_, err = l.Rejoin(ctx, p, post.Run, post.Name)
	}
	return err
}
