package session

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

// The first and the longest pause before the driver reads a session again that another
// process drives.
const (
	minPollInterval = 2 * time.Millisecond
	maxPollInterval = 50 * time.Millisecond
)

// drivers holds the drivers of all sessions that this process drives, by session.
type drivers struct {
	m       *Manager
	ctx     context.Context //nolint:containedctx // ends when the Manager is closed
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	byID   map[string]*driver
	closed bool
}

// driver drives the rounds of one session, also those of other senders, until each message
// that was sent from this process has its reply. A process has at most one driver for a
// session. Drivers in several processes coordinate through the store, in which one round
// at a time holds the session.
type driver struct {
	m       *Manager
	id      string
	flow    *flow.Flow        // guarded by drivers.mu
	idle    *idleSession      // what the sender of a message has read; guarded by drivers.mu
	replies map[string]*Reply // by message; guarded by drivers.mu
	wake    chan struct{}
	// awakened is the round that this driver has another process execute; the driver only.
	awakened string
	watch    runWatch // of the round that another process executes
}

// idleSession is a session without a round or a waiting message when it was read, and
// the message that was then put into its queue. The commit that makes the round checks that
// this is so still.
type idleSession struct {
	row     store.Session
	message store.QueuedMessage
}

func newDrivers(m *Manager) *drivers {
	c := &drivers{m: m, byID: make(map[string]*driver)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// close ends all replies with runner.ErrClosed. Messages stay in the store.
func (cs *drivers) close() {
	cs.mu.Lock()
	cs.closed = true
	cs.mu.Unlock()
	cs.cancel()
	cs.running.Wait()
}

// add registers a reply and starts the driver of its session if there is none. If a reply
// for the same message is registered, it returns that one.
func (cs *drivers) add(t *Reply) (*Reply, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return nil, runner.ErrClosed
	}
	c := cs.byID[t.Session.ID]
	if c == nil {
		c = &driver{m: cs.m, id: t.Session.ID, replies: make(map[string]*Reply), wake: make(chan struct{}, 1), watch: runWatch{m: cs.m}}
		cs.byID[c.id] = c
		cs.running.Go(func() { c.run(cs.ctx) })
	}
	c.flow = t.Session.flow
	if same := c.replies[t.waits]; same != nil {
		return same, nil
	}
	c.replies[t.waits], c.idle, t.idle = t, t.idle, nil
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return t, nil
}

// watchRun completes a reply that no message started when its run has ended or paused, in
// whatever process that is.
func (cs *drivers) watchRun(t *Reply) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return runner.ErrClosed
	}
	cs.running.Go(func() {
		c := driver{m: cs.m, id: t.Session.ID, watch: runWatch{m: cs.m}}
		defer c.watch.close()
		var failing time.Time
		for cs.ctx.Err() == nil {
			ended, err := c.awaitRun(cs.ctx, t)
			if ended {
				return
			}
			if err == nil {
				failing = time.Time{}
			} else if failing.IsZero() {
				failing = time.Now()
			}
			if err != nil && time.Since(failing) >= retryTimeoutFor(err) {
				cs.complete(t, runner.Result{Run: t.Run()}, err)
				return
			}
			c.watch.wait(cs.ctx, nil, maxPollInterval)
		}
		cs.complete(t, runner.Result{}, runner.ErrClosed)
	})
	return nil
}

// awaitRun waits for the run of a reply. It continues the run if no process executes it.
func (c *driver) awaitRun(ctx context.Context, t *Reply) (ended bool, err error) {
	x := c.m.held(t.Run())
	if x == nil {
		c.watch.set(t.Run())
		if ended, err := c.completeIfAtRest(ctx, t); ended || err != nil {
			return ended, err
		}
		on, err := c.continueRun(ctx, t.Run())
		if err != nil {
			if isHandledElsewhere(err) {
				err = nil
			}
			return false, err
		}
		if on == nil {
			return false, nil
		}
		x = on
	}
	t.attachIfNew(t.Run(), x)
	r, err := x.Wait(ctx)
	if err != nil && isHandledElsewhere(err) {
		return false, nil
	}
	return err == nil, c.completeReply(ctx, t, r, err)
}

