package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// How long to wait before a session is looked at again that another process
// holds, at first and at most.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 50 * time.Millisecond
)

// conductors are those of the sessions that messages were sent to from here and
// have not had their turn.
type conductors struct {
	w      *Weir
	ctx    context.Context //nolint:containedctx // ends when the Weir closes
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	byID   map[string]*conductor
	closed bool
}

// conductor drives the rounds of one session, whoever's message has its turn,
// until the messages from here have had theirs. In each process there is at most
// one; those of several agree through the store, in which one round at a time
// holds the session.
type conductor struct {
	w     *Weir
	id    string
	flow  *Flow            // guarded by conductors.mu
	turns map[string]*Turn // by message; guarded by conductors.mu
	poke  chan struct{}
}

func newConductors(w *Weir) *conductors {
	c := &conductors{w: w, byID: make(map[string]*conductor)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// close ends all waiting; what was sent stays in the store.
func (cs *conductors) close() {
	cs.mu.Lock()
	cs.closed = true
	cs.mu.Unlock()
	cs.cancel()
	cs.all.Wait()
}

// join has a turn wait for its message. Where another of this process waits for
// the same, both are told.
func (cs *conductors) join(t *Turn) (*Turn, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return nil, runner.ErrClosed
	}
	c := cs.byID[t.Session.ID]
	if c == nil {
		c = &conductor{w: cs.w, id: t.Session.ID, turns: make(map[string]*Turn), poke: make(chan struct{}, 1)}
		cs.byID[c.id] = c
		cs.all.Go(func() { c.run(cs.ctx) })
	}
	c.flow = t.Session.flow
	if same := c.turns[t.Message]; same != nil {
		return same, nil
	}
	c.turns[t.Message] = t
	select {
	case c.poke <- struct{}{}:
	default:
	}
	return t, nil
}

// watch ends a turn that no message began when its run comes to rest, wherever that
// is.
func (cs *conductors) watch(t *Turn) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return runner.ErrClosed
	}
	cs.all.Go(func() {
		c := conductor{w: cs.w, id: t.Session.ID}
		var failing time.Time
		for cs.ctx.Err() == nil {
			ended, err := c.rest(cs.ctx, t)
			if ended {
				return
			}
			if err == nil {
				failing = time.Time{}
			} else if failing.IsZero() {
				failing = time.Now()
			}
			if err != nil && time.Since(failing) >= patienceWith(err) {
				cs.resolve(t, Result{Run: t.Run()}, err)
				return
			}
			select {
			case <-time.After(longestPause):
			case <-cs.ctx.Done():
			}
		}
		cs.resolve(t, Result{}, runner.ErrClosed)
	})
	return nil
}

// rest waits for the run of a turn, resuming it where no process drives it.
func (c *conductor) rest(ctx context.Context, t *Turn) (ended bool, err error) {
	x := c.w.local.Held(t.Run())
	if x == nil {
		if ended, err := c.settled(ctx, t); ended || err != nil {
			return ended, err
		}
		on, err := c.w.Continue(ctx, t.Run())
		if err != nil {
			if elsewhere(err) {
				err = nil
			}
			return false, err
		}
		x = on.execution()
	}
	t.attachNew(t.Run(), x)
	r, err := x.Wait(ctx)
	if err != nil && elsewhere(err) {
		return false, nil
	}
	return err == nil, c.ended(ctx, t, r, err)
}

// resolve ends a turn.
func (cs *conductors) resolve(t *Turn, r Result, err error) {
	cs.mu.Lock()
	if c := cs.byID[t.Session.ID]; c != nil && c.turns[t.Message] == t {
		delete(c.turns, t.Message)
	}
	cs.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.done:
	default:
		t.result, t.err = r, err
		close(t.done)
	}
}

// waiting lists the turns that have not ended. Where there are none the
// conductor is forgotten: the next message makes another.
func (c *conductor) waiting() []*Turn {
	cs := c.w.talks
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(c.turns) == 0 {
		delete(cs.byID, c.id)
		return nil
	}
	var out []*Turn
	for _, id := range slices.Sorted(maps.Keys(c.turns)) {
		out = append(out, c.turns[id])
	}
	return out
}

