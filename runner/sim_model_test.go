package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// simModel evaluates a random flow naively, by recursion, from section 4 of the
// design alone: what each node comes to does not depend on any order.
type simModel struct {
	nodes map[string]*simOutcome
	// turns are the paths that spoke in each context.
	turns map[string][]string
	// tainted: a composite failed, so that what else happened in it depends on
	// when.
	tainted   bool
	conflicts bool // two taken edges met on one port
}

// simOutcome is what a node came to.
type simOutcome struct {
	status   string // completed failed skipped not_needed, or stuck where the run ends first
	outputs  map[string]any
	attempts int
	parents  []string
	handled  bool
}

// simScope is one scope being evaluated.
type simScope struct {
	m        *simModel
	g        *simGraph
	prefix   string
	context  string
	index    int64
	forced   bool // what nothing handles is completed by a person
	failures []string
}

// evaluate runs the model; failures are the nodes that fail the run.
func (g *simGraph) evaluate(forced bool) (m *simModel, result any, ok bool, failures []string) {
	m = &simModel{nodes: map[string]*simOutcome{}, turns: map[string][]string{}}
	s := &simScope{m: m, g: g, context: "main", forced: forced}
	result, ok = s.run()
	return m, result, ok, s.failures
}

func (s *simScope) run() (result any, ok bool) {
	for i := range s.g.nodes {
		if !s.lazyOnly(i) {
			s.eval(i)
		}
	}
	for _, n := range s.g.nodes {
		if s.m.nodes[s.prefix+n.id] == nil {
			s.m.nodes[s.prefix+n.id] = &simOutcome{status: "not_needed"}
		}
	}
	n := s.g.nodes[s.g.out]
	out := s.m.nodes[s.prefix+n.id]
	if out.status != "completed" {
		return nil, false
	}
	result, ok = out.outputs[n.mainPort()]
	return result, ok
}

// lazyOnly: the node is read, and only by lazy ports, or for nodes that
// are themselves only asked for.
func (s *simScope) lazyOnly(i int) bool {
	read := false
	for j := i + 1; j < len(s.g.nodes); j++ {
		pushed, pulled := s.g.nodes[j].reads(i)
		if pushed && !s.lazyOnly(j) {
			return false
		}
		read = read || pushed || pulled
	}
	return read
}

// reads says whether the node has an edge from node i, and whether one into its
// lazy port.
func (n *simNode) reads(i int) (pushed, pulled bool) {
	from := func(e simEnd) bool { return e.node == i }
	for _, b := range n.in {
		if slices.ContainsFunc(b.from, from) {
			pushed, pulled = pushed || b.port != "pull", pulled || b.port == "pull"
		}
	}
	return pushed || slices.ContainsFunc(n.after, from), pulled
}

// taken says whether an edge brings something; resolved is false where its
// source never ends.
func (s *simScope) taken(e simEnd) (v any, taken, resolved bool) {
	o := s.eval(e.node)
	switch o.status {
	case "stuck":
		return nil, false, false
	case "completed":
		if e.port == "" {
			return nil, true, true
		}
		v, taken = o.outputs[e.port]
	case "failed":
		if e.port == "error" {
			return o.outputs["error"], true, true
		}
	}
	return v, taken, true
}

func (s *simScope) eval(i int) *simOutcome {
	n := s.g.nodes[i]
	path := s.prefix + n.id
	if o := s.m.nodes[path]; o != nil {
		return o
	}
	o := &simOutcome{}
	s.m.nodes[path] = o
	in, verdict := s.resolveInputs(n, o)
	switch verdict {
	case "run":
		s.perform(i, n, path, o, in)
	case "clash":
		s.m.conflicts = true
		s.fail(i, n, path, o, "port_conflict", 0)
	default:
		o.status = verdict
	}
	return o
}

// resolveInputs collects what comes in and applies the rules of edges.
func (s *simScope) resolveInputs(n *simNode, o *simOutcome) (in map[string]any, verdict string) {
	in = map[string]any{}
	pushed, tested, some, stuck, clash := len(n.after), 0, 0, false, false
	for _, b := range n.in {
		if b.port == "pull" {
			continue
		}
		pushed += len(b.from)
		if b.text {
			tested += len(b.from)
		}
		v, has, came, waits := s.portValue(&b, o)
		if has {
			in[b.port] = v
		}
		some, stuck, clash = some+came, stuck || waits, clash || came > 1 && !b.text
	}
	controls := 0
	for _, e := range n.after {
		o.parents = append(o.parents, s.prefix+s.g.nodes[e.node].id)
		_, taken, resolved := s.taken(e)
		stuck = stuck || !resolved
		if taken {
			controls++
		}
	}
	need := n.op.Need
	if n.kind == "merge" {
		need = "value"
	}
	_, has := in[need]
	switch {
	case stuck:
		return nil, "stuck"
	case pushed == 0:
	case clash:
		return nil, "clash"
	case some+controls == 0 && tested < pushed,
		len(n.after) > 0 && controls == 0,
		n.joinAll && controls < len(n.after),
		need != "" && !has:
		return nil, "skipped"
	}
	return in, "run"
}

