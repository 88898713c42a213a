package weir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
)

// Load reads and validates a flow file, with the files of the flows that its nodes run. Those
// files must be in the folder of the file, in one of the given folders, or below. The error is
// a *flow.Invalid with all problems if a flow is invalid.
func (w *Weir) Load(path string, folders ...string) (*Flow, error) {
	return w.checked(flow.Load(path, w.catalogue, folders...))
}

// checked validates a parsed flow against the tools of this process and what models take.
func (w *Weir) checked(f *Flow, err error) (*Flow, error) {
	if err == nil {
		err = w.checkServices(f, "")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// checkServices compares a flow with the tools of this process, and with what the models that
// it names take; model, if not "", replaces the flow's. A recording answers for any model.
func (w *Weir) checkServices(f *Flow, model string) error {
	if err := node.CheckTools(f, w.catalogue, w.tools); err != nil || w.replays {
		return err
	}
	return runner.CheckModels(f, w.catalogue, w.models, model)
}

// Parse is Load for bytes; positions in errors begin with name. It reads no files: nodes of
// type flow can run the flow itself and the flows in uses, by name. If two of these have the
// same name, the later one is used.
func (w *Weir) Parse(name string, data []byte, uses ...*Flow) (*Flow, error) {
	given := make(map[string]*Flow, len(uses))
	for _, f := range uses {
		given[f.Name] = f
	}
	return w.checked(flow.Source{Flows: given}.Parse(name, data, w.catalogue))
}

// ParseIn is Parse, but the flows that nodes run are read from files. Their paths are relative
// to the folder of name.
func (w *Weir) ParseIn(files flow.Files, name string, data []byte) (*Flow, error) {
	return w.checked(flow.Source{Files: files}.Parse(name, data, w.catalogue))
}

// program prepares a flow once and keeps it with all flows that it uses, so that its runs and
// their children can continue.
func (w *Weir) program(ctx context.Context, f *Flow) (*runner.Program, error) {
	var p *runner.Program
	if f.Recorded() {
		loaded, err := w.FlowByFingerprint(ctx, f.Fingerprint())
		if err != nil {
			return nil, err
		}
		f = loaded
	}
	for _, used := range f.Dependencies() { // f is the last
		var err error
		if p, err = w.prepare(ctx, used); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (w *Weir) prepare(ctx context.Context, f *Flow) (*runner.Program, error) {
	fp := f.Fingerprint()
	if p := w.cachedProgram(fp); p != nil {
		return p, nil
	}
	p, err := runner.Prepare(f, w.catalogue)
	if err != nil {
		return nil, err
	}
	w.pinDependencies(p)
	normal, err := f.Normal()
	if err != nil {
		return nil, err
	}
	if err := w.store.PutFlow(ctx, fp, normal); err != nil {
		return nil, fmt.Errorf("keep flow %s: %w", f.Name, err)
	}
	p.RecordedSpecs = flow.SpecsOf(f, w.catalogue)
	specs, data, err := p.RecordedSpecs.Encode()
	if err != nil {
		return nil, err
	}
	if err := w.store.PutFlow(ctx, specs, data); err != nil {
		return nil, fmt.Errorf("keep the node types of flow %s: %w", f.Name, err)
	}
	p.Specs = specs
	w.mu.Lock()
	defer w.mu.Unlock()
	w.programs[fp] = p
	return p, nil
}

// cachedProgram returns the program of a flow that was prepared before, nil if there is none.
func (w *Weir) cachedProgram(fingerprint string) *runner.Program {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.programs[fingerprint]
}

// programOf returns the program that a run was started under.
func (w *Weir) programOf(ctx context.Context, id string) (*runner.Program, error) {
	r, err := w.store.Run(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	p, err := w.programByFingerprint(ctx, r.Fingerprint)
	if invalid, ok := errors.AsType[*flow.Invalid](err); ok {
		return nil, runner.MissingTypes(id, invalid)
	}
	if err != nil {
		return nil, fmt.Errorf("flow %s of run %s: %w", r.Flow, r.ID, err)
	}
	return p, nil
}

// programByFingerprint returns the program of a stored flow by its fingerprint.
func (w *Weir) programByFingerprint(ctx context.Context, fingerprint string) (*runner.Program, error) {
	if p := w.cachedProgram(fingerprint); p != nil {
		return p, nil
	}
	f, err := w.FlowByFingerprint(ctx, fingerprint)
	if err != nil {
		return nil, err
	}
	return w.program(ctx, f)
}

// programForReading returns the program for reading a run: the one with the node types that the
// run recorded, whatever node types this process has. Runs of earlier versions recorded none
// and are read with the node types of this process.
func (w *Weir) programForReading(ctx context.Context, id string) (*runner.Program, error) {
	row, err := w.store.Run(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	specs := ""
	if start, err := w.local.EffectiveStart(ctx, id); err == nil { // one that never began has none
		specs = start.Specs
	}
	if p := w.cachedProgram(row.Fingerprint); p != nil && p.Specs == specs {
		return p, nil
	}
	return w.recordedProgram(ctx, row.Fingerprint, specs)
}

// recordedProgramOf returns the recorded program for callers that must not execute any node.
func (w *Weir) recordedProgramOf(ctx context.Context, id string) (*runner.Program, error) {
	p, err := w.programForReading(ctx, id)
	if err != nil || !p.Executable() {
		return p, err
	}
	return w.recordedProgram(ctx, p.Fingerprint, p.Specs)
}

// recordedProgram returns the recorded program of a flow with specs, and makes it once.
func (w *Weir) recordedProgram(ctx context.Context, fingerprint, specs string) (*runner.Program, error) {
	key := fingerprint + " " + specs
	w.mu.Lock()
	p := w.recordedPrograms[key]
	w.mu.Unlock()
	if p != nil {
		return p, nil
	}
	f, inferred, err := history.RecordedFlow(ctx, w.store, w.catalogue, fingerprint, specs)
	if err != nil {
		return nil, fmt.Errorf("the flow of the record: %w", err)
	}
	if p, err = runner.NewRecordedProgram(f, specs, inferred); err != nil {
		return nil, fmt.Errorf("the flow of the record: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recordedPrograms[key] = p
	return p, nil
}

// FlowByFingerprint returns a flow that a run was started with, by the fingerprint in
// store.Run. The error is a *flow.Invalid if the flow cannot be loaded with the node types of
// this process, and store.ErrNotFound if no flow with this fingerprint is stored.
func (w *Weir) FlowByFingerprint(ctx context.Context, fingerprint string) (*Flow, error) {
	kept := func(fp string) ([]byte, error) { return w.store.Flow(ctx, fp) }
	normal, err := kept(fingerprint)
	if err != nil {
		return nil, err
	}
	f, err := flow.Source{ByFingerprint: kept, AlreadyValid: true}.Parse("flow", normal, w.catalogue)
	if err != nil {
		return nil, fmt.Errorf("the flow does not load with this catalogue: %w", err)
	}
	return f, nil
}

// ActiveRun returns a run or child run that this process executes, nil if it does not execute
// the run. With Options.Runner it returns any run, which workers execute.
func (w *Weir) ActiveRun(id string) *Run {
	if w.runner != nil {
		return &Run{ID: id, w: w}
	}
	x := w.local.Held(id)
	if x == nil {
		return nil
	}
	return &Run{ID: id, w: w, exec: x}
}

// pinDependencies pins the tools that the flow names and this process offers, and those of the
// flows that it uses. Tools that a value names during the run are not known in advance and are
// not pinned.
func (w *Weir) pinDependencies(p *runner.Program) {
	for _, f := range p.Flow.Dependencies() {
		names, all := runner.ToolNames(&f.Graph)
		if all {
			names = w.tools.Names()
		}
		for _, name := range names {
			if t := w.tools.Get(name); t != nil {
				p.Pinned[runner.ToolPin(name)] = t.Hash()[:32]
			}
		}
	}
}

// checkBranchTools refuses tools in the branches of races if they may change something outside the run.
func (w *Weir) checkBranchTools(f *Flow) error {
	flowOf := func(name string) *flow.Flow { return w.toolFlows[name].Flow }
	return runner.CheckBranchTools(f, w.catalogue, w.tools, flowOf)
}

// Keep stores a flow, with the flows that it uses, so that FlowByFingerprint finds them. It
// executes nothing.
func (w *Weir) Keep(ctx context.Context, f *Flow) error {
	_, err := w.program(ctx, f)
	return err
}

// UsesOf lists the tools, hosts, secrets and other resources outside the run that the nodes of
// a flow name in the file, sorted. It does not include the flows that the flow runs, nor
// resources that a value names during a run; Options.Grants checks those.
func (w *Weir) UsesOf(f *Flow) []node.Use {
	n := newRequirements()
	n.addGraph(&f.Graph)
	n.addContext(f)
	var out []node.Use
	for _, name := range slices.Sorted(maps.Keys(n.providers)) {
		out = append(out, node.Use{Kind: node.UseProvider, Name: name})
	}
	for _, name := range slices.Sorted(maps.Keys(n.secrets)) {
		out = append(out, node.Use{Kind: node.UseSecret, Name: name})
	}
	names, all := runner.ToolNames(&f.Graph)
	if all {
		out = append(out, node.Use{Kind: node.UseTool, Name: "*"})
	}
	for _, name := range names {
		if t := w.tools.Get(name); t != nil && t.Alias != "" {
			name = t.Alias
		}
		out = append(out, node.Use{Kind: node.UseTool, Name: name})
	}
	return slices.Compact(appendUses(out, &f.Graph))
}

// appendUses appends the hosts, executors and files that the nodes of a graph name.
func appendUses(out []node.Use, g *flow.Graph) []node.Use {
	text := func(n *flow.Node, key string) string {
		s, _ := n.With[key].(string)
		return s
	}
	for _, n := range g.Nodes {
		switch n.Type {
		case "httpRequest":
			if u, err := url.Parse(text(n, "url")); err == nil && u.Host != "" && !strings.Contains(u.Host, "{") {
				out = append(out, node.Use{Kind: node.UseHost, Name: u.Host})
			}
		case "readFile":
			out = append(out, node.Use{Kind: node.UseFile, Name: text(n, "path")})
		case "action", "decision":
			executor := text(n, "executor")
			if executor == "" {
				executor = text(n, "language")
			}
			if executor == "" {
				executor = "python"
			}
			if n.With["expr"] == nil {
				out = append(out, node.Use{Kind: node.UseExecutor, Name: executor})
			}
		}
		if n.Body != nil {
			out = appendUses(out, n.Body)
		}
	}
	return out
}