// complete sets the result of a reply.
func (cs *drivers) complete(t *Reply, r runner.Result, err error) {
	cs.mu.Lock()
	if c := cs.byID[t.Session.ID]; c != nil {
		maps.DeleteFunc(c.replies, func(_ string, x *Reply) bool { return x == t })
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

// pendingReplies lists the replies that are not complete. If there are none it unregisters
// the driver; the next message makes another one.
func (c *driver) pendingReplies() []*Reply {
	cs := c.m.drivers
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(c.replies) == 0 {
		delete(cs.byID, c.id)
		return nil
	}
	var out []*Reply
	for _, id := range slices.Sorted(maps.Keys(c.replies)) {
		out = append(out, c.replies[id])
	}
	return out
}

// replyTo returns the reply to a message, nil if the message was sent elsewhere, and the
// newest flow of the driver.
func (c *driver) replyTo(message string) (*Reply, *flow.Flow) {
	c.m.drivers.mu.Lock()
	defer c.m.drivers.mu.Unlock()
	return c.replies[message], c.flow
}

// takeIdle returns what the sender of a message has read of the session, once.
func (c *driver) takeIdle() *idleSession {
	c.m.drivers.mu.Lock()
	defer c.m.drivers.mu.Unlock()
	idle := c.idle
	c.idle = nil
	return idle
}

// How long a driver retries after an error before it reports it, and its longest pause
// between two tries. What is not found may be a run or flow that another process is
// deleting; it is retried for a shorter time.
const (
	retryTimeout         = 30 * time.Second
	notFoundRetryTimeout = time.Second
	maxRetryInterval     = time.Second
)

// StalledError reports that a session cannot continue in this process for now. Its queued
// messages keep their order: a process that can drive the session continues with them, and
// so does the next message that is sent to it.
type StalledError struct {
	Session string
	// Err is why the session cannot continue.
	Err error
}

// Error names the session and the cause.
func (e *StalledError) Error() string {
	return fmt.Sprintf("session %s cannot continue: %v; its messages stay in the queue", e.Session, e.Err)
}

// Unwrap returns the cause.
func (e *StalledError) Unwrap() error { return e.Err }

// run drives the session until all replies are complete. An error of the store removes no
// message: the driver retries, and reports an error that lasts.
func (c *driver) run(ctx context.Context) {
	defer c.watch.close()
	pause := minPollInterval
	var failing time.Time // since when all steps have failed
	for len(c.pendingReplies()) > 0 {
		select {
		case <-c.wake: // the step reads all replies
		default:
		}
		moved, err := c.step(ctx)
		switch {
		case ctx.Err() != nil:
			c.failPending(runner.ErrClosed)
			continue
		case errors.Is(err, errSessionDeleted):
			c.failPending(err)
			continue
		case moved || err == nil: // a step may do a part before it fails
			failing = time.Time{}
			if moved {
				pause = minPollInterval
			}
		case failing.IsZero():
			failing = time.Now()
			c.m.logger.Warn("session: trying again", "session", c.id, "error", err)
		}
		if err != nil && !moved && time.Since(failing) >= retryTimeoutFor(err) {
			c.failPending(&StalledError{Session: c.id, Err: err})
			failing = time.Time{}
			continue
		}
		if moved && err == nil {
			continue
		}
		c.watch.wait(ctx, c.wake, pause)
		if pause *= 2; err != nil {
			pause = min(pause, maxRetryInterval)
		} else {
			pause = min(pause, maxPollInterval)
		}
	}
}

// errSessionDeleted: the session was deleted, and its messages with it.
var errSessionDeleted = errors.New("the session was deleted")

// retryTimeoutFor returns how long a step that fails with this error is retried; 0 if the
// error follows from what is stored or configured.
func retryTimeoutFor(err error) time.Duration {
	for _, lasting := range []error{
		store.ErrCorrupt, store.ErrNotWeir, store.ErrNewerVersion, store.ErrClosed, store.ErrFull, runner.ErrDependenciesChanged, runner.ErrStatus, runner.ErrClosed,
	} {
		if errors.Is(err, lasting) {
			return 0
		}
	}
	if e, ok := errors.AsType[*engine.Error](err); ok && e.Permanent {
		return 0
	}
	if _, ok := errors.AsType[*flow.Invalid](err); ok {
		return 0
	}
	if errors.Is(err, store.ErrNotFound) {
		return notFoundRetryTimeout
	}
	return retryTimeout
}

// failPending completes all replies with an error. Their messages stay in the queue.
func (c *driver) failPending(err error) {
	for _, t := range c.pendingReplies() {
		c.m.drivers.complete(t, runner.Result{}, err)
	}
}

// step does the next thing that the session needs. moved is false if another process has
// to do it.
func (c *driver) step(ctx context.Context) (moved bool, err error) {
	c.watch.set("")
	if idle := c.takeIdle(); idle != nil {
		return c.beginNextRound(ctx, &idle.row, &idle.message)
	}
	row, err := c.m.store.Session(ctx, c.id)
	if errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("%w: %w", errSessionDeleted, err)
	}
	if err != nil {
		return false, err
	}
	if row.Holder != "" {
		return c.driveRound(ctx, &row)
	}
	q, err := c.m.store.NextQueued(ctx, c.id)
	if errors.Is(err, store.ErrNotFound) {
		return c.completeTakenReplies(ctx)
	}
	if err != nil {
		return false, err
	}
	return c.beginNextRound(ctx, &row, &q)
}

// beginNextRound starts a round with the first message in the queue.
func (c *driver) beginNextRound(ctx context.Context, row *store.Session, q *store.QueuedMessage) (moved bool, err error) {
	t, f := c.replyTo(q.ID)
	if t != nil {
		f = t.Session.flow
	}
	said, f, err := c.m.nextRound(ctx, f, q)
	if err != nil {
		return false, err
	}
	if len(said.seed) > 0 && row.Length > 0 { // another first message was faster
		if t != nil && !t.recovered {
			return true, c.reject(t, errSeedNotFirst(row.ID), c.m.store.RemoveQueued(ctx, q.ID))
		}
		said.seed = nil // no sender waits for a refusal, and the message is not lost
	}
	if err := c.m.checkCanStartRound(f, said); err != nil {
		if t == nil || t.recovered {
			return false, c.blockedError(q, err)
		}
		return true, c.reject(t, err, c.m.store.RemoveQueued(ctx, q.ID))
	}
	p, err := c.m.runs.Program(ctx, f)
	if err != nil {
		return false, err
	}
	changes, err := c.m.checkState(ctx, p, row)
	if isUnfit(err) && t != nil && !t.recovered {
		return true, c.reject(t, err, c.m.store.RemoveQueued(ctx, q.ID))
	}
	if err != nil {
		return false, err
	}
	next := *row
	next.Rounds++
	b, err := c.m.roundBeginning(ctx, f, &next, roundID(q.ID), said)
	if err != nil {
		return false, err
	}
	start := runner.RoundStart{Message: q.ID, SessionFence: row.Fence, StateChanges: changes, Created: func(x *runner.Execution) {
		if t != nil {
			t.attach(x.ID, c.m.live(x), 0, 0, 0)
		}
	}}
	x, err := c.makeRound(ctx, p, b, start)
	switch {
	case isUnfit(err) && t != nil && !t.recovered: // the state of the user
		return true, c.reject(t, err, c.m.store.RemoveQueued(ctx, q.ID))
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrSessionAdvanced):
		return true, nil // another process was faster, or the state was changed
	case err != nil:
		return false, err
	}
	c.extendExpiry(ctx, row, f)
	return c.awaitNewRound(ctx, f, &next, x, q.ID, said)
}

