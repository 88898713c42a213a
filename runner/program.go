package runner

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
)

// Program is an executable flow: its plan, with every node's settings decoded and every template compiled. It is
// immutable and shared by runs.
type Program struct {
	Flow        *flow.Flow
	Plan        *engine.Plan
	Fingerprint string
	// Pinned has the versions of the node types by their names and, by ToolPin, the hashes of the tools that the flow
	// names; the caller of Prepare adds these before it uses the program.
	Pinned map[string]string
	// Specs is the digest under which the store keeps flow.Specs of the flow, "" if it has none. Inferred are the
	// node types of a recorded program whose ports were inferred from the edges.
	Specs    string
	Inferred []string
	// RecordedSpecs is what the store keeps under Specs; nil if there is nothing.
	RecordedSpecs     *flow.Specs
	recorded          bool // made by NewRecordedProgram
	types             flow.Catalogue
	ignoreToolChanges bool                    // changed tools are ignored
	allowChanges      bool                    // so are other changes that Accept allows
	files             bool                    // nodes of the flow, or of a sub-flow, name files
	costGuard         string                  // a budgetGuard that bounds the cost, "" if there is none
	schemas           map[string]*node.Schema // of state keys
}

// preparedNode is the runner's part of a node's plan.
type preparedNode struct {
	node        node.Node
	cache       *cacheSpec
	bindings    []binding
	artifacts   []artifact               // that it declares
	lazy        []string                 // lazy ports
	types       map[string]flow.PortType // of ports with a single value of a specific type
	inline      bool                     // may run on the driver's goroutine
	startsEarly bool                     // may run before its start is durable
}

// binding is a port or an output with its template.
type binding struct {
	name      string
	tpl       *expr.Template
	literal   engine.Value
	isLiteral bool
	// singleRef marks a template that is exactly one reference: if its source has no value, the port or output is
	// absent.
	singleRef bool
	written   any // the template as the flow has it
	pos       flow.Pos
}

// Prepare compiles a valid flow. An error is a *flow.Invalid or names the node.
func Prepare(f *flow.Flow, c *node.Catalogue) (*Program, error) {
	if f.Recorded() {
		return nil, fmt.Errorf("flow %s is that of a record, and cannot be run", f.Name)
	}
	plan, err := engine.Compile(f, c)
	if err != nil {
		return nil, err
	}
	p := &Program{
		Flow: f, Plan: plan, Fingerprint: f.Fingerprint(), Pinned: make(map[string]string), types: c,
		files:     slices.ContainsFunc(f.Dependencies(), func(f *flow.Flow) bool { return namesFiles(&f.Graph) }),
		costGuard: costGuardOf(&f.Graph),
	}
	if err := p.prepareState(); err != nil {
		return nil, fmt.Errorf("flow %s: %w", f.Name, err)
	}
	if err := p.prepareGraph(plan.Root, c); err != nil {
		return nil, fmt.Errorf("flow %s: %w", f.Name, err)
	}
	return p, nil
}

// ToolPin returns the name of a tool in pinned dependencies.
func ToolPin(name string) string { return toolPinPrefix + name }

// toolPinPrefix is the prefix of tool names; the names of node types have no colon.
const toolPinPrefix = "tool:"

// IgnoringToolChanges returns the program for commands that do not depend on changed tools, such as stopping a run.
func (p *Program) IgnoringToolChanges() *Program {
	q := *p
	q.ignoreToolChanges = true
	return &q
}

// allowingChanges returns the program for accepting changes.
func (p *Program) allowingChanges() *Program {
	q := *p
	q.allowChanges = true
	return &q
}

// prepareState compiles the schemas of state keys.
func (p *Program) prepareState() error {
	p.schemas = make(map[string]*node.Schema)
	for _, k := range p.Flow.State {
		if k.Schema == nil {
			continue
		}
		s, err := node.CompileSchema(k.Schema)
		if err != nil {
			return fmt.Errorf("%s: state %s: %w", k.Pos, k.Name, err)
		}
		p.schemas[k.Name] = s
	}
	return nil
}

func (p *Program) prepareGraph(g *engine.GraphPlan, c *node.Catalogue) error {
	outputs, err := prepareBindings(g.Def.Outputs)
	if err != nil {
		return err
	}
	g.Host = outputs
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if err := p.prepareNode(n, c); err != nil {
			return fmt.Errorf("%s: node %s: %w", n.Def.Pos, n.Def.ID, err)
		}
		if n.Body != nil {
			if err := p.prepareGraph(n.Body, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Program) prepareNode(n *engine.NodePlan, c *node.Catalogue) error {
	run, err := c.Type(n.Def.Type).Prepare(n.Def.With)
	if err != nil {
		return err
	}
	inline := n.Spec.Inline && (n.Spec.InlineFor == nil || n.Spec.InlineFor(n.Def.With))
	h := &preparedNode{node: run, types: make(map[string]flow.PortType), inline: inline, startsEarly: inline && (n.Spec.Pure || n.Spec.Replays)}
	if n.Def.Timeout.Total > 0 || n.Def.Timeout.Idle > 0 {
		h.inline, h.startsEarly = false, false
	}
	if h.cache, err = prepareCache(n); err != nil {
		return err
	}
	if h.cache != nil {
		h.inline, h.startsEarly = false, false
	}
	if h.bindings, err = prepareBindings(n.Def.In); err != nil {
		return err
	}
	if h.artifacts, err = prepareArtifacts(n.Def.Artifacts); err != nil {
		return err
	}
	if h.artifacts != nil { // templates over many elements take long
		h.inline, h.startsEarly = false, false
	}
	ports := n.Spec.PortsOf(n.Def)
	for _, port := range ports.In {
		if port.Lazy {
			h.lazy = append(h.lazy, port.Name)
		}
		if !port.Many && port.Type != flow.TypeAny && port.Type != "" {
			h.types[port.Name] = port.Type
		}
	}
	n.Host = h
	p.Pinned[n.Spec.Name] = fmt.Sprint(n.Spec.Version)
	return nil
}

func prepareBindings(in []flow.Binding) ([]binding, error) {
	var out []binding
	for _, b := range in {
		t, err := expr.ParseTemplate(b.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", b.Pos, b.Name, err)
		}
		bd := binding{name: b.Name, tpl: t, written: b.Value, pos: b.Pos}
		if p := t.Program(); p != nil {
			bd.singleRef = p.Path() != nil
		}
		if v, ok := t.Literal(); ok {
			if bd.literal, err = engine.Normalize(v); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", b.Pos, b.Name, err)
			}
			bd.isLiteral = true
		}
		out = append(out, bd)
	}
	return out, nil
}
