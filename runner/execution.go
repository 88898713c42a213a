package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory/follow"
)

// Execution is a run held in memory by a Local. It ends when the run ends, when
// only people or outside events can move it, when its lease is lost, or when
// the Local closes.
type Execution struct {
	ID string

	local   *Local
	m       *machine
	lease   store.Lease
	untaken bool // the next commit takes the run
	left    bool // the last commit gave the run back
	box     *mailbox
	hub     hub
	ack     chan error
	one     [1]store.Append // what is being committed
	done    chan struct{}
	began   time.Time
	quit    atomic.Bool // the Local closes
	ending  bool        // guarded by local.mu: the lease is being given back
	timer   *time.Timer
	saving  atomic.Bool // a checkpoint is being written
	retry   int64       // no checkpoint before this many events
	next    *attempt    // what the driver's goroutine is to run when it has no mail

	bond      bond
	shownTo   atomic.Pointer[Execution] // the parent, whose readers see this run too
	kids      map[string]*kid           // open children, by interrupt
	waiting   []chan error              // commands applied, not yet durable
	queued    []string                  // messages to the session that the next commit takes
	posts     []int64                   // messages of the inbox that the next commit takes
	cancels   []chan error              // cancellations, not yet durable in all children
	calls     calls                     // flows that tools run
	trail     *follow.Follower
	trailed   bool // the trail was lost
	portraits portrayer
	mails     []mail
	result    Result
	err       error
	stopped   *Stopped // the Local closed before the run came to an end or a pause
}

// Result is how far a run has come.
type Result struct {
	Run     string        `json:"run"`
	Status  engine.Status `json:"status"`
	Outputs engine.Values `json:"outputs"`
	// Absent are the declared outputs that a completed run did not give, each with
	// the reason as text: the node that it is a reference to was skipped.
	Absent     engine.Values      `json:"absent,omitempty"`
	Interrupts []engine.Interrupt `json:"interrupts,omitempty"`
	Usage      engine.Usage       `json:"usage"`
	Error      *engine.Error      `json:"error,omitempty"`
}

var errQuit = errors.New("the process is shutting down")

// Done is closed when the execution has ended.
func (x *Execution) Done() <-chan struct{} { return x.done }

