package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner/childrun"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory/follow"
)

// Execution is a run held in memory by a Local. It ends when the run ends, when only people or outside events can
// continue it, when its lease is lost, or when the Local closes. At most one goroutine at a time, the driver, applies
// messages to it; see driverQueue. When the messages are handled, the driver changes the state of the execution; see
// executionState. Fields belong to the driver unless their comment says otherwise; ID, local and startedAt are constant,
// and result, err and stopped may be read once done is closed.
type Execution struct {
	ID string

	local            *Local
	m                *machine
	lease            store.Lease  // written by the driver, with local.mu locked
	leaseState       leaseState   // written by the driver, with local.mu locked
	trajectoryLost   bool         // recording the trajectory has failed
	creation         *creation    // what the next commit makes of the run; nil once it is made
	messages         *driverQueue // any goroutine
	hub              hub          // any goroutine
	ack              chan error
	done             chan struct{} // any goroutine; closed when the execution has ended
	startedAt        time.Time
	restedAfter      int64     // constant; see Options.Rested
	state            stateCell // any goroutine reads it
	timer            *time.Timer
	savingCheckpoint atomic.Bool // any goroutine: a checkpoint is being written
	checkpointAfter  int64       // no checkpoint before this many events
	nextAttempt      *attempt    // what the driver runs itself when it has no messages

	parentLink    parentLink
	publishesTo   atomic.Pointer[Execution]              // any goroutine; the parent, whose readers see this run too
	children      childrun.Children                      // open children
	joins         map[*childrun.Child]context.CancelFunc // joins of children in progress
	pendingAcks   []chan error                           // commands applied, not yet durable
	takenMessages []string                               // messages to the session that the next commit consumes
	takenPosts    []int64                                // inbox messages that the next commit consumes
	cancelAcks    []chan error                           // cancellations, not yet durable in all children
	settled       map[string]bool                        // questions of children about increased budgets
	settling      int                                    // those that are being settled
	follower      *follow.Follower
	describer     describer
	resting       atomic.Pointer[resting] // any goroutine: the tree only waits, and its executions end
	batch         []driverMessage
	result        *Result // nil until the execution has ended
	sessionLength int
	err           error
	askingRuns    map[string]string // the child runs that ask something, by what the ids of their questions begin with
	stopped       *Stopped          // the Local closed before the run ended or paused
	missing       *Missing          // what this process lacks to continue; it becomes err when nothing is in flight
}

// Result describes how far a run has come.
type Result struct {
	Run     string        `json:"run"`
	Status  engine.Status `json:"status"`
	Outputs engine.Values `json:"outputs"`
	// Absent has the declared outputs that a completed run did not produce, each with the reason as text: the node to
	// which it refers was skipped.
	Absent     engine.Values      `json:"absent,omitempty"`
	Interrupts []engine.Interrupt `json:"interrupts,omitempty"`
	Usage      engine.Usage       `json:"usage"`
	Error      *engine.Error      `json:"error,omitempty"`
}

// resultOf returns the result of a run as it is.
func resultOf(r *engine.Run) Result {
	return Result{
		Run: r.ID, Status: r.Status(), Outputs: r.Outputs(), Absent: r.Absent(), Interrupts: r.Interrupts(),
		Usage: r.Usage(), Error: r.Failure(),
	}
}

// SessionLength returns how many messages the session of a round had when the execution ended; ok
// is false before it has ended, and for a run that is no round.
func (x *Execution) SessionLength() (n int, ok bool) {
	select {
	case <-x.done:
		return x.sessionLength, x.sessionLength > 0
	default:
		return 0, false
	}
}

var errClosing = errors.New("the process is shutting down")

// Done is closed when the execution has ended.
func (x *Execution) Done() <-chan struct{} { return x.done }

