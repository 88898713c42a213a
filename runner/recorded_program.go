package runner

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// NewRecordedProgram makes a program of a flow that flow.Record read. Under it a run can be
// read, shown and cancelled without the node types that it was started with. No
// node of it is ever entered: what a command leaves to run stays for a process
// that has the types. Specs is the digest of the specs, "" where there are none.
func NewRecordedProgram(f *flow.Flow, specs string, inferred []string) (*Program, error) {
	plan, err := engine.Compile(f, nil)
	if err != nil {
		return nil, err
	}
	p := &Program{
		Flow: f, Plan: plan, Fingerprint: f.Fingerprint(), Specs: specs, Inferred: inferred, recorded: true,
		Pinned: map[string]string{"recorded": specs}, // that of no program which runs
	}
	p.prepareRecordedGraph(plan.Root)
	return p, nil
}

// prepareRecordedGraph gives the nodes what reading needs of a host: the bindings of their
// ports, those that can be read.
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

// Executable reports whether nodes can be entered under the program; false for one that
// Recorded made.
func (p *Program) Executable() bool { return !p.recorded }

// endAbandoned ends what was executing in a run that is being stopped under a recorded
// program: as cancelled, with outcome unknown where an effect had started.
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

// onlyCancelsChildren reports whether an execution under a recorded program has nothing more
// to do: it only waits for children that it cancels.
func (x *Execution) onlyCancelsChildren() bool {
	return !x.m.run.Cancelling() || x.children.None()
}

// withProgram does something with a run that is to be stopped, or is only told of
// another: under its own program where this process has that, else under the
// recorded one.
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

// currentProgram is the program of a run with the node types of this process.
func (l *Local) currentProgram(ctx context.Context, run, fingerprint string) (*Program, error) {
	if l.o.Flow == nil && l.o.Program != nil {
		return l.o.Program(ctx, run)
	}
	return l.programOf(ctx, fingerprint)
}