// makeRound makes a round and starts it. store.ErrExists if another process has started one for the
// message.
func (c *driver) makeRound(ctx context.Context, p *runner.Program, b runner.StartOptions, start runner.RoundStart) (*runner.Execution, error) {
	x, err := c.m.local.StartRound(ctx, p, b, start)
	if !errors.Is(err, store.ErrExists) {
		return x, err
	}
	known, e := c.m.store.FindQueued(ctx, start.Message)
	if e != nil {
		return nil, fmt.Errorf("message %s: %w", start.Message, e)
	}
	if known.TakenBy != "" {
		return nil, err
	}
	b.ID = runner.NewID() // not the message has a round, but a run has its id
	return c.m.local.StartRound(ctx, p, b, start)
}

// roundID returns the id of the round that a message starts: the id of the message if it
// has the form of run ids, so that the store keeps one string for both.
func roundID(message string) string {
	if len(message) == len(runner.NewID()) && strings.Trim(message, "0123456789abcdefghijklmnopqrstuvwxyz") == "" {
		return message
	}
	return runner.NewID()
}

// extendExpiry moves the time after which the session may be deleted.
func (c *driver) extendExpiry(ctx context.Context, row *store.Session, f *flow.Flow) {
	ttl := f.Session.TTL
	if ttl == 0 && row.Expires.IsZero() {
		return
	}
	var at time.Time
	if ttl > 0 {
		at = time.Now().Add(ttl)
		if d := at.Sub(row.Expires); d >= 0 && d < ttl/100 && !row.Expires.IsZero() {
			return // less than 1 % later: not worth a write
		}
	}
	if err := c.m.store.ExpireSession(ctx, row.ID, at); err != nil {
		c.m.logger.Warn("put off the end of a session", "session", row.ID, "error", err)
	}
}