func (c *conductor) turn(message string) (*Turn, *Flow) {
	c.w.talks.mu.Lock()
	defer c.w.talks.mu.Unlock()
	return c.turns[message], c.flow
}

// How long a session driver tries again after an error before it reports it to those
// who wait, and how long it pauses between two tries at most. What is not found may
// be a run or flow that another process deletes; it is looked for again for a shorter
// time.
const (
	driverPatience  = 30 * time.Second
	missingPatience = time.Second
	longestRetry    = time.Second
)

// StalledError says that a session cannot go on in this process for now. The messages
// that wait in its queue stay there and keep their turn: a process that can drive the
// session, or the next message sent to it, continues with them.
type StalledError struct {
	Session string
	// Err is what keeps the session from going on.
	Err error
}

// Error names the session and the cause.
func (e *StalledError) Error() string {
	return fmt.Sprintf("session %s cannot go on: %v; messages that wait stay in its queue", e.Session, e.Err)
}

// Unwrap returns the cause.
func (e *StalledError) Unwrap() error { return e.Err }

// run drives the session until the turns from here have ended. An error of the store
// withdraws no message: the same is tried again, and an error that stays is reported
// to those who wait.
func (c *conductor) run(ctx context.Context) {
	pause := firstPause
	var failing time.Time // since when every step has failed
	for len(c.waiting()) > 0 {
		moved, err := c.step(ctx)
		switch {
		case ctx.Err() != nil:
			c.report(runner.ErrClosed)
			continue
		case errors.Is(err, errGone):
			c.report(err)
			continue
		case moved || err == nil: // a step may have done a part before it failed
			failing = time.Time{}
			if moved {
				pause = firstPause
			}
		case failing.IsZero():
			failing = time.Now()
			c.w.logger.Warn("session: trying again", "session", c.id, "error", err)
		}
		if err != nil && !moved && time.Since(failing) >= patienceWith(err) {
			c.report(&StalledError{Session: c.id, Err: err})
			failing = time.Time{}
			continue
		}
		if moved && err == nil {
			continue
		}
		select {
		case <-c.poke:
		case <-time.After(pause):
		case <-ctx.Done():
		}
		if pause *= 2; err != nil {
			pause = min(pause, longestRetry)
		} else {
			pause = min(pause, longestPause)
		}
	}
}

// errGone: the session has been deleted, and its messages with it.
var errGone = errors.New("the session was deleted")

// patienceWith is how long a step that fails with an error is tried again: not at all
// where the error follows from what is stored or configured.
func patienceWith(err error) time.Duration {
	for _, lasting := range []error{
		store.ErrCorrupt, store.ErrNewer, store.ErrClosed, store.ErrFull, runner.ErrClosure, runner.ErrStatus, runner.ErrClosed,
	} {
		if errors.Is(err, lasting) {
			return 0
		}
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Permanent {
		return 0
	}
	if _, ok := errors.AsType[*flow.Invalid](err); ok {
		return 0
	}
	if errors.Is(err, store.ErrNotFound) {
		return missingPatience
	}
	return driverPatience
}

// report ends all turns with an error. Their messages stay where they are.
func (c *conductor) report(err error) {
	for _, t := range c.waiting() {
		c.w.talks.resolve(t, Result{}, err)
	}
}

// step does the next thing that can be done in the session; moved is false where
// that is for others to do.
func (c *conductor) step(ctx context.Context) (moved bool, err error) {
	row, err := c.w.store.Session(ctx, c.id)
	if errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("%w: %w", errGone, err)
	}
	if err != nil {
		return false, err
	}
	if row.Holder != "" {
		return c.attend(ctx, &row)
	}
	q, err := c.w.store.NextQueued(ctx, c.id)
	if errors.Is(err, store.ErrNotFound) {
		return c.settle(ctx)
	}
	if err != nil {
		return false, err
	}
	return c.begin(ctx, &row, &q)
}

