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

// ForkOptions describe a run that shares the past of another. The end of the shared past is At or From, or is derived
// from the edits.
type ForkOptions struct {
	ID, Origin, By string
	// At is the number of the last shared event, 0 if it is not given.
	At int64
	// From is the path of a node, or of an iteration: the events before its first start are shared. "" if it is not
	// given.
	From string
	// Inputs are all of the run's inputs, checked.
	Inputs engine.Values
	// State is written at the end of the shared past.
	State  []engine.StateChange
	Breaks []string
	// Settings are the settings of the main context from there on, nil for unchanged; Provider and Model override
	// them.
	Settings        *convo.Settings
	Provider, Model string
}

// ForkPlan describes the result of a fork: what is reused, and what runs.
type ForkPlan struct {
	// Run is the run whose past is shared, up to event At.
	Run string
	At  int64
	// RequestedAt is the requested event, if it differs from At.
	RequestedAt int64
	// Events is the number of events of the run.
	Events int64
	// Nodes are those of the fork's flow, in flow order, those of open iterations after their composite. Removed are
	// nodes that the flow no longer has.
	Nodes   []ForkedNode
	Removed []string
	// Shared is the usage in the shared past.
	Shared engine.Usage

	fork       ForkOptions
	user       string
	program    *Program
	event      *engine.RunForked
	base       store.Base
	sharedTail []engine.Event // of the commit after the base's, those that are shared
}

// Reuse describes the use of a node in a fork.
type Reuse string

// The uses of a node in a fork.
const (
	NodeReused     Reuse = "reused"    // it has ended, and its outcome is shared
	NodeContinues  Reuse = "continues" // it continues: it waits, or its iterations are shared
	NodeRestarts   Reuse = "again"     // it had started in the other run, and starts again
	NodeAdded      Reuse = "new"       // the other run's flow does not have the node
	NodeNotReached Reuse = "ahead"     // the other run did not reach it either
)

// ForkedNode is a node of a fork.
type ForkedNode struct {
	Path, Type string
	Reuse      Reuse
	// Reason is the reason why it is not reused, "" if it only comes later.
	Reason string
}

// EffectiveStart returns the start of a run as it applies now: for a fork with its own flow and inputs.
func (l *Local) EffectiveStart(ctx context.Context, id string) (*engine.RunStarted, error) {
	return EffectiveStartIn(ctx, l.store, id)
}

// EffectiveStartIn is Local.EffectiveStart for a store.
func EffectiveStartIn(ctx context.Context, st store.Store, id string) (*engine.RunStarted, error) {
	s := store.Complete(st)
	row, err := s.Run(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if start := checkpointedStart(ctx, s, id); start != nil {
		return start, nil
	}
	first, err := commitAfter(ctx, s, id, 0)
	if err != nil || len(first) == 0 {
		return nil, cmp.Or(err, notStartedError(id))
	}
	start, ok := first[0].(*engine.RunStarted)
	if !ok {
		return nil, notStartedError(id)
	}
	f, err := forkEvent(ctx, s, &row)
	switch {
	case err != nil:
		return nil, err
	case f != nil:
		return f.EffectiveStart(start), nil
	case row.Base != nil:
		return nil, notStartedError(id)
	}
	return start, nil
}

// checkpointedStart returns the start of a run from its checkpoint; nil if there is none. The first commit of a run
// may be a long one.
func checkpointedStart(ctx context.Context, s store.CheckpointStore, id string) *engine.RunStarted {
	cp, err := s.Checkpoint(ctx, id)
	if err != nil {
		return nil
	}
	var c checkpoint
	if json.Unmarshal(cp.Body, &c) != nil || c.Version != checkpointVersion {
		return nil
	}
	start, err := engine.SnapshotStart(c.Run)
	if err != nil {
		return nil
	}
	return start
}

// forkEvent returns the event that made the run a fork, nil if it is none. An event of an older version that shares
// no whole commit of the other run has no base.
func forkEvent(ctx context.Context, j store.Journal, row *store.Run) (*engine.RunForked, error) {
	var shared int64
	if row.Base != nil {
		shared = row.Base.Seq
	}
	own, err := commitAfter(ctx, j, row.ID, shared)
	for _, e := range slices.Backward(own) {
		if f, ok := e.(*engine.RunForked); ok {
			return f, err
		}
	}
	return nil, err
}

// MainSettings returns the settings with which the main context of a run started, or a fork's continued.
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

func notStartedError(id string) error {
	return &engine.Error{
		Code: engine.CodeFork, Permanent: true, Message: fmt.Sprintf("run %s was created and never started", id),
		Hint: "start it again, or fork it again, under its id",
	}
}

// commitAfter returns the events of the commit after seq.
func commitAfter(ctx context.Context, j store.Journal, id string, seq int64) ([]engine.Event, error) {
	for c, err := range j.Commits(ctx, id, seq) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", id, err)
		}
		return c.Events, nil
	}
	return nil, nil
}