// portValue returns what the edges of a port bring: its value, how many were taken, and
// whether one never ends.
func (s *simScope) portValue(b *simIn, o *simOutcome) (v any, has bool, came int, stuck bool) {
	texts := make([]string, len(b.from))
	for k, e := range b.from {
		o.parents = append(o.parents, s.prefix+s.g.nodes[e.node].id)
		x, taken, resolved := s.taken(e)
		stuck = stuck || !resolved
		texts[k] = "-"
		if taken {
			v, came, texts[k] = x, came+1, textOf(x)
		}
	}
	if b.text {
		return strings.Join(texts, "+"), true, came, stuck
	}
	return v, came > 0, came, stuck
}

func textOf(v any) string {
	if t, ok := v.(string); ok {
		return t
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// perform is what a node that runs comes to.
func (s *simScope) perform(i int, n *simNode, path string, o *simOutcome, in map[string]any) {
	context := s.context
	if c, ok := in["context"].(string); ok {
		context = c
	}
	switch n.kind {
	case "merge":
		s.complete(o, 1, map[string]any{"value": in["value"]})
	case "newContext":
		s.complete(o, 1, map[string]any{"context": path})
	case "op":
		s.op(i, n, path, o, in, context)
	default:
		s.composite(i, n, path, o, context)
	}
}

func (s *simScope) complete(o *simOutcome, attempts int, outputs map[string]any) {
	o.status, o.attempts, o.outputs = "completed", attempts, outputs
}

func (s *simScope) op(i int, n *simNode, path string, o *simOutcome, in map[string]any, context string) {
	if n.op.Pulls {
		e := n.in[0].from[0]
		for _, b := range n.in {
			if b.port == "pull" {
				e = b.from[0]
			}
		}
		v, taken, resolved := s.taken(e)
		if !resolved {
			o.status = "stuck"
			return
		}
		if taken {
			in["pull"] = v
		}
	}
	if n.op.Fails >= n.attempts || n.op.Permanent && n.op.Fails > 0 {
		attempts := n.attempts
		if n.op.Permanent {
			attempts = 1
		}
		s.fail(i, n, path, o, "op_failed", attempts)
		return
	}
	if n.op.Ask {
		in["answer"] = "yes"
	}
	if s.prefix != "" {
		in["index"] = s.index
	}
	value := opValue(path, in)
	out := map[string]any{}
	if !n.op.Quiet {
		out["value"] = value
	}
	if len(n.op.Branches) > 0 {
		out[n.op.Branches[n.op.Pick]] = true
	}
	if n.op.Say {
		s.m.turns[context] = append(s.m.turns[context], path)
		out["context"] = context
	}
	s.complete(o, n.op.Fails+1, out)
}

// fail is a final failure: the error port takes it, or onError, or nothing.
func (s *simScope) fail(i int, n *simNode, path string, o *simOutcome, code string, attempts int) {
	o.status, o.attempts = "failed", attempts
	switch {
	case s.errorWired(i):
		message := "as told"
		if code == "port_conflict" {
			message = "two taken edges bring a value to one port"
		}
		o.handled = true
		o.outputs = map[string]any{"error": map[string]any{"code": code, "message": message, "node": path, "attempt": int64(attempts)}}
	case n.onError:
		o.status, o.outputs = "completed", map[string]any{"value": "instead of " + n.id}
	case s.forced:
		o.status, o.outputs = "completed", map[string]any{"value": "forced " + path}
	default:
		o.status = "stuck"
		s.failures = append(s.failures, path)
	}
}

func (s *simScope) errorWired(i int) bool {
	for _, n := range s.g.nodes {
		ends := n.after
		for _, b := range n.in {
			ends = slices.Concat(ends, b.from)
		}
		for _, e := range ends {
			if e.node == i && e.port == "error" {
				return true
			}
		}
	}
	return false
}

func (s *simScope) composite(i int, n *simNode, path string, o *simOutcome, context string) {
	var results []any
	given := false
	var last any
	had := false
	failed := false
	for k := range n.turns {
		inner := &simScope{
			m: s.m, g: n.body, prefix: fmt.Sprintf("%s#%d/", path, k+1), context: context, index: int64(k),
			forced: s.forced && !s.errorWired(i),
		} // an error port is quicker than a person
		var v any
		v, had = inner.run()
		failed = failed || len(inner.failures) > 0
		if failed && n.lanes == 1 {
			break
		}
		given, last = given || had, v
		results = append(results, v)
	}
	if failed {
		s.m.tainted = true
		if s.errorWired(i) {
			o.status, o.handled, o.outputs = "failed", true, map[string]any{"error": nil}
			return
		}
		o.status = "stuck"
		s.failures = append(s.failures, path)
		return
	}
	if n.kind == "loop" {
		out := map[string]any{"iterations": int64(n.turns)}
		if had {
			out["result"] = last
		}
		s.complete(o, 1, out)
		return
	}
	if !given {
		for k := range results {
			results[k] = map[string]any{}
		}
	}
	s.complete(o, 1, map[string]any{"results": results, "count": int64(n.turns)})
}
