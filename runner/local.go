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

// Options of a Local; Store is required, zero is the default elsewhere.
type Options struct {
	Store    Store
	Services Services
	// Parallel bounds how many nodes of one run are running at once; 16.
	Parallel int
	// Lease is how long a run stays owned without a sign of life; 15 s.
	Lease time.Duration
	// Poll is how often messages from other processes are looked for; 250 ms.
	Poll time.Duration
	// Flow finds the program of a flow that a run's flow uses, by fingerprint; nil
	// where no flow uses another.
	Flow func(ctx context.Context, fingerprint string) (*Program, error)
	// RecordedProgram makes the program for reading and stopping a run whose own program this
	// process does not have: see Recorded. Nil has none.
	RecordedProgram func(ctx context.Context, run string) (*Program, error)
	// Specs returns what is kept under a digest of the node types that a run was
	// started with, nil for nothing; nil compares versions alone.
	Specs func(ctx context.Context, digest string) (*flow.Specs, error)
	// MaxDepth bounds how many runs may be above a run that a node starts; 8.
	MaxDepth int
	// Program finds the program a run was started under; a *Missing error says what
	// this process lacks. Where it is set, and the Store is a Recovery, the Local
	// continues runs that their processes left: those that were executing and those
	// whose timer is due. nil leaves such runs to whoever resumes them.
	Program func(ctx context.Context, run string) (*Program, error)
	// Drain is how long Close waits for effects in flight to end by themselves; 0 cancels
	// them at once.
	Drain time.Duration
	// Trajectories fill the trajectories of runs; nil keeps none.
	Trajectories *TrajectoryOptions
	// Skip is asked where all runs that are held here wait, one of them for a
	// time: true puts the clock forward to the first timer, so that nobody waits
	// for it; false is asked again soon. It is given what they wait for, by run,
	// and must not block. nil waits, as every use but tests wants.
	Skip   func(open map[string][]engine.Interrupt) bool
	Logger *slog.Logger
}

// Local runs flows in this process.
type Local struct {
	o         Options
	store     *store.Full // o.Store with the methods of every capability
	owner     string
	committer *committer
	workers   *workers
	ctx       context.Context
	cancel    context.CancelFunc
	sweeper   *sweeper // nil where nothing is recovered
	loops     sync.WaitGroup
	clock     clock
	drain     atomic.Int64 // how long Close waits for effects, in nanoseconds
	abandoned atomic.Int64 // functions of nodes that were given up and have not returned

	mu       sync.Mutex
	held     map[string]*Execution
	loading  map[string]chan struct{} // runs being loaded; closed when that is over
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
		clock: clock{skip: o.Skip},
	}
	l.drain.Store(int64(o.Drain))
	l.o.Services.maxDepth = o.MaxDepth
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
	if o.Program != nil && capabilities.Recovery != nil {
		l.sweeper = &sweeper{l: l}
		l.loops.Add(1)
		go l.recover()
	}
	l.loops.Go(warmUp)
	return l
}

// StartOptions says what a run starts with.
type StartOptions struct {
	// ID is the run's id; starting one that is there already joins it.
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
	// Folder is where files are that nodes name; "" is the folder of the flow's file.
	Folder string
	// Agents are the sub-agents that the session has so far, whose numbers stay; see
	// engine.RunStarted.
	Agents []string
	// Round is set for a round of a session. Start expects that the store has made its run;
	// StartRound makes it.
	Round *Round

	treeSession string // the session and round of the root, for a child run
	treeRound   int

	node   string                // the interrupt of Parent that waits for the run
	caller string                // the node of Parent whose tool call begins it
	main   *engine.ContextChange // makes the main context, in place of Settings
}

// Start creates a run and drives it. A run of that id that exists is resumed
// instead, whatever b says, so that starting is idempotent.
func (l *Local) Start(ctx context.Context, p *Program, b StartOptions) (*Execution, error) {
	first := func(x *Execution) error { return x.stageStart(p, &b) }
	if b.Round != nil { // the store has made the run
		x, _, err := l.getOrLoad(ctx, p, b.ID, loadNew, first)
		return x, err
	}
	x, _, err := l.startOrLoad(ctx, p, &b, first)
	return x, err
}

// startOrLoad makes a run, or loads it if it exists.
func (l *Local) startOrLoad(ctx context.Context, p *Program, b *StartOptions, first func(*Execution) error) (x *Execution, fresh bool, err error) {
	x, fresh, err = l.startNew(ctx, p, b, RoundStart{}, first)
	if errors.Is(err, store.ErrExists) {
		x, fresh, err = l.getOrLoad(ctx, p, b.ID, loadAny, first)
	}
	return x, fresh, err
}