// Fork starts the run of a plan and drives it. It writes one commit, which makes the run, however long the past is. An
// existing run with the id is continued if it is a fork of the same past.
func (l *Local) Fork(ctx context.Context, p *ForkPlan) (*Execution, error) {
	f := &p.fork
	x, fresh, err := l.makeRun(ctx, &newRun{
		machine: func() (*machine, error) { return l.unmadeFork(ctx, p) },
		RunStart: store.RunStart{NewRun: store.NewRun{
			ID: f.ID, Flow: p.program.Flow.Name, Fingerprint: p.program.Fingerprint,
			User: p.user, Origin: f.Origin, At: time.Now(), Base: &p.base,
		}},
	}, func(x *Execution) error { return x.m.stageFork(l.clock.now()) })
	switch {
	case err == nil && fresh:
		return x, nil
	case err != nil && !errors.Is(err, store.ErrExists):
		return nil, fmt.Errorf("fork run %s: %w", p.Run, err)
	}
	begun, err := l.sameFork(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("fork run %s: %w", p.Run, err)
	}
	if begun {
		return l.Resume(ctx, p.program, f.ID)
	}
	return l.startStoredFork(ctx, p)
}

// unmadeFork is forkMachine for a fork that its first commit makes.
func (l *Local) unmadeFork(ctx context.Context, p *ForkPlan) (*machine, error) {
	m, err := l.forkMachine(ctx, p)
	if err == nil {
		m.pendingFork, m.unmade = p, true
	}
	return m, err
}

// startStoredFork starts a fork that an earlier version stored without a commit.
func (l *Local) startStoredFork(ctx context.Context, p *ForkPlan) (*Execution, error) {
	m, err := l.forkMachine(ctx, p)
	if err != nil {
		return nil, err
	}
	m.pendingFork = p
	l.paused.addIdle(m)
	x, _, err := l.getOrLoad(ctx, p.program, p.fork.ID, loadAny, func(x *Execution) error { return x.m.stageFork(l.clock.now()) })
	return x, err
}

// sameFork reports whether an existing run is the requested fork, and has started.
func (l *Local) sameFork(ctx context.Context, p *ForkPlan) (begun bool, err error) {
	r, err := l.store.Run(ctx, p.fork.ID)
	if err != nil {
		return false, err
	}
	was, err := forkEvent(ctx, l.store, &r)
	if err != nil {
		return false, err
	}
	same := r.Fingerprint == p.program.Fingerprint && r.Base != nil && *r.Base == p.base
	if !same || was != nil && (was.From != p.Run || was.At != p.At) {
		return false, fmt.Errorf("run %s is there and is another: %w", p.fork.ID, store.ErrExists)
	}
	if was == nil {
		return false, nil
	}
	if what := p.differsFrom(was); what != "" {
		return false, reusedError(fmt.Sprintf("run %s exists and was forked %s", p.fork.ID, what), p.fork.ID)
	}
	return true, nil
}

// differsFrom says what of a fork another one of the same past and flow had differently, "" for nothing. Who forks, and the
// origin, do not count.
func (p *ForkPlan) differsFrom(was *engine.RunForked) string {
	if names := ChangedInputs(p.event.Inputs, was.Inputs); len(names) > 0 {
		return fmt.Sprintf("with another input %q", names[0])
	}
	var were, are engine.Values
	for _, c := range was.State {
		were = append(were, engine.Named{Name: c.Key, Value: c.Value})
	}
	for _, c := range p.event.State {
		are = append(are, engine.Named{Name: c.Key, Value: c.Value})
	}
	if names := ChangedInputs(are, were); len(names) > 0 {
		return fmt.Sprintf("with another state %q", names[0])
	}
	settings, changed := MainSettings(&engine.RunStarted{Contexts: was.Contexts})
	given := p.fork.Settings != nil || p.fork.Model != ""
	want := settings
	if changed && given {
		want = p.settings(settings)
	}
	switch {
	case !slices.Equal(p.event.Breaks, was.Breaks):
		return "with other nodes to pause before"
	case changed != given || modelOf(want) != modelOf(settings):
		return "with another model"
	case !SameSettings(want, settings):
		return "with other settings of its main context"
	}
	return ""
}

