package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
)

// ForkOptions says how much of another run's history a fork shares, and what differs after it.
// Without From and At, the fork shares the history up to the first start of a node that has
// changed or reads a changed input.
type ForkOptions struct {
	// ID is the id of the fork: forking again with it returns the same fork. With other inputs,
	// state, breaks or model that is an error with the code request_reused, and with another run,
	// point or flow store.ErrExists. "" generates one.
	ID string
	// From is the path of a node, such as "draft" or "refine#2/draft". The fork shares the
	// history before the node's first start.
	From string
	// At is the number of the last shared event; 0 is not set. If the run had failed or
	// ended at that event, the last event before the failure or end is used.
	At int64
	// Inputs are the inputs that differ.
	Inputs map[string]any
	// State is applied at the fork point; it needs From or At.
	State map[string]any
	// Flow is the flow that the fork continues under; nil is the flow of the other run.
	Flow *Flow
	// Model replaces the model of the main context after the fork point: "provider/model".
	Model string
	// Breaks pauses the run before these nodes.
	Breaks []string
	// By is the person who forks; Origin is what started the fork, "" is "fork". Both are
	// recorded.
	By, Origin string
}

// ForkPlan describes a fork before it runs: the shared history, and for each node whether its
// results are reused or it runs again.
type ForkPlan struct {
	*runner.ForkPlan

	id string
	w  *Weir
}

// Fork creates a run that shares the history of another run up to a point, and executes it. The
// other run does not change. Fork combines PlanFork and Start.
func (w *Weir) Fork(ctx context.Context, run string, o ForkOptions) (*Run, *ForkPlan, error) {
	p, err := w.PlanFork(ctx, run, o)
	if err != nil {
		return nil, nil, err
	}
	r, err := p.Start(ctx)
	return r, p, err
}

// Start creates the run and executes it. One commit creates the run, whatever the length of the
// shared history; if Start fails, there is no run.
func (p *ForkPlan) Start(ctx context.Context) (*Run, error) {
	x, err := p.w.local.Fork(ctx, p.ForkPlan)
	return p.w.handOver(ctx, p.id, x, err)
}

// PlanFork plans a fork without creating anything. The error is an *Error with the code
// fork_point if the run cannot be forked there.
func (w *Weir) PlanFork(ctx context.Context, run string, o ForkOptions) (*ForkPlan, error) {
	from, err := w.programForReading(ctx, run)
	if err != nil {
		return nil, err
	}
	start, err := w.local.EffectiveStart(ctx, run)
	if err != nil {
		return nil, err
	}
	var to *runner.Program
	if o.Flow != nil {
		to, err = w.program(ctx, o.Flow)
	} else {
		to, err = w.programOf(ctx, run)
	}
	if err != nil {
		return nil, err
	}
	f := runner.ForkOptions{ID: o.ID, Origin: o.Origin, By: o.By, At: o.At, From: o.From, Breaks: o.Breaks}
	if f.ID == "" {
		f.ID = runner.NewID()
	}
	if f.Origin == "" {
		f.Origin = "fork"
	}
	if err := errors.Join(runner.CheckName("run id", o.ID), runner.CheckOrigin(f.Origin)); err != nil {
		return nil, err
	}
	if err := checkFork(to.Flow, start, &o); err != nil {
		return nil, err
	}
	if f.Inputs, err = forkInputs(from.Flow, to.Flow, start.Inputs, o.Inputs); err != nil {
		return nil, err
	}
	if f.State, err = stateChanges(o.State); err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(from.Flow.Context, to.Flow.Context) {
		s := runner.SettingsFor(to.Flow, o.Model)
		if was, ok := runner.MainSettings(start); ok && o.Model == "" && slices.Equal(modelsOf(from.Flow), modelsOf(to.Flow)) {
			s.Provider, s.Model = was.Provider, was.Model
		}
		f.Settings = &s
	}
	if o.Model != "" {
		f.Provider, f.Model = runner.SplitModel(o.Model)
	}
	p, err := w.local.PlanFork(ctx, from, to, run, f)
	if err != nil {
		return nil, err
	}
	return &ForkPlan{ForkPlan: p, id: f.ID, w: w}, nil
}

// checkFork refuses contradictory options.
func checkFork(f *Flow, start *engine.RunStarted, o *ForkOptions) error {
	bad := func(format string, args ...any) error {
		return &Error{Code: engine.CodeFork, Message: fmt.Sprintf(format, args...), Permanent: true}
	}
	switch {
	case o.At < 0:
		return bad("events are numbered from 1")
	case o.At > 0 && o.From != "":
		return bad("a node and an event exclude each other: both say where the fork begins")
	case len(o.State) > 0 && o.At == 0 && o.From == "":
		return bad("state is written at a point: give a node (--from) or an event (--at)")
	}
	for _, t := range start.Targets {
		if f.Node(t) == nil {
			return bad("the run is limited to what node %s needs, which flow %s does not have", t, f.Name)
		}
	}
	return checkBreaks(f, o.Breaks)
}

