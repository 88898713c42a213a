package runner

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// NewRecordedProgram returns a program for a flow that flow.Record read. With it a run can be read, shown and
// cancelled without the node types with which it was started. It never enters a node: nodes that a command makes
// runnable wait for a process that has the types. specs is the digest of the specs, "" if there are none.
func NewRecordedProgram(f *flow.Flow, specs string, inferred []string) (*Program, error) {
	plan, err := engine.Compile(f, nil)
	if err != nil {
		return nil, err
	}
	p := &Program{
		Flow: f, Plan: plan, Fingerprint: f.Fingerprint(), Specs: specs, Inferred: inferred, recorded: true,
		Pinned: map[string]string{"recorded": specs}, // no executable program has it
	}
	p.prepareRecordedGraph(plan.Root)
	return p, nil
}

// prepareRecordedGraph prepares the nodes for reading: the bindings of their ports, as far as they can be read.
func (p *Program) prepareRecordedGraph(g *engine.GraphPlan) {
	g.Host = []binding(nil)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		h := &preparedNode{types: make(map[string]flow.PortType)}
		for _, in := range n.Def.In {
			if b, err := prepareBindings([]flow.Binding{in}); err == nil {
				h.bindings = append(h.bindings, b...)
			}
		}
		n.Host = h
		if n.Body != nil {
			p.prepareRecordedGraph(n.Body)
		}
	}
}

// Executable reports whether nodes can be entered with the program; false for one of NewRecordedProgram.
func (p *Program) Executable() bool { return !p.recorded }

// endAbandoned ends the executing nodes of a run that is stopped with a recorded program: as cancelled, with outcome
// unknown if an effect had started.
func (m *machine) endAbandoned(at int64) error {
	if !m.program.recorded || !m.run.Cancelling() {
		return nil
	}
	for _, path := range m.run.Executing() {
		if !m.run.Aborted(path) {
			continue
		}
		if err := m.step(at, m.cancelledEvent(path, m.hasUnknownEffect(path))); err != nil {
			return err
		}
	}
	return nil
}

// onlyCancelsChildren reports whether an execution with a recorded program only waits for children that it cancels.
func (x *Execution) onlyCancelsChildren() bool {
	return !x.m.run.Cancelling() || x.children.None()
}

// withProgram carries out an operation that stops or notifies a run: with its own program if this process has that,
// otherwise with the recorded one.
func (l *Local) withProgram(ctx context.Context, run, fingerprint string, do func(p *Program) error) error {
	p, err := l.currentProgram(ctx, run, fingerprint)
	if err == nil {
		if err = do(p); !errors.Is(err, ErrDependenciesChanged) {
			return err
		}
	}
	if l.o.RecordedProgram == nil {
		return err
	}
	p, recordErr := l.o.RecordedProgram(ctx, run)
	if recordErr != nil {
		return errors.Join(err, recordErr)
	}
	return do(p)
}

// currentProgram returns the program of a run with the node types of this process.
func (l *Local) currentProgram(ctx context.Context, run, fingerprint string) (*Program, error) {
	if l.o.Flow == nil && l.o.Program != nil {
		return l.o.Program(ctx, run)
	}
	return l.programOf(ctx, fingerprint)
}
