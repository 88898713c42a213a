package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory/follow"
)

// Options configure a Local. Store is required; other zero fields have defaults.
type Options struct {
	Store    Store
	Services Services
	// Parallel is the maximum number of concurrent nodes of one run; the default is 16.
	Parallel int
	// Lease is the duration of leases, which are renewed; the default is 15 s.
	Lease time.Duration
	// Poll is the interval at which messages from other processes are read; the default is 250 ms.
	Poll time.Duration
	// Flow returns the program of a sub-flow by fingerprint; it may be nil if no flow uses another.
	Flow func(ctx context.Context, fingerprint string) (*Program, error)
	// ToolFlow returns the program of a flow that is offered as a tool, and the model that
	// replaces the flow's, "" for none. It may be nil if no flow is. What it returns, Flow
	// finds in any process.
	ToolFlow func(ctx context.Context, tool string) (p *Program, model string, err error)
	// RecordedProgram returns a program for reading and stopping a run whose own program this process does not have:
	// see NewRecordedProgram. nil returns none.
	RecordedProgram func(ctx context.Context, run string) (*Program, error)
	// Specs returns the stored specs of the node types with which a run was started, by digest, nil if there are
	// none; with nil only versions are compared.
	Specs func(ctx context.Context, digest string) (*flow.Specs, error)
	// MaxDepth is the maximum number of ancestors of a child run; the default is 8.
	MaxDepth int
	// Program returns the program with which a run was started; a *Missing error lists what this process lacks. If it
	// is set, and the Store has recovery, the Local continues runs of other processes that have died: those that were
	// executing and those whose timer is due. With nil such runs wait until they are resumed.
	Program func(ctx context.Context, run string) (*Program, error)
	// Runner is the name of the runner that schedules the runs of this Local, recorded with each run that it starts;
	// "" means that the processes schedule them. A Local does not execute or change runs of another runner.
	Runner string
	// RecordOnly makes a Local that records starts, forks and commands and executes no node: another process does.
	// An execution ends when what caused it is durable.
	RecordOnly bool
	// Rest ends the executions of a tree of runs, without an error, when all of them only wait, and their first timer
	// is further away than this: see Execution.RestsUntil. 0 keeps them until the timer fires.
	Rest time.Duration
	// Drain is how long Close waits for effects in flight to end by themselves; 0 cancels them at once.
	Drain time.Duration
	// Trajectories records the trajectories of runs; nil records none.
	Trajectories *TrajectoryOptions
	// Rested is called when an execution ends because its run has ended, or because only people or outside events can
	// continue it. After is the number of the last event that was there before the execution, if an earlier one ended in
	// the same way, else 0. It must not block.
	Rested func(run string, f *flow.Flow, after int64)
	// Skip is called when all runs of this Local only wait, one of them for a timer: true advances the clock to the
	// first timer; after false it is called again soon. It gets what each run waits for, and must not block. nil
	// waits, which every use but tests needs.
	Skip   func(open map[string][]engine.Interrupt) bool
	Logger *slog.Logger
}

// Local runs flows in this process.
type Local struct {
	o          Options
	store      *store.Full // o.Store with the methods of every capability
	owner      string
	committer  *committer
	workers    *workers
	ctx        context.Context
	cancel     context.CancelFunc
	sweeper    *sweeper // nil without recovery
	loops      sync.WaitGroup
	clock      clock
	liveWriter liveWriter
	drain      atomic.Int64 // how long Close waits for effects, in nanoseconds
	abandoned  atomic.Int64 // functions of abandoned nodes that have not returned

	mu       sync.Mutex
	held     map[string]*Execution
	loading  map[string]chan struct{} // runs being loaded; closed after the load
	closed   bool
	paused   pausedRuns
	sessions sessionCache
}

// ErrClosed is returned once the Local is closing.
var ErrClosed = errors.New("the runner is closing")