// Wait returns the result when the execution has ended. If ctx ends first, the error is that of ctx and the run
// continues. If the Local closed before the run ended or paused, the error is a *Stopped.
func (x *Execution) Wait(ctx context.Context) (Result, error) {
	select {
	case <-x.done:
		if x.err == nil && x.stopped != nil {
			return x.lastResult(), x.stopped
		}
		return x.lastResult(), x.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// lastResult returns the result, which is empty if the run could not be loaded.
func (x *Execution) lastResult() Result {
	if x.result == nil {
		return Result{}
	}
	return *x.result
}

// send adds a message to the queue of the driver.
func (x *Execution) send(m driverMessage) {
	x.local.clock.markBusy(x)
	if x.messages.put(m) {
		x.local.workers.run(job{x, nil})
	}
}

// drive handles messages until there are none. An attempt that it returns is the only thing that the run is about to
// do: the caller must run it at once, on its own goroutine.
func (x *Execution) drive() *attempt {
	for {
		x.nextAttempt = nil
		x.handleMessages()
		if x.changeState() >= releasing {
			return nil // no other goroutine becomes the driver again
		}
		if x.m.run.Status() != engine.Paused { // otherwise it supervises its children
			x.attachToParent()
			x.setTimer()
			x.enterIdle()
		}
		next := x.nextAttempt
		if x.messages.releaseDriver() {
			return next
		}
		if next != nil {
			x.local.workers.run(job{x, next})
		}
	}
}

// changeState changes the state as far as the run has come, and ends the execution if it is over.
func (x *Execution) changeState() executionState {
	if x.missing != nil && x.err == nil && len(x.m.active) == 0 {
		x.err = x.missing
	}
	p := x.progress()
	end := x.endOf()
	state := x.state.become(p.next())
	switch state {
	case ended:
		x.discard()
	case releasing:
		x.finish(end)
	case acquiring, running, waiting, cancelling, draining:
	}
	return state
}

// handleMessages handles the queued messages and their consequences.
func (x *Execution) handleMessages() {
	x.batch = x.messages.takeAll(x.batch)
	for i := range x.batch {
		if x.err == nil {
			if err := x.handle(&x.batch[i]); err != nil {
				x.err = err
			}
		}
		x.batch[i] = driverMessage{}
	}
	if x.err == nil {
		x.err = x.m.endAbandoned(x.local.clock.now())
	}
	if x.err == nil {
		x.err = x.fireTimers()
	}
	if x.err == nil {
		x.err = x.advance()
		x.stopUnneeded()
		x.superviseChildren()
		x.notifyParent()
	}
}

// advance runs what may run now, commits, and starts what the commit allows, until nothing can be done at once.
func (x *Execution) advance() error {
	for {
		if err := x.runDirect(); err != nil {
			return err
		}
		if err := x.commit(); err != nil {
			return err
		}
		held := len(x.m.starts) > 0 && !x.parentLink.link.MayLaunch(originOf(x.m.run.Start))
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
		if x.draining() {
			delete(x.m.active, a.Path)
			continue
		}
		if err := x.runAttempt(a); err != nil {
			return err
		}
	}
	return nil
}

// maxStaged is the maximum number of events of one commit.
const maxStaged = 2000

// runAttempt runs an attempt on the run's goroutine.
func (x *Execution) runAttempt(a *attempt) error {
	a.io = x
	returned := false
	defer func() {
		if !returned { // this goroutine ends; another one becomes the driver
			go x.handleExit(a)
		}
	}()
	micros, err := a.runNode()
	returned = true
	if serr := x.m.applyOutcome(x.local.clock.now(), a, err, micros); serr != nil {
		return serr
	}
	*a = attempt{}
	x.m.freeAttempt = a
	return nil
}

// handleExit handles an attempt whose function ended the goroutine that drove the run, and becomes the driver.
func (x *Execution) handleExit(a *attempt) {
	if err := x.m.applyOutcome(x.local.clock.now(), a, a.exitError(), 0); err != nil && x.err == nil {
		x.err = err
	}
	job{x, nil}.do()
}

// launch starts the attempts whose start is durable.
func (x *Execution) launch() error {
	starts, err := x.m.takeLaunchable(x.m.run.Now())
	if err != nil {
		return err
	}
	for _, a := range starts {
		switch {
		case x.draining():
			delete(x.m.active, a.Path)
		case a.host.inline:
			x.m.direct = append(x.m.direct, a)
		default:
			x.spawn(a)
		}
	}
	clear(starts)
	return nil
}

// spawn runs an attempt on its own goroutine.
func (x *Execution) spawn(a *attempt) {
	a.io = x
	actx, cancel := context.WithCancelCause(x.local.ctx)
	a.cancel = cancel
	a.ctx.Bind(actx)
	a.enteredAt = time.Now()
	x.startTimeouts(a)
	// A goroutine that has written to a disk has a large stack, which it must not keep while a node waits for a model.
	waits := len(a.Contexts) > 0 && !x.local.committer.direct
	if x.nextAttempt == nil && len(x.m.active) == 1 && !waits {
		x.nextAttempt = a
		return
	}
	x.local.workers.run(job{x, a})
}

// handle applies one message.
func (x *Execution) handle(m *driverMessage) error {
	switch {
	case m.command != nil:
		return x.handleCommand(m)
	case m.attempt == nil:
		return nil
	case x.m.active[m.attempt.Path] != m.attempt: // abandoned before
		if m.ack != nil {
			m.ack <- errAborted
		}
		return nil
	case m.ended:
		return x.handleAttemptEnd(m)
	case m.stop > 0:
		return x.stop(m.attempt, m.stop)
	}
	return x.stageForAttempt(m)
}

// stageForAttempt applies the events that an attempt needs durable before it continues. An attempt that was stopped
// starts no further effect.
func (x *Execution) stageForAttempt(m *driverMessage) error {
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
	x.pendingAcks = append(x.pendingAcks, m.ack)
	return nil
}

func (x *Execution) handleCommand(m *driverMessage) error {
	e, err := m.command(x.m.run)
	if errors.Is(err, errCancelling) {
		x.cancelAcks = append(x.cancelAcks, m.ack)
		x.m.checkChildren = true
		return nil
	}
	if err != nil || e == nil {
		m.ack <- err
		return nil //nolint:nilerr // an error of a refused command is for its sender, not for the run
	}
	if q, ok := e.(*queuedAnswer); ok {
		e = q.Event
		x.takenMessages = append(x.takenMessages, q.message)
	}
	steering, steers := e.(*engine.SteeringAdded)
	if steers && !x.offerSteering(steering) {
		m.ack <- errSteeringLate(x.ID)
		return nil
	}
	if m.delivery != nil {
		m.delivery.removedByCommit = true
		x.takenPosts = append(x.takenPosts, m.delivery.ID)
	}
	if err := x.m.step(x.local.clock.now(), e); err != nil {
		m.ack <- err
		return err
	}
	if steers && steering.Interrupt {
		x.interruptCall(steering.Path)
	}
	x.reattachToParent()
	if _, cancel := e.(*engine.CancelRequested); cancel {
		x.cancelAcks = append(x.cancelAcks, m.ack)
		x.m.checkChildren = true
	} else {
		x.pendingAcks = append(x.pendingAcks, m.ack)
	}
	x.stopUnneeded()
	return nil
}

// handleAttemptEnd handles the end of an attempt. Of an attempt that stopped because the process stops only the
// effects are recorded.
func (x *Execution) handleAttemptEnd(m *driverMessage) error {
	a := m.attempt
	a.cancel(nil)
	if x.draining() && m.err != nil && len(a.interrupts) == 0 && a.pullPort == "" && a.expand == nil {
		delete(x.m.active, a.Path)
		for _, e := range a.pending {
			if err := x.m.step(x.local.clock.now(), e); err != nil {
				return err
			}
		}
		return nil
	}
	if missing := a.missingHere(m.err); missing != nil {
		x.stopForMissing(a, missing)
		return nil
	}
	if err := x.m.applyOutcome(x.local.clock.now(), a, m.err, m.micros); err != nil {
		return err
	}
	x.stopUnneeded()
	return nil
}

// commit makes the staged events durable, notifies those who wait for them, and publishes them.
func (x *Execution) commit() error {
	c, ok := x.m.takeCommit()
	if !ok {
		x.acknowledge(nil)
		return nil
	}
	one := x.local.committer.buffer()
	defer x.local.committer.free(one)
	one[0] = store.Append{Commit: c, Fence: x.lease.Fence, Head: head(x.m.run), Release: x.releasesLease(), Carryover: x.m.carryoverChange(), ConsumedMessages: x.takenMessages, ConsumedPosts: x.takenPosts, NearBudgets: x.m.run.TakeNearBudgets(c.First), AnnouncesOnly: onlyEffectStarts(c.Events)}
	x.takenMessages, x.takenPosts = nil, nil
	if x.leaseState == leaseReleased { // by the previous commit, and events were staged since
		x.reacquireWithCommit()
		one[0].Fence = x.lease.Fence
	}
	if x.leaseState == leasePending {
		one[0].Acquire = &x.lease
	}
	if x.creation != nil {
		one[0].Start = x.creation.start
	}
	err := x.local.committer.commit(one[:], x.ack)
	if errors.Is(err, store.ErrStateConflict) {
		err = x.commitFailure(one, &c, err)
	}
	if err == nil {
		x.recordTrajectory(c)
	}
	x.acknowledge(err)
	if err != nil {
		return fmt.Errorf("run %s: %w", x.ID, err)
	}
	if one[0].Release {
		x.setLeaseState(leaseReleased)
	} else {
		x.setLeaseState(leaseHeld)
	}
	if x.state.load() == acquiring {
		x.state.become(running)
	}
	x.markCreated()
	x.hub.setFence(x.lease.Fence)
	x.publish(func(h *hub) { h.publishCommit(x.ID, &c) })
	x.local.saveLiveCheckpoint(x)
	return nil
}

// onlyEffectStarts reports whether events only announce effects.
func onlyEffectStarts(events []engine.Event) bool {
	for _, e := range events {
		if _, ok := e.(*engine.EffectStarted); !ok {
			return false
		}
	}
	return true
}

func (x *Execution) acknowledge(err error) {
	for _, ack := range x.pendingAcks {
		ack <- err
	}
	x.pendingAcks = x.pendingAcks[:0]
}

// head returns the row of the run in listings.
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

// setTimer sets the system timer for the next timer of the run.
func (x *Execution) setTimer() {
	_, at, ok := x.m.run.NextTimer()
	switch {
	case !ok || x.draining() || x.m.program.recorded:
		if x.timer != nil {
			x.timer.Stop()
		}
	case x.timer == nil:
		x.timer = time.AfterFunc(x.local.clock.until(at), func() { x.send(driverMessage{}) })
	default:
		x.timer.Reset(x.local.clock.until(at))
	}
}

// fireTimers fires the timers that are due.
func (x *Execution) fireTimers() error {
	for !x.draining() && !x.m.program.recorded {
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

// finish ends the execution; the run stays as its journal has it.
func (x *Execution) finish(end childrun.End) {
	x.local.clock.markBusy(x)
	ctx := context.WithoutCancel(x.local.ctx)
	for _, a := range x.m.active {
		if a.cancel != nil {
			a.cancel(errClosing)
		}
	}
	if x.timer != nil {
		x.timer.Stop()
	}
	x.acknowledge(x.err)
	r := x.m.run
	if !r.Status().Ended() {
		x.cancelAcknowledged(cmp.Or(x.err, ErrEnded))
	}
	x.cancelAcknowledged(x.err)
	result := resultOf(r)
	x.result = &result
	x.askingRuns = askingRunsOf(r)
	if x.err == nil {
		if end == childrun.Closing && x.wasStopped() {
			x.stopped = &Stopped{x.ID}
		}
		x.local.saveCheckpoint(ctx, x)
		if x.leaseState == leaseReleased {
			x.m.fence = x.lease.Fence + 1
		}
		if x.m.sessionPast != nil {
			x.sessionLength = x.m.contexts[engine.MainContext].History.Len()
		}
		if end != childrun.Closing { // otherwise attempts that were not launched are missing
			x.local.paused.add(x.m)
		}
		x.local.sessions.put(x.m)
	}
	x.logEnd()
	x.cancelDescriptions()
	x.closeTrajectory(ctx)
	x.reportRest()
	x.publishEnd() // before another execution of the run can attach itself
	x.local.release(ctx, x)
	x.refuseMessages()
	x.hub.close()
	x.handOver(end)
	x.local.loops.Done()
}

// refuseMessages answers messages that arrived too late.
func (x *Execution) refuseMessages() {
	for _, m := range x.messages.takeAll(nil) {
		if m.ack != nil {
			m.ack <- ErrEnded
		}
	}
}

// flush implements attemptIO.
func (x *Execution) flush(a *attempt, events []engine.Event) error {
	if a.cancel == nil { // on the driver's goroutine
		for _, e := range events {
			if err := x.m.step(x.local.clock.now(), e); err != nil {
				return err
			}
		}
		return x.commit()
	}
	ack := make(chan error, 1)
	x.send(driverMessage{attempt: a, events: events, ack: ack})
	select {
	case err := <-ack:
		return err
	case <-x.done:
		return ErrEnded
	}
}
