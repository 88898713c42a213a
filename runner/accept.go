package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store"
)

// DependenciesChanged is an ErrClosure that says what is not as it was when the run was started.
type DependenciesChanged struct {
	Run     string
	Changes []string
	// Breaks: under what there is now the record may mean something else, so that
	// Accept refuses too.
	Breaks bool
}

// Error lists the changes.
func (e *DependenciesChanged) Error() string {
	return fmt.Sprintf("run %s: %s: %s", e.Run, strings.Join(e.Changes, ", "), ErrDependenciesChanged)
}

// Unwrap returns ErrClosure.
func (e *DependenciesChanged) Unwrap() error { return ErrDependenciesChanged }

// Hint says what to do.
func (e *DependenciesChanged) Hint() string {
	fork := fmt.Sprintf("`%s` makes a run that continues from a node under the present versions", engine.CommandLine("fork", e.Run, "--from", "NODE"))
	if e.Breaks {
		return "use the versions that it was started with; or " + fork
	}
	return fmt.Sprintf("use the versions that it was started with; `%s` continues it under the present versions; %s",
		engine.CommandLine("resume", e.Run, "--accept-changes"), fork)
}

// checkPorts refuses a run that is to be executed where the ports of its node types are not
// what they were, whatever their versions say.
func (l *Local) checkPorts(ctx context.Context, m *machine, s *engine.RunStarted) error {
	if m.program.recorded || m.program.ignoreToolChanges || m.program.allowChanges {
		return nil
	}
	if st := m.run.Status(); st == engine.Completed || st == engine.Cancelled {
		return nil
	}
	changes, err := l.portChanges(ctx, m.program, s)
	if len(changes) == 0 || err != nil {
		return err
	}
	e := &DependenciesChanged{Run: m.run.ID}
	for _, c := range changes {
		e.Changes, e.Breaks = append(e.Changes, c.String()), e.Breaks || c.Breaks
	}
	return e
}

// portChanges returns how the node types of a program differ from what the run recorded.
func (l *Local) portChanges(ctx context.Context, p *Program, s *engine.RunStarted) ([]flow.SpecChange, error) {
	if s.Specs == p.Specs || s.Specs == "" || p.RecordedSpecs == nil || l.o.Specs == nil {
		return nil, nil
	}
	was, err := l.o.Specs(ctx, s.Specs)
	if err != nil || was == nil {
		return nil, err
	}
	return was.Changes(p.Fingerprint, p.RecordedSpecs), nil
}

// Accept has a run continue under the versions of node types and tools that p has,
// and returns what is different from what it was started with; the record has it too. It
// executes nothing. It refuses with a *Changed error where the ports of a node type
// differ so that what is recorded may mean something else, and a run that has
// completed or was cancelled with ErrStatus.
func (l *Local) Accept(ctx context.Context, p *Program, id, by string) ([]string, error) {
	x, taken, err := l.claim(ctx, id)
	if err != nil {
		return nil, err
	}
	if x != nil { // which runs under what there is now
		return nil, nil
	}
	defer func() {
		defer l.loops.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.loading, id)
		close(taken)
	}()
	lease, err := l.acquire(ctx, id)
	if err != nil {
		return nil, l.ownedError(ctx, id, err)
	}
	changes, err := l.accept(ctx, p, lease, by)
	if e := l.store.Release(context.WithoutCancel(ctx), lease); err == nil && e != nil {
		err = fmt.Errorf("release run %s: %w", id, e)
	}
	return changes, err
}

func (l *Local) accept(ctx context.Context, p *Program, lease store.Lease, by string) ([]string, error) {
	m, err := l.load(ctx, p.allowingChanges(), lease.Run)
	if err != nil {
		return nil, err
	}
	s := m.run.Start
	if s == nil {
		return nil, notStartedError(lease.Run)
	}
	if st := m.run.Status(); st == engine.Completed || st == engine.Cancelled {
		return nil, &Refusal{What: fmt.Sprintf("run %s does not continue under other versions", lease.Run), Why: "it is " + st.String(), Instead: endedHint(lease.Run)}
	}
	changes := p.MissingDependencies(s.Pinned)
	ports, err := l.portChanges(ctx, p, s)
	if err != nil {
		return nil, err
	}
	e := &DependenciesChanged{Run: lease.Run}
	for _, c := range ports {
		if changes = append(changes, c.String()); c.Breaks {
			e.Changes, e.Breaks = append(e.Changes, c.String()), true
		}
	}
	if e.Breaks {
		return nil, e
	}
	below, err := l.acceptInChildren(ctx, m, by)
	if len(changes) == 0 || err != nil {
		return below, err
	}
	m.fence = 0
	if err := m.step(l.clock.now(), &engine.ChangesAccepted{Pinned: p.Pinned, Specs: p.Specs, Changes: changes, By: by}); err != nil {
		return nil, err
	}
	c, _ := m.takeCommit()
	one := []store.Append{{Commit: c, Fence: lease.Fence, Head: head(m.run), Carryover: m.carryoverChange()}}
	if err := l.store.Append(ctx, one)[0]; err != nil {
		return nil, fmt.Errorf("run %s: %w", lease.Run, err)
	}
	return append(changes, below...), nil
}

// acceptInChildren accepts what is different for the child runs that a run waits for.
func (l *Local) acceptInChildren(ctx context.Context, m *machine, by string) (changes []string, err error) {
	for _, c := range m.run.OpenChildren() {
		p, err := l.programOf(ctx, c.Start.Fingerprint)
		if err != nil {
			return nil, fmt.Errorf("child run %s: %w", c.Start.Run, err)
		}
		more, err := l.Accept(ctx, p, c.Start.Run, by)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, ErrNotStarted) || errors.Is(err, ErrStatus) {
			continue // it has not begun, or it has ended
		}
		if err != nil {
			return nil, err
		}
		for _, change := range more {
			changes = append(changes, c.Start.Run+": "+change)
		}
	}
	return changes, nil
}
