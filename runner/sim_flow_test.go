package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A random flow, as the generator and the naive model see it. It shares nothing
// with the engine: it is written as a file for Weir and evaluated as it stands
// by the model.
type (
	simGraph struct {
		nodes []*simNode // sources before targets
		out   int        // the node whose value the scope returns
	}
	simNode struct {
		id              string
		kind            string // op, merge, loop, forEach, newContext
		in              []simIn
		after           []simEnd
		joinAll         bool
		attempts        int
		onError         bool
		interruptBefore bool // interruptBefore
		interruptAfter  bool // interruptAfter
		op              simOp
		body            *simGraph
		turns           int // of a loop, or items of a forEach
		lanes           int // concurrency of a forEach
		fork            bool
		declares        bool // an artifact
	}
	// simIn binds a port: to one edge, or to several (merge, a template).
	simIn struct {
		port string
		from []simEnd
		text bool // a template of several references, each tested by has()
	}
	simEnd struct {
		node int
		port string
	}
	// simOp is what an op does; it is also its settings.
	simOp struct {
		Effects   int      `json:"effects,omitempty"`
		Announce  bool     `json:"announce,omitempty"`
		Fails     int      `json:"fails,omitempty"`
		Permanent bool     `json:"permanent,omitempty"`
		Branches  []string `json:"branches,omitempty"`
		Pick      int      `json:"pick,omitempty"`
		Quiet     bool     `json:"quiet,omitempty"`
		Say       bool     `json:"say,omitempty"`
		Ask       bool     `json:"ask,omitempty"`
		Sleep     int64    `json:"sleep,omitempty"`
		Write     bool     `json:"write,omitempty"`
		Own       bool     `json:"own,omitempty"`
		Lazy      bool     `json:"lazy,omitempty"`
		Pulls     bool     `json:"pulls,omitempty"`
		Need      string   `json:"need,omitempty"`
		Direct    bool     `json:"direct,omitempty"`
	}
)

// drawFunc gives a number from 0 to n-1: from a seed, or from rapid.
type drawFunc func(n int) int

func (d drawFunc) oneIn(of int) bool { return d(of) == 0 }

// randomGraph makes a scope of 2 to most nodes. Flaky scopes may fail, and
// sequential says that no two of its iterations run at once.
func randomGraph(d drawFunc, most, depth int, flaky bool, prefix string) *simGraph {
	g := &simGraph{}
	n := 2 + d(most-1)
	for i := range n {
		g.nodes = append(g.nodes, randomNode(d, g, i, depth, flaky, prefix))
	}
	g.out = n - 1
	for g.nodes[g.out].kind == "newContext" && g.out > 0 {
		g.out--
	}
	return g
}

func randomNode(d drawFunc, g *simGraph, i, depth int, flaky bool, prefix string) *simNode {
	n := &simNode{id: fmt.Sprintf("%s%c", prefix, 'a'+i), kind: "op", attempts: 1}
	// Ids that do not follow the file's order: flow order is by id within a rank.
	if d.oneIn(3) {
		n.id = fmt.Sprintf("%s%c%d", prefix, 'z'-i, i)
	}
	switch k := d(12); {
	case k == 0 && i > 1:
		n.kind = "merge"
	case k == 1 && depth > 0:
		n.kind = "loop"
	case k == 2 && depth > 0:
		n.kind = "forEach"
	case k == 3 && i > 0:
		n.kind = "newContext"
	}
	n.interruptBefore, n.interruptAfter = d.oneIn(25), d.oneIn(25)
	switch n.kind {
	case "op":
		randomOp(d, n, flaky)
	case "loop", "forEach":
		n.turns = 1 + d(3)
		n.lanes = 1
		if n.kind == "forEach" {
			n.lanes += d(3)
		}
		n.fork = n.lanes == 1 && d.oneIn(3)
		n.body = randomGraph(d, 3, depth-1, flaky, n.id+"_")
	}
	connectNode(d, g, n, i)
	n.declares = (int(n.id[0])+i)%5 == 0 // not drawn, so that seeds keep their meaning
	return n
}