// begin has the message that waits first be the next round.
func (c *conductor) begin(ctx context.Context, row *store.Session, q *store.Queued) (moved bool, err error) {
	t, f := c.turn(q.ID)
	said := spokenOf(q.Value)
	if t != nil {
		f = t.Session.flow
	}
	if err := c.w.canBegin(f, said); err != nil {
		if t == nil || t.adopted {
			return false, c.blocked(q, err)
		}
		return true, c.refuse(t, err, c.w.store.Unqueue(ctx, q.ID))
	}
	p, err := c.w.program(ctx, f)
	if err != nil {
		return false, err
	}
	n := store.NewRun{ID: roundID(q.ID), Flow: f.Name, Fingerprint: p.Fingerprint, User: row.User, Origin: said.origin, At: time.Now()}
	if n.Origin == "" {
		n.Origin = "session:" + row.ID
	}
	now, took, err := c.w.store.BeginRound(ctx, q.ID, n)
	if errors.Is(err, store.ErrExists) && took.Run == "" { // not the message, but a run of that id
		n.ID = newID()
		now, _, err = c.w.store.BeginRound(ctx, q.ID, n)
	}
	switch {
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrNotFound):
		return true, nil // somebody was faster
	case err != nil:
		return false, err
	}
	c.expire(ctx, &now, f)
	return c.start(ctx, f, &now, n.ID, q.ID, said)
}

// roundID is the id of the round that a message begins: the message's own where
// that was made as runs' ids are, so that the store keeps one for both.
func roundID(message string) string {
	if len(message) == len(newID()) && strings.Trim(message, "0123456789abcdefghijklmnopqrstuvwxyz") == "" {
		return message
	}
	return newID()
}

// expire puts off when the session may be deleted.
func (c *conductor) expire(ctx context.Context, row *store.Session, f *Flow) {
	ttl := f.Session.TTL
	if ttl == 0 && row.Expires.IsZero() {
		return
	}
	var at time.Time
	if ttl > 0 {
		at = time.Now().Add(ttl)
		if d := at.Sub(row.Expires); d >= 0 && d < ttl/100 && !row.Expires.IsZero() {
			return // not worth a write
		}
	}
	if err := c.w.store.ExpireSession(ctx, row.ID, at); err != nil {
		c.w.logger.Warn("put off the end of a session", "session", row.ID, "error", err)
	}
}

// blocked is the error that a message which is not of a sender of this process cannot
// begin its round.
func (c *conductor) blocked(q *store.Queued, err error) error {
	return &Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("message %s of %s has its turn, and flow cannot take it: %v", q.ID, cmp.Or(q.By, "nobody"), err),
		Hint:    "take it back with `" + engine.CommandLine("sessions", "unqueue", q.ID) + "`, or send with a flow that takes it",
	}
}

// canBegin checks that a round of a flow can begin with a message.
func (w *Weir) canBegin(f *Flow, said *spoken) error {
	b, err := beginning(f, said.start(f))
	if err == nil && f.Session.MaxTokens > 0 {
		_, err = w.counterOf(b.Settings)
	}
	return err
}

// refuse tells the sender of a message that cannot be taken, once it has been taken
// back: unqueued is what that came to. A message that no longer waits is not refused:
// whatever has taken it says what became of it.
func (c *conductor) refuse(t *Turn, why, unqueued error) error {
	switch {
	case unqueued == nil:
		c.w.talks.resolve(t, Result{}, why)
	case !errors.Is(unqueued, store.ErrNotFound) && !errors.Is(unqueued, store.ErrTaken) && !errors.Is(unqueued, store.ErrMoved):
		return unqueued
	}
	return nil
}

// start starts the run of a round that the store has begun, and sees it through.
func (c *conductor) start(ctx context.Context, f *Flow, row *store.Session, run, message string, said *spoken) (moved bool, err error) {
	p, err := c.w.program(ctx, f)
	if err != nil {
		return false, err
	}
	b, err := c.w.beginRound(ctx, f, row, run, said)
	if err != nil {
		return false, err
	}
	x, err := c.w.local.Start(ctx, p, b)
	if errors.Is(err, store.ErrOwned) {
		return false, nil // somebody else starts it
	}
	if err != nil {
		return false, err
	}
	t, _ := c.turn(message)
	if t != nil {
		t.attach(run, x, 0, 0, 0)
	}
	r, err := x.Wait(ctx)
	if err == nil && r.Status == engine.Paused {
		r, err = c.open(ctx, t, f, row, r, said)
	}
	return true, c.ended(ctx, t, r, err)
}

