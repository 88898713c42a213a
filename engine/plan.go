package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
)

// Plan is a flow prepared for running: every name is resolved to an index. All runs of the
// flow share it. It is immutable.
type Plan struct {
	Flow     *flow.Flow
	Root     *GraphPlan
	reducers map[string]flow.Reducer
	budgets  bool // whether any node has a budget
}

// GraphPlan is one scope of a plan.
type GraphPlan struct {
	Def *flow.Graph
	// Nodes are in flow order.
	Nodes []NodePlan
	// Host is for the runner; set once, before the first run.
	Host  any
	index map[string]int32
	// edges are grouped by target, in the order of the definition.
	edges   []edgePlan
	entries []int32 // nodes without pushed edges
	lazy    int     // number of nodes that run only when pulled
}

// NodePlan is one node of a plan.
type NodePlan struct {
	Def   *flow.Node
	Spec  *flow.TypeSpec
	Index int
	// Use says how the node uses its context.
	Use flow.ContextUse
	// Body is the plan of a composite's inner graph; of a composite with branches it has the
	// nodes of all of them.
	Body *GraphPlan
	// Host is for the runner; set once, before the first run.
	Host any

	inLo, inHi    int32   // edges[inLo:inHi] are the incoming edges
	out           []int32 // outgoing edges, by target
	pushed        int32   // incoming edges that are not lazy
	control       int32   // control edges among them
	required      []string
	many          []string // ports that take any number of edges
	bound         []boundPort
	contextPort   []string
	contextInputs []contextInput
	joinAll       bool
	lazyOnly      bool
	errorWired    bool
	firstOut      string // the port that takes the value of onError
	branches      []branchPlan
}

// Requires reports whether the node cannot run unless the port has a value.
func (n *NodePlan) Requires(port string) bool { return slices.Contains(n.required, port) }

// contextInput is a context port that takes its handle from an input of the surrounding
// body: `context: "{{ inputs.room }}"`.
type contextInput struct{ port, input string }

// boundPort is a port with a literal or template, and the edges that it reads.
type boundPort struct {
	name  string
	reads []int32
}

type edgePlan struct {
	from, to         int32
	fromPort, toPort string
	kind             flow.EdgeKind
	lazy, partial    bool
	maybe, tested    bool // of a conditional edge, see flow.Edge
}

// Compile prepares a valid flow. It returns an error if the flow was not validated against
// the same catalogue.
func Compile(f *flow.Flow, c flow.Catalogue) (*Plan, error) {
	root, err := compileGraph(&f.Graph, c)
	if err != nil {
		return nil, fmt.Errorf("compile flow %s: %w", f.Name, err)
	}
	p := &Plan{Flow: f, Root: root, reducers: make(map[string]flow.Reducer, len(f.State)), budgets: root.budgets()}
	for _, k := range f.State {
		p.reducers[k.Name] = k.Reducer
	}
	return p, nil
}

// budgets reports whether any node of the graph has a budget.
func (p *GraphPlan) budgets() bool {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Def.Spend != (flow.SpendLimits{}) || n.Body != nil && n.Body.budgets() {
			return true
		}
	}
	return false
}

func compileGraph(g *flow.Graph, c flow.Catalogue) (*GraphPlan, error) {
	p := &GraphPlan{Def: g, Nodes: make([]NodePlan, len(g.Nodes)), index: make(map[string]int32, len(g.Nodes))}
	for i, n := range g.Nodes {
		spec := n.SpecIn(c)
		if spec == nil {
			return nil, fmt.Errorf("node %s: unknown type %q", n.ID, n.Type)
		}
		p.index[n.ID] = int32(i)
		p.Nodes[i] = NodePlan{Def: n, Spec: spec, Index: i, Use: spec.ContextOf(n), joinAll: n.Join == "all"}
		if n.Body != nil {
			body, err := compileGraph(n.Body, c)
			if err != nil {
				return nil, fmt.Errorf("node %s: %w", n.ID, err)
			}
			p.Nodes[i].Body, p.Nodes[i].branches = body, branchesOf(n)
		}
	}
	if err := p.compileEdges(g); err != nil {
		return nil, err
	}
	for i := range p.Nodes {
		p.compilePorts(&p.Nodes[i])
	}
	p.markLazy()
	return p, nil
}

func (p *GraphPlan) compileEdges(g *flow.Graph) error {
	p.edges = make([]edgePlan, 0, len(g.Edges))
	for _, e := range g.Edges {
		from, ok := p.index[e.From]
		to, ok2 := p.index[e.To]
		if !ok || !ok2 {
			return fmt.Errorf("edge %s connects nodes that do not exist", e.ID)
		}
		p.edges = append(p.edges, edgePlan{
			from: from, to: to, fromPort: e.FromPort, toPort: e.ToPort,
			kind: e.Kind, partial: e.Partial, maybe: e.Conditional, tested: e.Guarded,
		})
	}
	slices.SortStableFunc(p.edges, func(a, b edgePlan) int { return int(a.to) - int(b.to) })
	for i := range p.edges {
		e := &p.edges[i]
		from, to := &p.Nodes[e.from], &p.Nodes[e.to]
		from.out = append(from.out, int32(i))
		if e.fromPort == errorPort {
			from.errorWired = true
		}
		if to.inHi == 0 {
			to.inLo = int32(i)
		}
		to.inHi = int32(i) + 1
	}
	return nil
}