func randomOp(d drawFunc, n *simNode, flaky bool) {
	o := &n.op
	o.Effects = max(0, d(5)-2)
	o.Announce = d.oneIn(3)
	o.Ask = d.oneIn(8)
	if d.oneIn(8) {
		o.Sleep = int64(1 + d(50))
	}
	o.Say, o.Write, o.Own = d.oneIn(3), d.oneIn(3), d.oneIn(4)
	o.Quiet = d.oneIn(8)
	if d.oneIn(4) {
		o.Branches = []string{"left", "right", "middle"}[:2+d(2)]
		o.Pick = d(len(o.Branches))
	}
	if d.oneIn(6) {
		n.attempts = 1 + d(3)
		o.Fails = d(n.attempts)
	}
	if flaky && d.oneIn(12) {
		o.Fails, o.Permanent = 9, d.oneIn(2)
		n.onError = d.oneIn(2)
	}
	if o.Effects == 0 && !o.Ask && o.Sleep == 0 && !o.Say {
		o.Direct = d.oneIn(2)
	}
}

// connectNode draws what comes into a node.
func connectNode(d drawFunc, g *simGraph, n *simNode, i int) {
	if i == 0 {
		return
	}
	if n.kind == "merge" {
		connectMerge(d, g, n, i)
	} else {
		connectPorts(d, g, n, i)
	}
	if n.kind == "op" && len(n.in) > 0 && d.oneIn(3) {
		n.op.Need = n.in[0].port
	}
	if n.kind == "op" && d.oneIn(4) {
		if e, ok := g.end(d, i); ok {
			n.op.Lazy, n.op.Pulls, n.op.Direct = true, d.oneIn(2), false
			n.in = append(n.in, simIn{port: "pull", from: []simEnd{e}})
		}
	}
	g.connectContext(d, n, i)
	for range max(0, d(5)-2) {
		if e := g.control(d, i); !slices.Contains(n.after, e) {
			n.after = append(n.after, e)
		}
	}
	n.joinAll = len(n.after) > 1 && d.oneIn(3)
}

func connectMerge(d drawFunc, g *simGraph, n *simNode, i int) {
	in := simIn{port: "value"}
	for range 1 + d(2) {
		if e, ok := g.end(d, i); ok && !slices.Contains(in.from, e) {
			in.from = append(in.from, e)
		}
	}
	if len(in.from) > 0 {
		n.in = append(n.in, in)
	}
}

func connectPorts(d drawFunc, g *simGraph, n *simNode, i int) {
	ports := []string{"x", "y", "z"}
	for _, port := range ports[:d(4)] {
		e, ok := g.end(d, i)
		if !ok {
			continue
		}
		in := simIn{port: port, from: []simEnd{e}}
		if e2, ok := g.end(d, i); ok && d.oneIn(4) && e2 != e {
			in.from, in.text = append(in.from, e2), true
		}
		n.in = append(n.in, in)
	}
}

// end draws a data output of a node before i.
func (g *simGraph) end(d drawFunc, i int) (simEnd, bool) {
	j := d(i)
	switch f := g.nodes[j]; f.kind {
	case "newContext":
		return simEnd{}, false
	case "op":
		if d.oneIn(6) {
			return simEnd{j, "error"}, true
		}
	case "loop":
		return simEnd{j, "result"}, true
	case "forEach":
		return simEnd{j, "results"}, true
	}
	return simEnd{j, "value"}, true
}

func (g *simGraph) control(d drawFunc, i int) simEnd {
	j := d(i)
	f := g.nodes[j]
	if f.kind == "op" && len(f.op.Branches) > 0 && d(3) > 0 {
		return simEnd{j, f.op.Branches[d(len(f.op.Branches))]}
	}
	if d.oneIn(8) {
		return simEnd{j, "error"}
	}
	return simEnd{j, ""}
}

// connectContext may give a node the context of one before it.
func (g *simGraph) connectContext(d drawFunc, n *simNode, i int) {
	if n.kind == "merge" || n.kind == "op" && !n.op.Say || !d.oneIn(2) {
		return
	}
	for j := i - 1; j >= 0; j-- {
		f := g.nodes[j]
		if f.kind == "newContext" || f.kind == "op" && f.op.Say && d.oneIn(2) {
			n.in = append(n.in, simIn{port: "context", from: []simEnd{{j, "context"}}})
			return
		}
	}
}

