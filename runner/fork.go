package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Fork says what a run begins with that shares the past of another. How much of
// it is At or From, or else follows from what is edited.
type Fork struct {
	ID, Origin, By string
	// At is the number of the last event to share, 0 for none given.
	At int64
	// From is the path of a node, or of an iteration: what was before its first
	// start is shared. "" for none given.
	From string
	// Inputs are all of the run's inputs, checked.
	Inputs engine.Values
	// State is written at the point where the past ends.
	State  []engine.StateChange
	Breaks []string
	// Settings are those of the main context from there on, nil for as they are;
	// Provider and Model go over them.
	Settings        *convo.Settings
	Provider, Model string
}

// ForkPlan is what a fork comes to: what is reused, and what runs.
type ForkPlan struct {
	// Run is the run whose past is shared, up to event At.
	Run string
	At  int64
	// Asked is the event that was asked for, where that is another than At.
	Asked int64
	// Events is how many events the run had.
	Events int64
	// Nodes are those of the flow that the fork runs, in flow order, those of open
	// iterations after their composite. Removed are nodes that the flow has no more.
	Nodes   []ForkedNode
	Removed []string
	// Shared is what was spent in the past that is shared.
	Shared engine.Usage

	fork    Fork
	user    string
	program *Program
	event   *engine.RunForked
	base    store.Base
	carried []engine.Event // of the commit after the base's, those that are shared
}

// Reuse is what a fork makes of a node.
type Reuse string

// What becomes of a node in a fork.
const (
	Reused    Reuse = "reused"    // it has ended, and its outcome is shared
	Continues Reuse = "continues" // it goes on: it waits, or its iterations are shared
	Again     Reuse = "again"     // it had begun in the other run, and begins anew
	New       Reuse = "new"       // the other run's flow has no such node
	Ahead     Reuse = "ahead"     // the other run did not come to it either
)

// ForkedNode is a node of a fork.
type ForkedNode struct {
	Path, Type string
	Reuse      Reuse
	// Why says why it is not reused, "" where it only comes later.
	Why string
}

// Beginning is how a run began, as it holds for what it does now: for a fork with
// its own flow and inputs.
func (l *Local) Beginning(ctx context.Context, id string) (*engine.RunStarted, error) {
	return BeginningIn(ctx, l.o.Store, id)
}

// Record is what of a store says how runs began.
type Record interface {
	Journal
	Checkpoints
}

// BeginningIn is Local.Beginning for a store.
func BeginningIn(ctx context.Context, s Record, id string) (*engine.RunStarted, error) {
	row, err := s.Run(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if start := kept(ctx, s, id); start != nil {
		return start, nil
	}
	first, err := firstCommit(ctx, s, id, 0)
	if err != nil || len(first) == 0 {
		return nil, cmp.Or(err, neverStarted(id))
	}
	start, ok := first[0].(*engine.RunStarted)
	if !ok {
		return nil, neverStarted(id)
	}
	f, err := forkOf(ctx, s, &row)
	switch {
	case err != nil:
		return nil, err
	case f != nil:
		return f.Over(start), nil
	case row.Base != nil:
		return nil, neverStarted(id)
	}
	return start, nil
}

// kept is how a run began, as its checkpoint has it; nil where there is none. The
// first commit of a run may be a long one.
func kept(ctx context.Context, s Checkpoints, id string) *engine.RunStarted {
	cp, err := s.Checkpoint(ctx, id)
	if err != nil {
		return nil
	}
	var c checkpoint
	if json.Unmarshal(cp.Body, &c) != nil || c.Version != checkpointVersion {
		return nil
	}
	start, err := engine.StartOf(c.Run)
	if err != nil {
		return nil
	}
	return start
}

// forkOf is what made the run a fork, nil where it is none. One made by an older
// version, that shares no whole commit of the other run, has no base.
func forkOf(ctx context.Context, j Journal, row *store.Run) (*engine.RunForked, error) {
	var shared int64
	if row.Base != nil {
		shared = row.Base.Seq
	}
	own, err := firstCommit(ctx, j, row.ID, shared)
	for _, e := range slices.Backward(own) {
		if f, ok := e.(*engine.RunForked); ok {
			return f, err
		}
	}
	return nil, err
}

// MainSettings are those that the main context of a run began with, and a fork's
// went on with.
func MainSettings(s *engine.RunStarted) (settings convo.Settings, ok bool) {
	for _, c := range s.Contexts {
		body, err := changeOf(c.Body)
		if err != nil || c.ID != engine.MainContext {
			continue
		}
		for _, x := range []*convo.Settings{body.Settings, body.Set} {
			if x != nil {
				settings, ok = *x, true
			}
		}
	}
	return settings, ok
}

func neverStarted(id string) error {
	return &engine.Error{
		Code: engine.CodeFork, Permanent: true, Message: fmt.Sprintf("run %s was created and never started", id),
		Hint: "start it again, or fork it again, under its id",
	}
}

// firstCommit are the events of the commit after seq.
func firstCommit(ctx context.Context, j Journal, id string, seq int64) ([]engine.Event, error) {
	for c, err := range j.Commits(ctx, id, seq) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", id, err)
		}
		return c.Events, nil
	}
	return nil, nil
}