// blockedError reports that a message that was sent by another process cannot start its
// round.
func (c *driver) blockedError(q *store.QueuedMessage, err error) error {
	return &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("message %s of %s is next in the queue, and the flow cannot take it: %v", q.ID, cmp.Or(q.By, "an unknown sender"), err),
		Hint:    "remove it with `" + engine.CommandLine("sessions", "unqueue", q.ID) + "`, or send with a flow that takes it",
	}
}

// checkCanStartRound checks that a round of a flow can start with a message.
func (m *Manager) checkCanStartRound(f *flow.Flow, said *queuedInput) error {
	b, err := said.startOptions(f)
	if err == nil && f.Session.MaxTokens > 0 {
		_, err = m.counterOf(b.Settings)
	}
	return err
}

// reject completes a reply with an error after its message was removed from the queue;
// unqueued is the error of the removal. A message that has left the queue was
// taken by a round, whose result is the reply.
func (c *driver) reject(t *Reply, why, unqueued error) error {
	switch {
	case unqueued == nil:
		c.m.drivers.complete(t, runner.Result{}, why)
	case !errors.Is(unqueued, store.ErrNotFound) && !errors.Is(unqueued, store.ErrNotQueued) && !errors.Is(unqueued, store.ErrSessionAdvanced):
		return unqueued
	}
	return nil
}

// startRound starts the run of a round that exists in the store, and waits for it.
func (c *driver) startRound(ctx context.Context, f *flow.Flow, row *store.Session, run, message string, said *queuedInput) (moved bool, err error) {
	p, err := c.m.runs.Program(ctx, f)
	if err != nil {
		return false, err
	}
	b, err := c.m.roundBeginning(ctx, f, row, run, said)
	if err != nil {
		return false, err
	}
	x, err := c.m.local.Start(ctx, p, b)
	if errors.Is(err, store.ErrOwned) {
		return false, nil // another process starts it
	}
	if err != nil {
		return false, err
	}
	return c.awaitNewRound(ctx, f, row, x, message, said)
}

// awaitNewRound waits for a round that this process has just started, and answers its first
// question with the message where the flow has no input for it.
func (c *driver) awaitNewRound(ctx context.Context, f *flow.Flow, row *store.Session, x *runner.Execution, message string, said *queuedInput) (moved bool, err error) {
	t, _ := c.replyTo(message)
	if t != nil {
		t.attachIfNew(x.ID, c.m.live(x))
	}
	r, err := x.Wait(ctx)
	if c.m.remote {
		if err == nil || isHandledElsewhere(err) {
			_, err = c.continueRun(ctx, x.ID)
		}
		return true, err
	}
	if err == nil && r.Status == engine.Paused {
		r, err = c.answerFirstQuestion(ctx, t, f, row, r, said)
	}
	return true, c.completeReply(ctx, t, r, err)
}

// answerFirstQuestion answers the first question of a round with the message that started
// it, if the flow has no input for messages.
func (c *driver) answerFirstQuestion(ctx context.Context, t *Reply, f *flow.Flow, row *store.Session, r runner.Result, said *queuedInput) (runner.Result, error) {
	if _, ok := MessageInput(f); ok {
		return r, nil
	}
	now, err := c.m.store.Run(ctx, r.Run)
	if err != nil {
		return r, err
	}
	a, err := c.m.answerTo(ctx, row, &now, said)
	if err != nil {
		return r, err
	}
	x, err := c.m.runs.Answer(ctx, r.Run, a.interrupt, a.value, row.User, "")
	if err != nil {
		return r, err
	}
	if t != nil {
		t.attach(r.Run, x, 0, 0, 0)
	}
	return x.Wait(ctx)
}

// completeReply completes a reply with the result of its round. An error that ended only
// the execution in this process does not complete it; the next step continues the round.
func (c *driver) completeReply(ctx context.Context, t *Reply, r runner.Result, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if isHandledElsewhere(err) {
			return nil
		}
		return err
	}
	if t == nil {
		return nil
	}
	if next, err := c.repeatOf(ctx, &r); err != nil {
		return err
	} else if next != "" && c.replies != nil {
		c.follow(t, next)
		return nil
	}
	length, known := t.sessionLength()
	if !known {
		row, err := c.m.store.Session(ctx, c.id)
		if err != nil {
			return err
		}
		length = row.Length
	}
	t.mu.Lock()
	t.endLength = length
	t.mu.Unlock()
	c.m.drivers.complete(t, r, nil)
	return nil
}

// isHandledElsewhere reports whether another process has done the work or executes the
// run. The driver reads the session again.
func isHandledElsewhere(err error) bool {
	for _, is := range []error{store.ErrOwned, store.ErrFenced, store.ErrSessionAdvanced, store.ErrNotQueued, runner.ErrNoInterrupt} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