// checkBreaks refuses breakpoints at nodes that neither the flow nor its composites have.
func checkBreaks(f *Flow, ids []string) error {
	for _, id := range ids {
		if !hasNode(&f.Graph, id) {
			return &Error{Code: engine.CodeInput, Message: fmt.Sprintf("flow %s has no node %q to pause before", f.Name, id), Hint: "give the id of a node, also of one in a body"}
		}
	}
	return nil
}

func hasNode(g *flow.Graph, id string) bool {
	return g.Node(id) != nil || slices.ContainsFunc(g.Nodes, func(n *flow.Node) bool { return n.Body != nil && hasNode(n.Body, id) })
}

// forkInputs returns the inputs of a fork: those of the run with the changed ones. Inputs that
// the flow no longer declares are dropped. An input that had its default value gets the default
// of the present flow.
func forkInputs(from, to *Flow, was engine.Values, given map[string]any) (engine.Values, error) {
	if from == to && len(given) == 0 {
		return was, nil
	}
	all := make(map[string]any, len(to.Inputs))
	for _, in := range to.Inputs {
		v, ok := was.Get(in.Name)
		if !ok || in.Default != nil && isDefaultInput(from, in.Name, v) {
			continue
		}
		all[in.Name] = v
	}
	for _, name := range sortedKeys(given) {
		all[name] = given[name]
	}
	return runner.CheckInputs(to, all)
}

// isDefaultInput reports whether a value is the default of an input.
func isDefaultInput(f *Flow, name string, v engine.Value) bool {
	for _, in := range f.Inputs {
		if in.Name == name && in.Default != nil {
			d, err := node.CheckInput(in, in.Default)
			return err == nil && reflect.DeepEqual(d, v)
		}
	}
	return false
}

func stateChanges(m map[string]any) ([]engine.StateChange, error) {
	vs, err := valuesOf(m)
	if err != nil {
		return nil, fmt.Errorf("state %w", err)
	}
	var out []engine.StateChange
	for _, v := range vs {
		out = append(out, engine.StateChange{Key: v.Name, Value: v.Value})
	}
	return out, nil
}

// FlowOf returns the recorded flow of a run.
func (w *Weir) FlowOf(ctx context.Context, run string) (*Flow, error) {
	p, err := w.programForReading(ctx, run)
	if err != nil {
		return nil, err
	}
	return p.Flow, nil
}

// Rerun starts a run with the recorded flow, inputs, initial state, model, targets and user of
// another run. It shares no history with it. Fields of s that are set replace those of the
// other run; Inputs and State replace only the values that they name. Breakpoints are not
// copied, and an empty Origin becomes "rerun".
func (w *Weir) Rerun(ctx context.Context, run string, s Start) (*Run, error) {
	p, err := w.programOf(ctx, run)
	if err != nil {
		return nil, err
	}
	start, err := w.local.EffectiveStart(ctx, run)
	if err != nil {
		return nil, err
	}
	b, err := rerunOptions(p.Flow, start, s)
	if err != nil {
		return nil, err
	}
	x, err := w.local.Start(ctx, p, b)
	return w.handOver(ctx, b.ID, x, err)
}

// rerunOptions returns start with the replacements in s.
func rerunOptions(f *Flow, start *engine.RunStarted, s Start) (b runner.StartOptions, err error) {
	b = runner.StartOptions{
		ID: cmp.Or(s.ID, runner.NewID()), User: cmp.Or(s.User, start.User), Origin: cmp.Or(s.Origin, "rerun"),
		Targets: start.Targets, Breaks: s.Breaks, Settings: runner.SettingsFor(f, ""), Folder: start.Folder,
	}
	if s.Targets != nil {
		b.Targets = s.Targets
	}
	err = errors.Join(runner.CheckName("run id", s.ID), runner.CheckName("user", s.User), runner.CheckOrigin(b.Origin),
		checkNodes(f, s.Targets), checkBreaks(f, s.Breaks))
	if err != nil {
		return b, err
	}
	if was, ok := runner.MainSettings(start); ok {
		b.Settings = was
	}
	if s.Model != "" {
		given := runner.SettingsFor(f, s.Model)
		b.Settings.Provider, b.Settings.Model, b.Settings.Fallback = given.Provider, given.Model, given.Fallback
	}
	if b.Inputs, err = forkInputs(f, f, start.Inputs, s.Inputs); err != nil {
		return b, err
	}
	replaced, err := valuesOf(s.State)
	if err != nil {
		return b, fmt.Errorf("state %w", err)
	}
	for _, v := range start.State {
		if _, ok := replaced.Get(v.Name); !ok {
			b.State = append(b.State, v)
		}
	}
	b.State = append(b.State, replaced...)
	return b, nil
}