// NewLocal starts a runner; Close it.
func NewLocal(o Options) *Local {
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	if o.Lease <= 0 {
		o.Lease = 15 * time.Second
	}
	if o.Poll <= 0 {
		o.Poll = 250 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Local{
		o: o, store: store.Complete(o.Store), owner: fmt.Sprintf("%s:%d:%s", processScope(), os.Getpid(), rand.Text()[:8]),
		committer: newCommitter(o.Store), held: make(map[string]*Execution), loading: make(map[string]chan struct{}),
		clock: clock{skip: o.Skip, rests: o.Rest > 0},
	}
	l.liveWriter.l, l.liveWriter.store = l, o.Store.Capabilities().LiveText
	l.drain.Store(int64(o.Drain))
	l.o.Services.maxDepth, l.o.Services.toolFlow = o.MaxDepth, o.ToolFlow
	l.o.Services.history = func(run string) convo.Source { return &messageSource{l.store, run} }
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.workers = newWorkers(l.ctx.Done())
	l.loops.Add(2)
	go l.keepLeases()
	go l.readInbox()
	capabilities := o.Store.Capabilities()
	if capabilities.Cache != nil {
		l.loops.Add(1)
		go l.sweepCache()
	}
	if o.Program != nil && capabilities.Recovery != nil && o.Runner == "" {
		l.sweeper = &sweeper{l: l}
		l.loops.Add(1)
		go l.recover()
	}
	return l
}

// StartOptions describe the start of a run.
type StartOptions struct {
	// ID is the run's id; starting an existing run joins it.
	ID       string
	Inputs   engine.Values
	State    engine.Values
	User     string
	Parent   string
	Depth    int
	Origin   string
	Targets  []string
	Breaks   []string
	Settings convo.Settings // of the main context
	// Folder is the folder of the files that nodes name; "" means the folder of the flow's file.
	Folder string
	// Agents are the sub-agents of the session so far, whose numbers are kept; see engine.RunStarted.
	Agents []string
	// Round is set for a round of a session. Start expects that the store has made its run;
	// StartRound makes it.
	Round *Round

	userState   *engine.UserStateRead // of State, nil for none
	treeSession string                // the session and round of the root, for a child run
	treeRound   int

	node   string                // the interrupt of Parent that waits for the run
	caller string                // the node of Parent whose tool call starts it
	main   *engine.ContextChange // creates the main context, in place of Settings
}

// Start creates a run and drives it. An existing run with the id is resumed, so that starting is idempotent. If
// that run was started with other inputs, or otherwise in another way, Start returns an error with the code
// request_reused.
func (l *Local) Start(ctx context.Context, p *Program, b StartOptions) (*Execution, error) {
	first := func(x *Execution) error { return x.stageStart(p, &b) }
	if b.Round != nil { // the store has made the run
		x, _, err := l.getOrLoad(ctx, p, b.ID, loadNew, first)
		return x, err
	}
	given := b // first adds what it reads
	x, fresh, err := l.startNew(ctx, p, &b, RoundStart{}, first)
	exists := errors.Is(err, store.ErrExists)
	if err != nil && !exists || fresh {
		return x, err
	}
	if err := given.checkRepeats(ctx, l.store, p); err != nil {
		return nil, err
	}
	if exists {
		x, _, err = l.getOrLoad(ctx, p, b.ID, loadAny, first)
	}
	return x, err
}

// StartRound starts the run of a session's next round with the message that waits first
// there. The run, the message that it takes and what the session says are one commit with
// the run's first events. The error is store.ErrExists if the run exists or a round has taken the
// message. The error is store.ErrBusy if the session is not as b.Round has it, store.ErrSessionAdvanced
// where its state has changed.
func (l *Local) StartRound(ctx context.Context, p *Program, b StartOptions, start RoundStart) (*Execution, error) {
	x, _, err := l.startNew(ctx, p, &b, start,
		func(x *Execution) error { return x.stageStart(p, &b) })
	return x, err
}

// Resume executes a run after a crash, a pause or a shutdown. Where this process executes
// it already, Resume returns that execution.
func (l *Local) Resume(ctx context.Context, p *Program, id string) (*Execution, error) {
	x, _, err := l.getOrLoad(ctx, p, id, loadAny, nil)
	return x, err
}

// newExecution returns an execution, which the caller drives.
func (l *Local) newExecution(id string, m *machine, lease store.Lease, is leaseState) *Execution {
	x := &Execution{ID: id, local: l, m: m, lease: lease, leaseState: is, messages: newDriverQueue(), startedAt: time.Now(), ack: make(chan error, 1), done: make(chan struct{})}
	if is != leasePending {
		x.state.become(running)
	}
	if m != nil {
		x.restedAfter = restedAt(m)
		m.users = l.store
		x.hub.initialize(id, m.first-1, m.run.OpenChildren())
		x.hub.lastSeq, x.hub.fence = m.seq, lease.Fence
	}
	if m != nil && m.sessionPast != nil { // a caller that sent a command is about to subscribe
		x.hub.startBuffering()
	}
	return x
}

// stageStart stages the run's first event, unless the run has one.
func (x *Execution) stageStart(p *Program, b *StartOptions) error {
	if x.m.run.Start != nil {
		return nil
	}
	if err := x.local.readUserState(x.local.ctx, p, b); err != nil {
		return err
	}
	e := b.startedEvent(p, x.local.o.Parallel)
	e.Runner = x.local.o.Runner
	if b.Round != nil {
		if err := b.Round.start(x.m, &x.local.sessions, e, b.Settings); err != nil {
			return err
		}
		x.hub.startBuffering()
	}
	return x.m.step(x.local.clock.now(), e)
}

// startedEvent returns the run's first event.
func (b *StartOptions) startedEvent(p *Program, parallel int) *engine.RunStarted {
	s := b.Settings
	main := engine.ContextChange{
		ID: engine.MainContext, Create: true,
		Body: &convo.Change{Create: true, Kind: convo.Main, Settings: &s},
	}
	if b.main != nil {
		main = *b.main
	}
	var agents []string
	if b.Parent == "" {
		agents = follow.AgentsOf(p.Flow, b.Agents)
	}
	return &engine.RunStarted{
		Flow: p.Flow.Name, Fingerprint: p.Fingerprint, Inputs: b.Inputs,
		State: b.State, User: b.User, Parent: b.Parent, Origin: b.Origin, Targets: b.Targets, Breaks: b.Breaks,
		Parallel: parallel, Pinned: p.Pinned, Specs: p.Specs,
		Contexts: []engine.ContextChange{main}, Depth: b.Depth, Node: b.node, Caller: b.caller, Agents: agents, Folder: p.folder(b.Folder),
		MessagePrefix: b.messagePrefix(), UserState: b.userState, TreeSession: b.treeSession, TreeRound: b.treeRound,
	}
}

// messagePrefix of a child run is its id, which is unique. Two flows of a tree may have the same node ids, and a flow
// may be recursive.
func (b *StartOptions) messagePrefix() string {
	if b.Parent == "" {
		return ""
	}
	return b.ID + "/"
}

// ErrDependenciesChanged: the program differs from the one with which the run was started.
var ErrDependenciesChanged = errors.New("what the run runs under has changed since it was started")

// release releases an execution's lease.
func (l *Local) release(ctx context.Context, x *Execution) {
	if x.leaseState == leaseReleased {
		return
	}
	if err := l.store.Release(ctx, x.lease); err != nil && !errors.Is(err, store.ErrFenced) {
		l.o.Logger.Warn("release lease", "run", x.ID, "error", err)
	}
}

// removeExecution removes an ended execution and wakes the callers that wait for it.
func (l *Local) removeExecution(x *Execution) {
	l.mu.Lock()
	if l.held[x.ID] == x {
		delete(l.held, x.ID)
	}
	l.mu.Unlock()
	l.clock.recheck()
	l.recheckTree(x.ID)
	x.state.become(ended)
	close(x.done)
}

// Owner returns this process as an owner of runs: "here:pid:random".
func (l *Local) Owner() string { return l.owner }

// Held returns the execution of a run that this process drives, or nil.
func (l *Local) Held(id string) *Execution {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[id]
}

// SetDrain replaces Options.Drain for a later Close.
func (l *Local) SetDrain(d time.Duration) { l.drain.Store(int64(d)) }

func (l *Local) draining() time.Duration { return time.Duration(l.drain.Load()) }

// Close stops all runs: no further node or effect starts, and effects in flight have Options.Drain to end by
// themselves before they are cancelled. Their results are recorded, every run stays resumable, and its lease is
// released when nothing of it is in flight. If ctx ends first, the rest is abandoned, which loses nothing that was
// acknowledged.
func (l *Local) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	held := make([]*Execution, 0, len(l.held))
	for _, x := range l.held {
		held = append(held, x)
		x.state.drain()
		x.command(func(*engine.Run) (engine.Event, error) {
			x.stopAttempts(l.draining() > 0)
			return nil, nil
		})
	}
	l.mu.Unlock()
	l.awaitEffects(ctx, held)
	l.cancel()
	ended := make(chan struct{})
	go func() {
		l.loops.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		l.releaseAbandoned()
		return fmt.Errorf("close: some nodes did not stop: %w", ctx.Err())
	}
}

// awaitEffects returns when no effect of the executions is in flight, or when the time is over.
func (l *Local) awaitEffects(ctx context.Context, held []*Execution) {
	d := l.draining()
	if d <= 0 {
		return
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for _, x := range held {
		select {
		case <-x.done:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// releaseAbandoned releases the leases of runs whose nodes did not stop: the fence refuses their later commits.
func (l *Local) releaseAbandoned() {
	for _, x := range l.executions() {
		if err := l.store.Release(context.WithoutCancel(l.ctx), x.lease); err != nil && !errors.Is(err, store.ErrFenced) {
			l.o.Logger.Warn("release lease", "run", x.ID, "error", err)
		}
	}
}

// stopAttempts stops all attempts; called by the driver. With drain, attempts with effects in flight may wait for
// them, and start no others.
func (x *Execution) stopAttempts(drain bool) {
	for _, a := range x.m.active {
		if a.cancel == nil {
			continue
		}
		if drain {
			a.stopping.Store(true)
			if a.effectsInFlight.Load() > 0 {
				continue
			}
		}
		a.cancel(errClosing)
	}
}
