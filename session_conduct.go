package weir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
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

// watch ends a turn that no message began when its run comes to rest.
func (cs *conductors) watch(t *Turn, on *Run) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return runner.ErrClosed
	}
	cs.all.Go(func() {
		r, err := on.Wait(cs.ctx)
		if row, infoErr := t.Session.Info(cs.ctx); infoErr == nil {
			t.mu.Lock()
			t.to = row.Length
			t.mu.Unlock()
		}
		if cs.ctx.Err() != nil {
			err = runner.ErrClosed
		}
		cs.resolve(t, r, err)
	})
	return nil
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

func (c *conductor) run(ctx context.Context) {
	pause := firstPause
	for len(c.waiting()) > 0 {
		moved, err := c.step(ctx)
		switch {
		case ctx.Err() != nil:
			c.fail(runner.ErrClosed)
		case err != nil:
			c.fail(fmt.Errorf("session %s: %w", c.id, err))
		case moved:
			pause = firstPause
		default:
			select {
			case <-c.poke:
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, longestPause)
		}
	}
}

// fail ends all turns. Their messages that no round has taken are taken back,
// unless this process only ends.
func (c *conductor) fail(err error) {
	for _, t := range c.waiting() {
		if t.Run() == "" && !errors.Is(err, runner.ErrClosed) {
			_ = c.w.store.Unqueue(context.WithoutCancel(c.w.talks.ctx), t.Message)
		}
		c.w.talks.resolve(t, Result{}, err)
	}
}

// step does the next thing that can be done in the session; moved is false where
// that is for others to do.
func (c *conductor) step(ctx context.Context) (moved bool, err error) {
	row, err := c.w.store.Session(ctx, c.id)
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
	if t == nil || t.again { // of a process that may have died when it had answered with it
		if _, err := c.settle(ctx); err != nil {
			return false, err
		}
		if known, err := c.w.sentBefore(ctx, row, q); known || err != nil {
			return known, err
		}
	}
	said := spokenOf(q.Value)
	if t != nil {
		f = t.Session.flow
	}
	if _, err := beginning(f, said.start(f)); err != nil {
		if t == nil {
			return false, fmt.Errorf("message %s of %s waits before: %w", q.ID, q.By, err)
		}
		c.refuse(ctx, t, err)
		return true, nil
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

// refuse takes a message back that cannot be taken, and tells its sender.
func (c *conductor) refuse(ctx context.Context, t *Turn, why error) {
	if err := c.w.store.Unqueue(ctx, t.Message); err != nil && !errors.Is(err, store.ErrNotFound) {
		why = errors.Join(why, err)
	}
	c.w.talks.resolve(t, Result{}, why)
}

// start starts the run of a round that the store has begun, and sees it through.
func (c *conductor) start(ctx context.Context, f *Flow, row *store.Session, run, message string, said *spoken) (moved bool, err error) {
	p, err := c.w.program(ctx, f)
	if err != nil {
		return false, err
	}
	b, err := c.beginRound(ctx, f, row, run, said)
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

// ended tells the sender how far the round has come.
func (c *conductor) ended(ctx context.Context, t *Turn, r Result, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if elsewhere(err) {
		return nil
	}
	if t == nil {
		return nil
	}
	row, infoErr := c.w.store.Session(ctx, c.id)
	if infoErr != nil {
		return infoErr
	}
	t.mu.Lock()
	t.to = row.Length
	t.mu.Unlock()
	c.w.talks.resolve(t, r, err)
	return nil
}

// elsewhere reports whether another process has done what was to be done, or
// goes on with the run.
func elsewhere(err error) bool {
	return errors.Is(err, store.ErrOwned) || errors.Is(err, store.ErrFenced) || errors.Is(err, runner.ErrNoInterrupt)
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
	on, err := c.w.Resume(ctx, run)
	if errors.Is(err, store.ErrOwned) {
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
	if t != nil && t.Run() == "" {
		t.attach(run, x, 0, 0, 0)
	}
	r, err := x.Wait(ctx)
	if t == nil && ctx.Err() == nil {
		return nil
	}
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
	if t != nil && t.Run() == "" {
		t.attach(r.ID, nil, 0, 0, 0)
	}
	_, err = c.settle(ctx)
	return false, err
}