// Fork starts the run of a plan and drives it. It writes the run and one commit,
// whatever the length of the past. One of that id that is there goes on, where it
// is a fork of the same past.
func (l *Local) Fork(ctx context.Context, p *ForkPlan) (*Execution, error) {
	f := &p.fork
	err := l.o.Store.Create(ctx, store.NewRun{
		ID: f.ID, Flow: p.program.Flow.Name, Fingerprint: p.program.Fingerprint,
		User: p.user, Origin: f.Origin, At: time.Now(), Base: &p.base,
	})
	if errors.Is(err, store.ErrExists) {
		var begun bool
		if begun, err = l.sameFork(ctx, p); begun {
			return l.Resume(ctx, p.program, f.ID)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("fork run %s: %w", p.Run, err)
	}
	m, err := l.shared(ctx, p)
	if err != nil {
		return nil, err
	}
	m.forking = p
	l.parked.lend(m)
	x, _, err := l.hold(ctx, p.program, f.ID, false, func(x *Execution) error { return x.m.forkOff(l.clock.now()) })
	return x, err
}

// sameFork reports whether a run that is there is the fork that is asked for, and
// has begun.
func (l *Local) sameFork(ctx context.Context, p *ForkPlan) (begun bool, err error) {
	r, err := l.o.Store.Run(ctx, p.fork.ID)
	if err != nil {
		return false, err
	}
	was, err := forkOf(ctx, l.o.Store, &r)
	if err != nil {
		return false, err
	}
	same := r.Fingerprint == p.program.Fingerprint && r.Base != nil && *r.Base == p.base
	if !same || was != nil && (was.From != p.Run || was.At != p.At) {
		return false, fmt.Errorf("run %s is there and is another: %w", p.fork.ID, store.ErrExists)
	}
	return was != nil, nil
}

// shared makes the machine of a fork as of the last commit of the other run that
// it shares whole.
func (l *Local) shared(ctx context.Context, p *ForkPlan) (*machine, error) {
	if p.base.Seq == 0 {
		return l.empty(p.program, p.fork.ID), nil
	}
	m := l.fromBase(ctx, p.program, p.fork.ID, &p.base)
	if m == nil {
		m = l.empty(p.program, p.fork.ID)
	}
	for c, err := range l.o.Store.Commits(ctx, p.Run, m.seq) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", p.Run, err)
		}
		if c.Seq > p.base.Seq {
			break
		}
		if err := m.replay(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// forkOff stages what makes the run one of its own: what it shares of the other
// run's next commit, the fork, and what follows.
func (m *machine) forkOff(at int64) error {
	p := m.forking
	m.forking = nil
	m.run.Tick(at)
	for _, e := range p.carried {
		if s, ok := e.(*engine.RunStarted); ok && s.Session != "" {
			e = apart(s, p.Run)
		}
		if err := m.run.Apply(e); err != nil {
			return fmt.Errorf("run %s: %w", m.run.ID, err)
		}
		if err := m.recall(e); err != nil {
			return fmt.Errorf("run %s: %w", m.run.ID, err)
		}
		m.staged = append(m.staged, e)
	}
	if p.fork.Settings != nil || p.fork.Model != "" {
		s := m.book[engine.MainContext].Settings
		if p.fork.Settings != nil {
			s = *p.fork.Settings
		}
		if p.fork.Model != "" {
			s.Provider, s.Model = p.fork.Provider, p.fork.Model
		}
		p.event.Contexts = []engine.ContextChange{{ID: engine.MainContext, Body: &convo.Change{Set: &s}}}
	}
	return m.step(at, p.event)
}

// apart is how a round began, for a fork of it, which is no round: where the
// round went on with its session's history, the fork goes on with the round's.
func apart(s *engine.RunStarted, run string) *engine.RunStarted {
	o := *s
	o.Session, o.Round, o.Allowances = "", 0, nil
	o.Contexts = slices.Clone(s.Contexts)
	for i := range o.Contexts {
		if c := &o.Contexts[i]; c.Session != "" {
			c.Session, c.Parent, c.Run = "", c.ID, run
		}
	}
	return &o
}

// forked keeps the contexts in step with a fork: attempts that begin anew see
// them anew, and the run is no round of a session any more.
func (m *machine) forked(e *engine.RunForked) error {
	m.begun(m.run.Start)
	m.past = nil
	for path := range m.bases {
		if len(m.run.Effects(path)) == 0 {
			delete(m.bases, path)
		}
	}
	return m.turnPages(e.Contexts)
}

// fromStart makes a machine of a run of which there is no checkpoint: an empty
// one, or of what it shares with another run.
func (l *Local) fromStart(ctx context.Context, p *Program, id string) *machine {
	row, err := l.o.Store.Run(ctx, id)
	if err != nil || row.Base == nil {
		return l.empty(p, id)
	}
	m := l.fromBase(ctx, p, id, row.Base)
	if m == nil {
		m = l.empty(p, id)
	}
	m.base = row.Base
	return m
}

func (l *Local) empty(p *Program, id string) *machine {
	m := newMachine(id, p, &l.o.Services)
	m.journal = l.o.Store
	return m
}

// fromBase makes a machine of the newest checkpoint in the past that a run shares
// with others, nil where none is to be had.
func (l *Local) fromBase(ctx context.Context, p *Program, id string, base *store.Base) *machine {
	for limit := base.Seq; base != nil; {
		limit = min(limit, base.Seq)
		row, err := l.o.Store.Run(ctx, base.Run)
		if err != nil || row.Fingerprint != p.Fingerprint {
			return nil
		}
		cp, err := l.o.Store.Checkpoint(ctx, base.Run)
		if err == nil && cp.Seq <= limit {
			if m, err := restore(id, p, &l.o.Services, cp, &messages{l.o.Store, id}); err == nil {
				m.restored(l.o.Store)
				return m
			}
		}
		base = row.Base
	}
	return nil
}
