package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
)

// forkEdits are the differences of a fork from the run whose past it shares.
type forkEdits struct {
	from, to *Program
	// pinned are the pinned dependencies of the past.
	pinned  map[string]string
	targets []string
	// inputs are the names of the changed inputs.
	inputs []string
	// model means that the settings of the main context change.
	model bool
}

// stale returns the nodes of the root graph whose past cannot be shared, with the reason, by id: nodes with a changed
// definition, new and removed nodes, nodes that read an edited value, and all that follow them. A composite is one
// node with everything inside it.
func (e *forkEdits) stale() map[string]string {
	was, is := partsByID(e.from.Flow), partsByID(e.to.Flow)
	fateWas, fateIs := e.from.Plan.NodeUses(e.targets), e.to.Plan.NodeUses(e.targets)
	keys := changedKeys(e.from.Flow.State, e.to.Flow.State)
	out := make(map[string]string)
	for id, now := range is {
		before, there := was[id]
		switch {
		case !there:
			out[id] = "is new"
		case before.def != now.def:
			out[id] = "was changed"
		case !slices.Equal(before.edges, now.edges):
			out[id] = "has other edges into it"
		case fateWas[id] != fateIs[id]:
			out[id] = "has other edges out of it"
		default:
			if why := e.editRead(now.node, keys); why != "" {
				out[id] = why
			}
		}
	}
	for id := range was {
		if _, there := is[id]; !there {
			out[id] = "was removed"
		}
	}
	addDownstream(e.to.Flow, out)
	return out
}

// addDownstream adds the nodes that follow a stale node.
func addDownstream(f *flow.Flow, out map[string]string) {
	if len(out) == 0 {
		return
	}
	into := make(map[string][]*flow.Edge, len(f.Nodes))
	for _, e := range f.Edges {
		into[e.To] = append(into[e.To], e)
	}
	for _, n := range f.Nodes { // in flow order: predecessors come first
		if out[n.ID] != "" {
			continue
		}
		for _, e := range into[n.ID] {
			if out[e.From] != "" {
				out[n.ID] = "comes after " + e.From
				break
			}
		}
	}
}

// nodeParts has the parts of a node by which two flows are compared.
type nodeParts struct {
	node  *flow.Node
	def   string
	edges []string
}

// partsByID returns the nodes of the root graph by id.
func partsByID(f *flow.Flow) map[string]nodeParts {
	var normal struct {
		Nodes map[string]map[string]any `json:"nodes"`
	}
	if data, err := f.Normal(); err == nil {
		_ = json.Unmarshal(data, &normal) // it was encoded by this package
	}
	out := make(map[string]nodeParts, len(f.Nodes))
	for _, n := range f.Nodes {
		def := normal.Nodes[n.ID]
		delete(def, "description")
		text, _ := json.Marshal(def) // it was decoded from JSON
		out[n.ID] = nodeParts{node: n, def: string(text) + usedFlows(n)}
	}
	for _, e := range f.Edges {
		p := out[e.To]
		p.edges = append(p.edges, fmt.Sprintf("%s %s.%s>%s %t", e.Kind, e.From, e.FromPort, e.ToPort, e.Partial)) // the rest is derived from def
		out[e.To] = p
	}
	return out
}

// usedFlows returns the fingerprints of the flows that a node, or a node inside it, runs.
func usedFlows(n *flow.Node) string {
	var s string
	if n.Uses != nil {
		s = " " + n.Uses.Fingerprint()
	}
	for _, f := range n.Runs {
		s += " " + f.Fingerprint()
	}
	if n.Body != nil {
		for _, inner := range n.Body.Nodes {
			s += usedFlows(inner)
		}
	}
	return s
}