// StartRound starts the run of a session's next round with the message that waits first
// there. The run, the message that it takes and what the session says are one commit with
// the run's first events. store.ErrExists where the run exists or a round has taken the
// message, store.ErrBusy where the session is not as b.Round has it, store.ErrSessionAdvanced
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

// newExecution is one of a run that is there, driven by who makes it.
func (l *Local) newExecution(id string, m *machine, lease store.Lease) *Execution {
	x := &Execution{ID: id, local: l, m: m, lease: lease, messages: newDriverQueue(), startedAt: time.Now(), ack: make(chan error, 1), done: make(chan struct{}), parentLink: parentLink{ready: make(chan struct{})}}
	if m != nil {
		x.hub.initialize(id, m.first-1, m.run.OpenChildren())
	}
	if m != nil && m.sessionPast != nil { // whoever said something is about to watch
		x.hub.startBuffering()
	}
	return x
}

// stageStart stages the run's first event, unless somebody was faster.
func (x *Execution) stageStart(p *Program, b *StartOptions) error {
	if x.m.run.Start != nil {
		return nil
	}
	e := b.startedEvent(p, x.local.o.Parallel)
	if b.Round != nil {
		if err := b.Round.start(x.m, &x.local.sessions, e, b.Settings); err != nil {
			return err
		}
		x.hub.startBuffering()
	}
	return x.m.step(x.local.clock.now(), e)
}

// startedEvent is the run's first.
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
		MessagePrefix: b.messagePrefix(), TreeSession: b.treeSession, TreeRound: b.treeRound,
	}
}

// messagePrefix of a child run is its id, which is unique. Two flows of a tree may
// use the same node ids, and a flow may run itself.
func (b *StartOptions) messagePrefix() string {
	if b.Parent == "" {
		return ""
	}
	return b.ID + "/"
}

// ErrDependenciesChanged: the run was started under something else than it is to be
// resumed with.
var ErrDependenciesChanged = errors.New("what the run runs under has changed since it was started")

// release gives an execution's lease back; who wants the run meanwhile waits until
// the execution is done.
func (l *Local) release(ctx context.Context, x *Execution) {
	l.mu.Lock()
	x.releasing = true
	l.mu.Unlock()
	if x.leaseState == leaseReleased {
		return
	}
	if err := l.store.Release(ctx, x.lease); err != nil && !errors.Is(err, store.ErrFenced) {
		l.o.Logger.Warn("release lease", "run", x.ID, "error", err)
	}
}

// removeExecution ends an execution for those who wait for that.
func (l *Local) removeExecution(x *Execution) {
	l.mu.Lock()
	if l.held[x.ID] == x {
		delete(l.held, x.ID)
	}
	l.mu.Unlock()
	l.clock.recheck()
	close(x.done)
}

// Owner is this process as the owner of runs: "here:pid:random".
func (l *Local) Owner() string { return l.owner }

// Held returns the execution of a run that this process drives, or nil.
func (l *Local) Held(id string) *Execution {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[id]
}

// SetDrain replaces Options.Drain for a Close to come.
func (l *Local) SetDrain(d time.Duration) { l.drain.Store(int64(d)) }

func (l *Local) draining() time.Duration { return time.Duration(l.drain.Load()) }

// Close stops: no node and no effect starts any more, and the effects in flight have
// Options.Drain to end by themselves before they are cancelled. What effects brought is
// kept, every run is left resumable, and its lease is given back as soon as nothing of
// it is in flight. When ctx ends first the rest is abandoned, which loses nothing that
// was acknowledged.
func (l *Local) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	held := make([]*Execution, 0, len(l.held))
	for _, x := range l.held {
		held = append(held, x)
		x.closing.Store(true)
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

// awaitEffects returns when nothing is in flight in the executions any more, or when
// the time for that is over.
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

// releaseAbandoned gives back the leases of runs whose nodes did not stop: the fence
// refuses whatever they still want to commit.
func (l *Local) releaseAbandoned() {
	for _, x := range l.executions() {
		if err := l.store.Release(context.WithoutCancel(l.ctx), x.lease); err != nil && !errors.Is(err, store.ErrFenced) {
			l.o.Logger.Warn("release lease", "run", x.ID, "error", err)
		}
	}
}

// stopAttempts tells all attempts to stop; on the run's goroutine. With drain those that have
// effects in flight may wait for them, and start no other.
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