// settings returns the settings of the main context of the fork, where those of the other run are s at that point.
func (p *ForkPlan) settings(s convo.Settings) convo.Settings {
	if p.fork.Settings != nil {
		s = *p.fork.Settings
	}
	if p.fork.Model != "" {
		s.Provider, s.Model, s.Fallback = p.fork.Provider, p.fork.Model, nil
	}
	return s
}

// forkMachine creates the machine of a fork as of the last commit of the other run that it shares as a whole.
func (l *Local) forkMachine(ctx context.Context, p *ForkPlan) (*machine, error) {
	if p.base.Seq == 0 {
		return l.emptyMachine(p.program, p.fork.ID), nil
	}
	m := l.machineFromBase(ctx, p.program, p.fork.ID, &p.base)
	if m == nil {
		m = l.emptyMachine(p.program, p.fork.ID)
	}
	for c, err := range l.store.Commits(ctx, p.Run, m.seq) {
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

// stageFork stages the first events of a fork: the shared events of the other run's next commit, the fork itself, and
// what follows.
func (m *machine) stageFork(at int64) error {
	p := m.pendingFork
	m.pendingFork = nil
	m.run.Tick(at)
	for _, e := range p.sharedTail {
		if s, ok := e.(*engine.RunStarted); ok && s.Session != "" {
			e = detachedStart(s, p.Run)
		}
		if err := m.run.Apply(e); err != nil {
			return fmt.Errorf("run %s: %w", m.run.ID, err)
		}
		if err := m.replayEvent(e); err != nil {
			return fmt.Errorf("run %s: %w", m.run.ID, err)
		}
		m.staged = append(m.staged, e)
	}
	if p.fork.Settings != nil || p.fork.Model != "" {
		s := p.settings(m.contexts[engine.MainContext].Settings)
		p.event.Contexts = []engine.ContextChange{{ID: engine.MainContext, Body: &convo.Change{Set: &s}}}
	}
	return m.step(at, p.event)
}

// detachedStart returns the start of a round for a fork of it, which is not a round: where the round continued its
// session's history, the fork continues the round's.
func detachedStart(s *engine.RunStarted, run string) *engine.RunStarted {
	o := *s
	o.Session, o.Round, o.Allowances = "", 0, nil
	o.TreeSession, o.TreeRound = "", 0
	o.Contexts = slices.Clone(s.Contexts)
	for i := range o.Contexts {
		if c := &o.Contexts[i]; c.Session != "" {
			c.Session, c.Parent, c.Run = "", c.ID, run
		}
	}
	return &o
}

// applyFork updates the contexts for a fork: restarted attempts see the current contexts, and the run is no longer a
// round of a session.
func (m *machine) applyFork(e *engine.RunForked) error {
	m.vars = &runVars{run: m.run.ID, start: m.run.Start}
	m.sessionPast = nil
	for path := range m.snapshots {
		if len(m.run.Effects(path)) == 0 {
			delete(m.snapshots, path)
		}
	}
	return m.applyContextChanges(e.Contexts)
}

// machineFromStart creates a machine of a run without a checkpoint: an empty one, or one of the past that it shares
// with another run.
func (l *Local) machineFromStart(ctx context.Context, p *Program, id string) *machine {
	row, err := l.store.Run(ctx, id)
	if err != nil || row.Base == nil {
		return l.emptyMachine(p, id)
	}
	m := l.machineFromBase(ctx, p, id, row.Base)
	if m == nil {
		m = l.emptyMachine(p, id)
	}
	m.forkBaseCommit = row.Base
	return m
}

func (l *Local) emptyMachine(p *Program, id string) *machine {
	m := newMachine(id, p, &l.o.Services)
	m.journal = l.store
	return m
}

// machineFromBase creates a machine from the newest checkpoint in the past that a run shares with others, nil if
// there is none.
func (l *Local) machineFromBase(ctx context.Context, p *Program, id string, base *store.Base) *machine {
	for limit := base.Seq; base != nil; {
		limit = min(limit, base.Seq)
		row, err := l.store.Run(ctx, base.Run)
		if err != nil || row.Fingerprint != p.Fingerprint {
			return nil
		}
		cp, err := l.store.Checkpoint(ctx, base.Run)
		if err == nil && cp.Seq <= limit {
			if m, err := restoreMachine(id, p, &l.o.Services, cp, &messageSource{l.store, id}); err == nil {
				m.attachSession(l.store)
				return m
			}
		}
		base = row.Base
	}
	return nil
}