// changedKeys returns the keys of the state with a changed declaration.
func changedKeys(was, is []flow.StateKey) []string {
	keys := make(map[string]flow.StateKey)
	for _, k := range was {
		k.Pos = flow.Pos{}
		keys[k.Name] = k
	}
	for _, k := range is {
		k.Pos = flow.Pos{}
		if before, there := keys[k.Name]; there && reflect.DeepEqual(before, k) {
			delete(keys, k.Name)
		} else {
			keys[k.Name] = k
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// editRead returns which edit a node reads, "" for none.
func (e *forkEdits) editRead(n *flow.Node, keys []string) string {
	if why := e.changedType(n); why != "" {
		return why
	}
	if e.model && e.usesContext(n) {
		return "uses a context, whose settings were changed"
	}
	if name := e.changedTool(n); name != "" {
		return e.toolChange(name)
	}
	r := &nodeReads{}
	r.node(n)
	switch {
	case len(e.inputs) > 0 && r.all:
		return "reads the inputs"
	case r.flow && e.from.Flow.Name != e.to.Flow.Name:
		return "reads the name of the flow"
	}
	for _, name := range e.inputs {
		if r.inputs[name] {
			return "reads the input " + name
		}
	}
	for _, key := range keys {
		if r.mentions(key) {
			return "names the state key " + key + ", which is declared another way"
		}
	}
	return ""
}

// changedType reports whether the type of the node, or of one inside it, has another version.
func (e *forkEdits) changedType(n *flow.Node) string {
	if was, is := e.pinned[n.Type], e.to.Pinned[n.Type]; was != "" && was != is {
		return fmt.Sprintf("is of type %s, which was version %s and is %s", n.Type, was, cmp.Or(is, "none"))
	}
	if n.Body == nil {
		return ""
	}
	for _, inner := range n.Body.Nodes {
		if why := e.changedType(inner); why != "" {
			return why
		}
	}
	return ""
}

// changedTool returns a changed tool that the node names, or a changed flow that it runs, "" for none. A node that
// uses all tools names them all.
func (e *forkEdits) changedTool(n *flow.Node) string {
	named := toolNameSet{}
	named.node(n)
	named.childFlows(n)
	for _, pin := range slices.Sorted(maps.Keys(e.pinned)) {
		name, ok := strings.CutPrefix(pin, toolPinPrefix)
		if ok && e.pinned[pin] != e.to.Pinned[pin] && (named.all || slices.Contains(named.names, name)) {
			return name
		}
	}
	return ""
}

// toolChange describes the change of a tool.
func (e *forkEdits) toolChange(name string) string {
	if e.to.Pinned[ToolPin(name)] == "" {
		return "names the tool " + name + ", which is no longer offered"
	}
	return "names the tool " + name + ", which was changed"
}

// usesContext reports whether the node, or one inside it, uses a context.
func (e *forkEdits) usesContext(n *flow.Node) bool {
	plan := e.to.Plan.Find(n.ID)
	return plan != nil && planUsesContext(plan)
}

func planUsesContext(n *engine.NodePlan) bool {
	if n.Use != flow.ContextNone {
		return true
	}
	for i := 0; n.Body != nil && i < len(n.Body.Nodes); i++ {
		if planUsesContext(&n.Body.Nodes[i]) {
			return true
		}
	}
	return false
}

// nodeReads holds what of the run a node reads, and all texts of its settings.
type nodeReads struct {
	all, flow bool
	inputs    map[string]bool
	run       map[string]bool // id, session and round, as far as they are read
	now       bool            // reads the time, or derives a UUID from the attempt
	texts     []string
}

func (r *nodeReads) node(n *flow.Node) {
	for _, b := range n.In {
		r.value(b.Value)
	}
	r.value(n.With)
	r.value(n.Cache.Key)
	if n.Body == nil {
		return
	}
	for _, b := range n.Body.Outputs {
		r.value(b.Value)
	}
	for _, inner := range n.Body.Nodes {
		r.node(inner)
	}
}

func (r *nodeReads) value(v any) {
	switch t := v.(type) {
	case string:
		r.text(t)
	case []any:
		for _, x := range t {
			r.value(x)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(t)) {
			r.texts = append(r.texts, k)
			r.value(t[k])
		}
	}
}

// text reads a template, or a text that may be a bare expression: it is not known here which settings are
// expressions, and treating a text as one only makes a node run again.
func (r *nodeReads) text(s string) {
	r.texts = append(r.texts, s)
	r.now = r.now || strings.Contains(s, "uuid(")
	if !strings.Contains(s, "run") && !strings.Contains(s, "now") {
		return
	}
	if strings.Contains(s, "{{") {
		t, err := expr.ParseTemplate(s)
		if err != nil {
			r.all = true
			return
		}
		r.refs(t.Refs())
		return
	}
	if p, err := expr.Compile(s); err == nil {
		r.refs(p.Refs())
	}
}

func (r *nodeReads) refs(refs []expr.Ref) {
	for _, ref := range refs {
		switch {
		case ref.Root == "now":
			r.now = true
		case ref.Root != "run":
		case len(ref.Path) == 0:
			r.all, r.flow = true, true
			r.readsRun("id", "session", "round")
		case ref.Path[0] == "flow":
			r.flow = true
		case ref.Path[0] == "id" || ref.Path[0] == "session" || ref.Path[0] == "round":
			r.readsRun(ref.Path[0])
		case ref.Path[0] == "inputs" && len(ref.Path) == 1:
			r.all = true
		case ref.Path[0] == "inputs":
			if r.inputs == nil {
				r.inputs = make(map[string]bool)
			}
			r.inputs[ref.Path[1]] = true
		}
	}
}

// readsRun notes members of run.
func (r *nodeReads) readsRun(names ...string) {
	if r.run == nil {
		r.run = make(map[string]bool)
	}
	for _, n := range names {
		r.run[n] = true
	}
}

// mentions reports whether a text of the settings contains the word.
func (r *nodeReads) mentions(word string) bool {
	return slices.ContainsFunc(r.texts, func(s string) bool { return strings.Contains(s, word) })
}