// file returns the flow as JSON, in the authoring form.
func (g *simGraph) file() []byte {
	out := map[string]any{
		"weir": 1, "name": "random", "nodes": g.nodesJSON(), "outputs": g.outputs(),
		"state": map[string]any{
			"sum": map[string]any{"reducer": "sum"}, "max": map[string]any{"reducer": "max"},
			"log": map[string]any{"reducer": "append"}, "map": map[string]any{"reducer": "merge"},
		},
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return b
}

func (g *simGraph) outputs() map[string]any {
	n := g.nodes[g.out]
	return map[string]any{"result": "{{ " + n.id + "." + n.mainPort() + " }}"}
}

func (n *simNode) mainPort() string {
	switch n.kind {
	case "loop":
		return "result"
	case "forEach":
		return "results"
	case "newContext":
		return "context"
	}
	return "value"
}

func (g *simGraph) nodesJSON() map[string]any {
	out := map[string]any{}
	for _, n := range g.nodes {
		out[n.id] = g.nodeJSON(n)
	}
	return out
}

func (g *simGraph) nodeJSON(n *simNode) map[string]any {
	m := map[string]any{"type": n.kind}
	if n.op.Direct {
		m["type"] = "directOp"
	}
	in := map[string]any{}
	for _, b := range n.in {
		in[b.port] = g.binding(n, &b)
	}
	var after []string
	for _, e := range n.after {
		if e.port == "" {
			after = append(after, g.nodes[e.node].id)
		} else {
			after = append(after, g.nodes[e.node].id+"."+e.port)
		}
	}
	if after != nil {
		m["after"] = after
	}
	if n.joinAll {
		m["join"] = "all"
	}
	if n.attempts > 1 {
		m["retry"] = map[string]any{"attempts": n.attempts, "backoff": "1s"}
	}
	if n.onError {
		m["onError"] = map[string]any{"value": "instead of " + n.id}
	}
	if n.interruptBefore {
		m["interruptBefore"] = true
	}
	if n.interruptAfter {
		m["interruptAfter"] = true
	}
	if n.declares {
		m["artifacts"] = []any{map[string]any{"type": "File", "name": n.id + " of {{ run.flow }}", "attributes": map[string]any{"outputs": "{{ size(outputs) }}"}}}
	}
	n.withJSON(m, in)
	if len(in) > 0 {
		m["in"] = in
	}
	return m
}

func (n *simNode) withJSON(m, in map[string]any) {
	switch n.kind {
	case "op":
		b, err := json.Marshal(n.op)
		if err != nil {
			panic(err)
		}
		var with map[string]any
		if err := json.Unmarshal(b, &with); err != nil {
			panic(err)
		}
		if len(with) > 0 {
			m["with"] = with
		}
		if strings.Contains(n.id, "_") {
			in["index"] = "{{ inputs.index }}"
		}
	case "loop":
		in["result"] = "seed"
		m["with"] = map[string]any{"max": n.turns, "body": n.body.bodyJSON()}
	case "forEach":
		items := make([]any, n.turns)
		for i := range items {
			items[i] = i * 10
		}
		in["items"] = items
		m["with"] = map[string]any{"concurrency": n.lanes, "body": n.body.bodyJSON()}
	}
	if n.fork {
		m["isolation"] = "fork"
	}
}

func (g *simGraph) bodyJSON() map[string]any {
	return map[string]any{"nodes": g.nodesJSON(), "outputs": g.outputs()}
}

func (g *simGraph) binding(n *simNode, b *simIn) any {
	var refs []string
	for _, e := range b.from {
		ref := g.nodes[e.node].id + "." + e.port
		if b.text {
			ref = "has(" + ref + ") ? " + ref + " : '-'"
		}
		refs = append(refs, "{{ "+ref+" }}")
	}
	switch {
	case n.kind == "merge":
		list := make([]any, len(refs))
		for i, r := range refs {
			list[i] = r
		}
		return list
	case b.text:
		return strings.Join(refs, "+")
	}
	return refs[0]
}