// errorPort is the output port of every node for its final failure.
const errorPort = "error"

// compilePorts computes the port lists of the node.
func (p *GraphPlan) compilePorts(n *NodePlan) {
	ports := n.Spec.PortsOf(n.Def)
	lazy := make(map[string]bool)
	for _, port := range ports.In {
		if port.Required && !port.Lazy {
			n.required = append(n.required, port.Name)
		}
		if port.Lazy {
			lazy[port.Name] = true
		}
		if port.Many {
			n.many = append(n.many, port.Name)
		}
		if port.Type == flow.TypeContext {
			n.contextPort = append(n.contextPort, port.Name)
		}
	}
	if n.Spec.Composite && len(n.contextPort) == 0 {
		n.contextPort = []string{"context"}
	}
	if len(ports.Out) > 0 {
		n.firstOut = ports.Out[0].Name
	}
	for _, b := range n.Def.In {
		n.bound = append(n.bound, boundPort{name: b.Name})
		if slices.Contains(n.contextPort, b.Name) {
			if name := flow.BodyInput(b.Value); name != "" {
				n.contextInputs = append(n.contextInputs, contextInput{b.Name, name})
			}
		}
	}
	p.compileInEdges(n, lazy)
}

// compileInEdges computes which edges the node waits for.
func (p *GraphPlan) compileInEdges(n *NodePlan, lazy map[string]bool) {
	for i := n.inLo; i < n.inHi; i++ {
		e := &p.edges[i]
		e.lazy = lazy[e.toPort]
		if e.partial {
			n.addRead(e.toPort, i)
		}
		if e.lazy {
			continue
		}
		n.pushed++
		if e.kind == flow.EdgeControl {
			n.control++
		}
	}
	if n.pushed == 0 {
		p.entries = append(p.entries, int32(n.Index))
	}
}

func (n *NodePlan) addRead(port string, edge int32) {
	for i := range n.bound {
		if n.bound[i].name == port {
			n.bound[i].reads = append(n.bound[i].reads, edge)
		}
	}
}

// markLazy finds the nodes that only lazy ports need.
func (p *GraphPlan) markLazy() {
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		n := &p.Nodes[i]
		n.lazyOnly = len(n.out) > 0
		for _, e := range n.out {
			if !p.edges[e].lazy && !p.Nodes[p.edges[e].to].lazyOnly {
				n.lazyOnly = false
				break
			}
		}
		if n.lazyOnly {
			p.lazy++
		}
	}
}

// Find returns the plan of the node at a path such as "refine#2/draft", whose
// iteration numbers do not matter, or nil.
func (p *Plan) Find(path string) *NodePlan {
	_, n := p.find(path)
	return n
}

// find returns the node at a path and the graph that it is in, nil if there is none.
func (p *Plan) find(path string) (*GraphPlan, *NodePlan) {
	g := p.Root
	for {
		id, rest, nested := strings.Cut(path, "/")
		id, _, _ = strings.Cut(id, "#")
		i, ok := g.index[id]
		if !ok {
			return nil, nil
		}
		if !nested {
			return g, &g.Nodes[i]
		}
		if g = g.Nodes[i].Body; g == nil {
			return nil, nil
		}
		path = rest
	}
}

// Sources returns the ids of the nodes of the same scope from which edges lead to the node at a path; a node may be
// listed repeatedly. ok is false for an unknown path, and for a node that starts only when another one pulls it.
func (p *Plan) Sources(path string) (ids []string, ok bool) {
	g, n := p.find(path)
	if n == nil || n.lazyOnly {
		return nil, false
	}
	for i := n.inLo; i < n.inHi; i++ {
		if e := &g.edges[i]; !e.lazy {
			ids = append(ids, g.Nodes[e.from].Def.ID)
		}
	}
	return ids, true
}

// after reports whether node b follows node a in the graph. It visits only nodes between
// them in flow order.
func (p *GraphPlan) after(a, b int32) bool {
	if a >= b {
		return false
	}
	seen := make(map[int32]bool)
	stack := []int32{b}
	for len(stack) > 0 {
		n := &p.Nodes[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		for i := n.inLo; i < n.inHi; i++ {
			from := p.edges[i].from
			if from == a {
				return true
			}
			if from > a && !seen[from] {
				seen[from] = true
				stack = append(stack, from)
			}
		}
	}
	return false
}

// needed marks the targets and everything that they depend on.
func (p *GraphPlan) needed(targets []string) []bool {
	need := make([]bool, len(p.Nodes))
	for _, t := range targets {
		if i, ok := p.index[t]; ok {
			need[i] = true
		}
	}
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		if !need[i] {
			continue
		}
		n := &p.Nodes[i]
		for e := n.inLo; e < n.inHi; e++ {
			if !p.edges[e].lazy {
				need[p.edges[e].from] = true
			}
		}
	}
	return need
}