// Wait returns the result once the execution has ended. When ctx ends first that is an
// error and the run goes on. Where the Local closed before the run came to its end or
// to a pause, the error is a *Stopped.
func (x *Execution) Wait(ctx context.Context) (Result, error) {
	select {
	case <-x.done:
		if x.err == nil && x.stopped != nil {
			return x.result, x.stopped
		}
		return x.result, x.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// post sends mail to the execution.
func (x *Execution) post(m mail) {
	x.local.clock.stir(x)
	if x.box.put(m) {
		x.local.workers.run(job{x, nil})
	}
}

// drive handles mail until there is none. An attempt it returns is the only
// thing the run is about to do: the caller is to run it at once, on its own
// goroutine.
func (x *Execution) drive() *attempt {
	for {
		x.next = nil
		x.turn()
		if x.err != nil || x.over() {
			x.end()
			return nil // driven for ever, so nobody drives it again
		}
		if x.m.run.Status() != engine.Paused { // else it looks after its children
			x.tie()
			x.arm()
			x.rest()
		}
		next := x.next
		if x.box.rest() {
			return next
		}
		if next != nil {
			x.local.workers.run(job{x, next})
		}
	}
}

// turn handles the mail that is there and all that follows from it.
func (x *Execution) turn() {
	x.mails = x.box.take(x.mails)
	for i := range x.mails {
		if x.err == nil {
			if err := x.handle(&x.mails[i]); err != nil {
				x.err = err
			}
		}
		x.mails[i] = mail{}
	}
	if x.err == nil {
		x.err = x.m.abandon(x.local.clock.now())
	}
	if x.err == nil {
		x.err = x.fire()
	}
	if x.err == nil {
		x.err = x.advance()
		x.abort()
		x.keepChildren()
		x.spread()
	}
}

// advance runs what may run now, commits, and launches what the commit allows,
// until there is nothing more to do at once.
func (x *Execution) advance() error {
	for {
		if err := x.runDirect(); err != nil {
			return err
		}
		if err := x.commit(); err != nil {
			return err
		}
		held := len(x.m.starts) > 0 && (!x.bond.tied && dependent(x.m.run.Start) || x.calls.ceasing())
		if len(x.m.direct) == 0 && (held || len(x.m.starts) == 0) {
			return nil
		}
		if held {
			continue
		}
		if err := x.launch(); err != nil {
			return err
		}
	}
}

// runDirect runs the attempts that need not be durable first.
func (x *Execution) runDirect() error {
	for len(x.m.direct) > 0 && len(x.m.staged) < maxStaged {
		a := x.m.direct[0]
		x.m.direct = x.m.direct[1:]
		if x.quit.Load() {
			delete(x.m.active, a.Path)
			continue
		}
		if err := x.perform(a); err != nil {
			return err
		}
	}
	return nil
}

// maxStaged bounds how many events one commit may gather.
const maxStaged = 2000

// perform runs an attempt on the run's goroutine.
func (x *Execution) perform(a *attempt) error {
	a.door = x
	returned := false
	defer func() {
		if !returned { // this goroutine ends; another one goes on driving
			go x.exited(a)
		}
	}()
	micros, err := a.perform()
	returned = true
	if serr := x.m.settle(x.local.clock.now(), a, err, micros); serr != nil {
		return serr
	}
	*a = attempt{}
	x.m.spare = a
	return nil
}

// exited settles an attempt whose function ended the goroutine that drove the run,
// and drives it from here on.
func (x *Execution) exited(a *attempt) {
	if err := x.m.settle(x.local.clock.now(), a, a.exited(), 0); err != nil && x.err == nil {
		x.err = err
	}
	job{x, nil}.do()
}

// launch starts the attempts whose start is durable now.
func (x *Execution) launch() error {
	starts, err := x.m.launchable(x.m.run.Now())
	if err != nil {
		return err
	}
	for _, a := range starts {
		switch {
		case x.quit.Load():
			delete(x.m.active, a.Path)
		case a.host.direct:
			x.m.direct = append(x.m.direct, a)
		default:
			x.spawn(a)
		}
	}
	clear(starts)
	return nil
}

// spawn runs an attempt on a goroutine of its own.
func (x *Execution) spawn(a *attempt) {
	a.door = x
	actx, cancel := context.WithCancelCause(x.local.ctx)
	a.cancel = cancel
	a.ctx.Bind(actx)
	a.entered = time.Now()
	x.watch(a)
	if x.next == nil && len(x.m.active) == 1 {
		x.next = a
		return
	}
	x.local.workers.run(job{x, a})
}

// handle applies one message.
func (x *Execution) handle(m *mail) error {
	switch {
	case m.command != nil:
		return x.obey(m)
	case m.attempt == nil:
		return nil
	case x.m.active[m.attempt.Path] != m.attempt: // given up before
		if m.ack != nil {
			m.ack <- errAborted
		}
		return nil
	case m.ended:
		return x.ended(m)
	case m.stop > 0:
		return x.stop(m.attempt, m.stop)
	}
	return x.journal(m)
}

// journal applies what an attempt wants durable before it goes on. One that the
// run has stopped begins no effect any more.
func (x *Execution) journal(m *mail) error {
	refused := false
	for _, e := range m.events {
		if _, begins := e.(*engine.EffectStarted); begins && m.attempt.stopping.Load() {
			refused = true
			continue
		}
		if err := x.m.step(x.local.clock.now(), e); err != nil {
			m.ack <- err
			return err
		}
	}
	if refused {
		m.ack <- errAborted
		return nil
	}
	x.waiting = append(x.waiting, m.ack)
	return nil
}

func (x *Execution) obey(m *mail) error {
	e, err := m.command(x.m.run)
	if errors.Is(err, errCancelling) {
		x.cancels = append(x.cancels, m.ack)
		x.m.kin = true
		return nil
	}
	if err != nil || e == nil {
		m.ack <- err
		return nil //nolint:nilerr // a command that is refused is its sender's error, not the run's
	}
	if _, cancel := e.(*engine.CancelRequested); cancel && x.cease(m) {
		return nil
	}
	if q, ok := e.(*queuedAnswer); ok {
		e = q.Event
		x.queued = append(x.queued, q.message)
	}
	if m.post != nil {
		m.post.taken = true
		x.posts = append(x.posts, m.post.ID)
	}
	if err := x.m.step(x.local.clock.now(), e); err != nil {
		m.ack <- err
		return err
	}
	x.retie()
	if _, cancel := e.(*engine.CancelRequested); cancel {
		x.cancels = append(x.cancels, m.ack)
		x.m.kin = true
	} else {
		x.waiting = append(x.waiting, m.ack)
	}
	x.abort()
	return nil
}

// ended settles an attempt. One that stopped because the process does leaves
// only what its effects brought.
func (x *Execution) ended(m *mail) error {
	a := m.attempt
	a.cancel(nil)
	if x.quit.Load() && m.err != nil && len(a.waits) == 0 && a.pull == "" && a.expand == nil {
		delete(x.m.active, a.Path)
		for _, e := range a.pending {
			if err := x.m.step(x.local.clock.now(), e); err != nil {
				return err
			}
		}
		return nil
	}
	if err := x.m.settle(x.local.clock.now(), a, m.err, m.micros); err != nil {
		return err
	}
	x.abort()
	return nil
}

// commit makes what is staged durable, tells who waits for it, and shows it.
func (x *Execution) commit() error {
	c, ok := x.m.take()
	if !ok {
		x.acknowledge(nil)
		return nil
	}
	x.one[0] = store.Append{Commit: c, Fence: x.lease.Fence, Head: head(x.m.run), Leave: x.leaves(), Main: x.m.remains(), Queued: x.queued, Posts: x.posts, Announces: announces(c.Events)}
	x.queued, x.posts = nil, nil
	if x.left { // by the commit before, and something has come since
		x.takeAgain()
		x.one[0].Fence = x.lease.Fence
	}
	if x.untaken {
		x.one[0].Take = &x.lease
	}
	err := x.local.committer.commit(x.one[:], x.ack)
	if err == nil {
		x.follow(c)
	}
	x.acknowledge(err)
	if err != nil {
		return fmt.Errorf("run %s: %w", x.ID, err)
	}
	x.untaken = false
	x.gaveBack(x.one[0].Leave)
	x.show(func(h *hub) { h.committed(x.ID, &c) })
	x.local.keepCheckpoint(x)
	return nil
}

// takeAgain has the next commit take the run, which the last one gave back. Where
// another process has taken it since, that commit is refused.
func (x *Execution) takeAgain() {
	x.local.mu.Lock()
	defer x.local.mu.Unlock()
	x.lease.Fence += 2
	x.lease.Until = time.Now().Add(x.local.o.Lease)
	x.untaken, x.left = true, false
}

// gaveBack notes whether a commit gave the run back.
func (x *Execution) gaveBack(left bool) {
	if x.left == left {
		return
	}
	x.local.mu.Lock()
	defer x.local.mu.Unlock()
	x.left = left
}

// announces reports whether events only say that effects are about to start.
func announces(events []engine.Event) bool {
	for _, e := range events {
		if _, ok := e.(*engine.EffectStarted); !ok {
			return false
		}
	}
	return true
}

func (x *Execution) acknowledge(err error) {
	for _, ack := range x.waiting {
		ack <- err
	}
	x.waiting = x.waiting[:0]
}

// head is what listings say of the run.
func head(r *engine.Run) store.Head {
	h := store.Head{Status: r.Status(), Waiting: r.Interrupts(), Usage: r.Usage(), Error: r.Failure()}
	if h.Status == engine.Running {
		h.Activity = r.Activity()
	}
	if _, at, ok := r.NextTimer(); ok {
		h.Due = at
	}
	return h
}

// over reports whether the execution has nothing to wait for.
func (x *Execution) over() bool {
	s := x.m.run.Status()
	if x.quit.Load() {
		return len(x.m.active) == 0
	}
	rests := s.Ended() || s == engine.Paused && !x.joining() || x.m.program.recorded && x.resting()
	return rests && !x.calls.ceasing() && x.portraits.sitting == 0
}

// arm sets the clock for the next timer of the run.
func (x *Execution) arm() {
	_, at, ok := x.m.run.NextTimer()
	switch {
	case !ok || x.quit.Load() || x.m.program.recorded:
		if x.timer != nil {
			x.timer.Stop()
		}
	case x.timer == nil:
		x.timer = time.AfterFunc(x.local.clock.until(at), func() { x.post(mail{}) })
	default:
		x.timer.Reset(x.local.clock.until(at))
	}
}

// fire fires the timers that are due.
func (x *Execution) fire() error {
	for !x.quit.Load() && !x.m.program.recorded {
		id, at, ok := x.m.run.NextTimer()
		if !ok || at > x.local.clock.now() {
			return nil
		}
		if err := x.m.step(x.local.clock.now(), &engine.TimerFired{ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// end leaves the run as it is in the journal.
func (x *Execution) end() {
	x.local.clock.stir(x)
	ctx := context.WithoutCancel(x.local.ctx)
	for _, a := range x.m.active {
		if a.cancel != nil {
			a.cancel(errQuit)
		}
	}
	if x.timer != nil {
		x.timer.Stop()
	}
	x.acknowledge(x.err)
	r := x.m.run
	if !r.Status().Ended() {
		x.confirmed(cmp.Or(x.err, ErrEnded))
	}
	x.confirmed(x.err)
	x.result = Result{
		Run: x.ID, Status: r.Status(), Outputs: r.Outputs(), Absent: r.Absent(), Interrupts: r.Interrupts(),
		Usage: r.Usage(), Error: r.Failure(),
	}
	if x.err == nil {
		if x.quit.Load() && !r.Status().Ended() && r.Status() != engine.Paused {
			x.stopped = &Stopped{x.ID}
		}
		x.local.saveCheckpoint(ctx, x)
		if x.left {
			x.m.fence = x.lease.Fence + 1
		}
		x.local.parked.put(x.m)
		x.local.talks.put(x.m)
	}
	x.logEnd()
	x.dropPortraits()
	x.closeTrail(ctx)
	x.local.leave(ctx, x)
	x.refuse()
	x.hub.close()
	x.shownLast()
	x.bequeath()
	x.local.loops.Done()
}

// refuse answers mail that came too late.
func (x *Execution) refuse() {
	for _, m := range x.box.take(nil) {
		if m.ack != nil {
			m.ack <- ErrEnded
		}
	}
}

// flush implements door.
func (x *Execution) flush(a *attempt, events []engine.Event) error {
	if a.cancel == nil { // on the run's own goroutine
		for _, e := range events {
			if err := x.m.step(x.local.clock.now(), e); err != nil {
				return err
			}
		}
		return x.commit()
	}
	ack := make(chan error, 1)
	x.post(mail{attempt: a, events: events, ack: ack})
	select {
	case err := <-ack:
		return err
	case <-x.done:
		return ErrEnded
	}
}

// emit implements door.
func (x *Execution) emit(a *attempt, c llm.Chunk) {
	it := Item{
		Run: x.ID, At: x.local.clock.now(), Path: a.Path, Attempt: a.Attempt,
		Effect: strings.TrimPrefix(c.Effect, x.ID+"/"), Chunk: &c,
	}
	c.Effect = it.Effect
	x.show(func(h *hub) { h.piece(it) })
}

// show has those who watch the run, or a run above it, see something.
func (x *Execution) show(see func(*hub)) {
	for y := x; y != nil; y = y.shownTo.Load() {
		see(&y.hub)
	}
}

// showTo has those who watch the parent, or a run above it, see the run from here on.
func (x *Execution) showTo(parent *Execution, from int64) {
	if parent == nil || !x.shownTo.CompareAndSwap(nil, parent) {
		return
	}
	parent.show(func(h *hub) { h.attach(x.ID, from) })
}

// durable is the number of the run's last event that is durable.
func (x *Execution) durable() int64 { return x.m.first - 1 }

// shownLast has those who watch the parent see what the run did, where they did not
// while it lasted, and that it is not executed here any more.
func (x *Execution) shownLast() {
	if s := x.m.run.Start; s != nil && s.Node != "" {
		x.showTo(x.local.Held(s.Parent), x.hub.start)
	}
	if parent := x.shownTo.Load(); parent != nil {
		parent.show(func(h *hub) { h.detach(x.ID) })
	}
}