// open answers the first question of a flow that has no input for a message with
// the message that began the round.
func (c *conductor) open(ctx context.Context, t *Turn, f *Flow, row *store.Session, r Result, said *spoken) (Result, error) {
	if _, ok := messageInput(f); ok {
		return r, nil
	}
	now, err := c.w.store.Run(ctx, r.Run)
	if err != nil {
		return r, err
	}
	a, err := c.w.answerTo(ctx, row, &now, said)
	if err != nil {
		return r, err
	}
	run, err := c.w.Answer(ctx, r.Run, a.interrupt, a.value, row.User)
	if err != nil {
		return r, err
	}
	if t != nil {
		t.attach(r.Run, run.execution(), 0, 0, 0)
	}
	return run.Wait(ctx)
}

// ended tells the sender how far the round has come. An error that ended its
// execution here is no end of the round, which is resumed with the next step.
func (c *conductor) ended(ctx context.Context, t *Turn, r Result, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if elsewhere(err) {
			return nil
		}
		return err
	}
	if t == nil {
		return nil
	}
	row, err := c.w.store.Session(ctx, c.id)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.to = row.Length
	t.mu.Unlock()
	c.w.talks.resolve(t, r, nil)
	return nil
}

// elsewhere reports whether another process has done what was to be done, or
// goes on with the run: the session is looked at again.
func elsewhere(err error) bool {
	for _, is := range []error{store.ErrOwned, store.ErrFenced, store.ErrMoved, store.ErrTaken, runner.ErrNoInterrupt} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// attend sees to the round that is going on.
func (c *conductor) attend(ctx context.Context, row *store.Session) (moved bool, err error) {
	run := row.Holder
	if x := c.w.local.Held(run); x != nil {
		return true, c.follow(ctx, run, x)
	}
	r, err := c.w.store.Run(ctx, run)
	if err != nil {
		return false, err
	}
	switch {
	case r.Commits == 0:
		return c.startAgain(ctx, row, &r)
	case r.Head.Status == engine.Paused:
		return c.paused(ctx, row, &r)
	case r.Head.Status.Ended():
		return false, nil // the session is being given back
	}
	on, err := c.w.Continue(ctx, run)
	if elsewhere(err) {
		return c.watch(ctx, &r)
	}
	if err != nil {
		return false, err
	}
	return true, c.follow(ctx, run, on.execution())
}

// startAgain starts a round that was begun by a process that has died since, or
// has not come to it yet.
func (c *conductor) startAgain(ctx context.Context, row *store.Session, r *store.Run) (moved bool, err error) {
	q, err := c.w.store.RoundMessage(ctx, r.ID)
	if err != nil {
		return false, err
	}
	if q.Value == nil {
		return false, nil // it has been started since
	}
	_, f := c.turn(q.ID)
	if f.Fingerprint() != r.Fingerprint {
		if f, err = c.w.FlowUnder(ctx, r.Fingerprint); err != nil {
			return false, err
		}
	}
	return c.start(ctx, f, row, r.ID, q.ID, spokenOf(q.Value))
}

// follow waits for a round that this process has come to drive.
func (c *conductor) follow(ctx context.Context, run string, x *runner.Execution) error {
	t, err := c.turnOf(ctx, run)
	if err != nil {
		return err
	}
	if t != nil {
		t.attachNew(run, x)
	}
	r, err := x.Wait(ctx)
	return c.ended(ctx, t, r, err)
}

// turnOf is the turn whose message a round took, nil where it is not of here.
func (c *conductor) turnOf(ctx context.Context, run string) (*Turn, error) {
	q, err := c.w.store.RoundMessage(ctx, run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	t, _ := c.turn(q.ID)
	return t, nil
}

// watch looks at a round that another process drives.
func (c *conductor) watch(ctx context.Context, r *store.Run) (bool, error) {
	t, err := c.turnOf(ctx, r.ID)
	if err != nil {
		return false, err
	}
	if t != nil {
		t.attachNew(r.ID, nil)
	}
	return c.settle(ctx)
}
