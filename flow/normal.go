package flow

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Normal returns the normal form: JSON, keys in a fixed order, every connection an entry of
// `edges`. Parsing it gives the same flow, including ids and metadata, but without
// positions. It returns an error for a value that JSON cannot represent, which only a flow
// built in Go can have.
func (f *Flow) Normal() ([]byte, error) {
	w := &writer{}
	w.open('{')
	w.field("weir", Version)
	w.field("name", f.Name)
	w.text("description", f.Description)
	w.context(f.Context)
	w.sessions(f.Session)
	w.spend(f.Spend)
	w.duration("timeout", f.Timeout)
	w.inputs(f.Inputs)
	w.state(f.State)
	w.uses(f.Uses)
	w.graph(&f.Graph)
	w.close('}')
	if w.err != nil {
		return nil, fmt.Errorf("normal form of flow %s: %w", f.Name, w.err)
	}
	return append(w.buf, '\n'), nil
}

// Fingerprint returns "sha256:" and the hex hash of the normal form. It does not depend on
// key order, comments, layout or positions, but does depend on descriptions. It is "" for a
// flow built in Go that has no normal form.
func (f *Flow) Fingerprint() string {
	if f.cachedFingerprint != "" {
		return f.cachedFingerprint
	}
	return f.computeFingerprint()
}

func (f *Flow) computeFingerprint() string {
	data, err := f.Normal()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// writer writes JSON, with an indent of two spaces down to the nodes.
type writer struct {
	buf   []byte
	depth int
	first bool
	err   error
}

// inlineDepth is the depth from which values are written on one line.
const inlineDepth = 3

func (w *writer) open(c byte) {
	w.buf = append(w.buf, c)
	w.depth++
	w.first = true
}

func (w *writer) close(c byte) {
	if w.depth < inlineDepth && !w.first {
		w.depth--
		w.line()
	} else {
		w.depth--
	}
	w.buf = append(w.buf, c)
	w.first = false
}

func (w *writer) line() {
	if w.depth < inlineDepth {
		w.buf = append(w.buf, '\n')
		w.buf = append(w.buf, strings.Repeat("  ", w.depth)...)
	}
}

// next starts an element.
func (w *writer) next() {
	if !w.first {
		w.buf = append(w.buf, ',')
		if w.depth >= inlineDepth {
			w.buf = append(w.buf, ' ')
		}
	}
	w.first = false
	w.line()
}

func (w *writer) key(k string) {
	w.next()
	w.value(k)
	w.buf = append(w.buf, ": "...)
}

func (w *writer) field(k string, v any) {
	w.key(k)
	w.value(v)
}

// text writes a field unless it is zero, as flag, count, duration and object do.
func (w *writer) text(k, s string) {
	if s != "" {
		w.field(k, s)
	}
}

func (w *writer) flag(k string, b bool) {
	if b {
		w.field(k, true)
	}
}

func (w *writer) count(k string, n int) {
	if n != 0 {
		w.field(k, n)
	}
}

func (w *writer) duration(k string, d time.Duration) {
	if d != 0 {
		w.field(k, d.String())
	}
}

func (w *writer) object(k string, m map[string]any) {
	if m != nil {
		w.field(k, m)
	}
}

func (w *writer) context(c ContextSettings) {
	if c.isZero() {
		return
	}
	w.key("context")
	w.open('{')
	if len(c.Models) == 0 {
		w.text("model", c.Model)
	} else {
		w.field("models", c.Models)
	}
	if len(c.On) > 0 {
		w.field("on", c.On)
	}
	if t := c.CallTimeout; t != (CallTimeout{}) {
		w.key("callTimeout")
		w.open('{')
		w.duration("first", t.First)
		w.duration("idle", t.Idle)
		w.duration("total", t.Total)
		w.close('}')
	}
	w.text("system", c.System)
	if c.Temperature != nil {
		w.field("temperature", *c.Temperature)
	}
	w.count("maxOutput", c.MaxOutput)
	w.text("reasoning", c.Reasoning)
	w.text("history", c.History)
	if c.Budget != (Budget{}) {
		w.key("budget")
		w.open('{')
		w.count("window", c.Budget.Window)
		w.count("reserve", c.Budget.Reserve)
		w.close('}')
	}
	if c.View != (View{}) {
		w.field("view", c.View)
	}
	w.close('}')
}

func (w *writer) spend(s SpendLimits) {
	if s != (SpendLimits{}) {
		w.field("budget", s)
	}
}

func (w *writer) inputs(in []Input) {
	if len(in) == 0 {
		return
	}
	w.key("inputs")
	w.open('{')
	for _, i := range sortedBy(in, func(i Input) string { return i.Name }) {
		w.key(i.Name)
		w.open('{')
		w.text("type", string(i.Type))
		w.flag("required", i.Required)
		if i.Default != nil {
			w.field("default", i.Default)
		}
		w.text("description", i.Description)
		w.object("schema", i.Schema)
		w.close('}')
	}
	w.close('}')
}

func (w *writer) state(keys []StateKey) {
	if len(keys) == 0 {
		return
	}
	w.key("state")
	w.open('{')
	for _, k := range sortedBy(keys, func(k StateKey) string { return k.Name }) {
		w.key(k.Name)
		w.open('{')
		w.text("scope", k.Scope)
		w.text("reducer", string(k.Reducer))
		w.text("onConflict", k.OnConflict)
		if k.Initial != nil {
			w.field("initial", k.Initial)
		}
		w.object("schema", k.Schema)
		w.close('}')
	}
	w.close('}')
}

// uses pins the flows that this one uses.
func (w *writer) uses(list []Use) {
	if len(list) == 0 {
		return
	}
	w.key("uses")
	w.open('{')
	for _, u := range sortedBy(list, func(u Use) string { return u.Ref }) {
		pin := u.Flow.Fingerprint()
		if pin == "" && w.err == nil {
			w.err = fmt.Errorf("the used flow %s has no fingerprint", u.Ref)
		}
		w.field(u.Ref, pin)
	}
	w.close('}')
}

func (w *writer) graph(g *Graph) {
	w.key("nodes")
	w.open('{')
	for _, n := range g.Nodes {
		w.key(n.ID)
		w.node(n)
	}
	w.close('}')
	if len(g.Edges) > 0 {
		w.key("edges")
		w.open('[')
		for _, e := range g.Edges {
			w.next()
			w.edge(e)
		}
		w.close(']')
	}
	w.bindings("outputs", g.Outputs)
}

func (w *writer) edge(e *Edge) {
	from, to := e.ends()
	w.open('{')
	w.text("id", e.ID)
	w.field("from", from)
	w.field("to", to)
	w.object("metadata", e.Metadata)
	w.close('}')
}

func (w *writer) bindings(k string, bs []Binding) {
	if len(bs) == 0 {
		return
	}
	w.key(k)
	w.open('{')
	for _, b := range sortedBy(bs, func(b Binding) string { return b.Name }) {
		w.field(b.Name, b.Value)
	}
	w.close('}')
}

func (w *writer) node(n *Node) {
	w.open('{')
	w.text("type", n.Type)
	w.text("description", n.Description)
	w.bindings("in", n.In)
	w.with(n)
	if n.Join == "all" {
		w.text("join", n.Join)
	}
	w.nodePolicy(n)
	w.text("isolation", n.Isolation)
	w.spend(n.Spend)
	w.flag("interruptBefore", n.InterruptBefore)
	w.flag("interruptAfter", n.InterruptAfter)
	w.artifacts(n.Artifacts)
	w.close('}')
}

func (w *writer) with(n *Node) {
	if len(n.With) == 0 && n.Body == nil {
		return
	}
	w.key("with")
	w.open('{')
	for _, k := range slices.Sorted(maps.Keys(n.With)) {
		w.field(k, n.With[k])
	}
	switch {
	case n.Branches != nil:
		w.key(branchesKey)
		w.open('{')
		for i := range n.Branches {
			w.key(n.Branches[i].Name)
			w.open('{')
			w.graph(&n.Branches[i].Graph)
			w.close('}')
		}
		w.close('}')
	case n.Body != nil:
		w.key("body")
		w.open('{')
		w.graph(n.Body)
		w.close('}')
	}
	w.close('}')
}

func (w *writer) nodePolicy(n *Node) {
	if r := n.Retry; r.Attempts != 0 || r.Backoff != 0 || len(r.On) > 0 {
		w.key("retry")
		w.open('{')
		w.count("attempts", r.Attempts)
		w.duration("backoff", r.Backoff)
		if len(r.On) > 0 {
			w.field("on", r.On)
		}
		w.close('}')
	}
	if n.Timeout != (Timeout{}) {
		w.key("timeout")
		w.open('{')
		w.duration("total", n.Timeout.Total)
		w.duration("idle", n.Timeout.Idle)
		w.close('}')
	}
	if n.OnError.Handled {
		w.field("onError", map[string]any{"value": n.OnError.Value})
	}
	if n.Cache.On {
		w.key("cache")
		w.open('{')
		w.duration("ttl", n.Cache.TTL)
		w.text("key", n.Cache.Key)
		w.flag("shared", n.Cache.Shared)
		w.close('}')
	}
}

// value writes any value on one line, objects with sorted keys; a float is written so that
// it is read as one.
func (w *writer) value(v any) {
	switch t := v.(type) {
	case nil:
		w.buf = append(w.buf, "null"...)
	case bool:
		w.buf = strconv.AppendBool(w.buf, t)
	case int:
		w.buf = strconv.AppendInt(w.buf, int64(t), 10)
	case int64:
		w.buf = strconv.AppendInt(w.buf, t, 10)
	case float64:
		w.float(t)
	case string:
		w.string(t)
	case []any:
		w.buf = append(w.buf, '[')
		for i, e := range t {
			w.comma(i)
			w.value(e)
		}
		w.buf = append(w.buf, ']')
	case map[string]any:
		w.buf = append(w.buf, '{')
		for i, k := range slices.Sorted(maps.Keys(t)) {
			w.comma(i)
			w.value(k)
			w.buf = append(w.buf, ": "...)
			w.value(t[k])
		}
		w.buf = append(w.buf, '}')
	default:
		b, err := json.Marshal(v)
		if err != nil && w.err == nil {
			w.err = err
		}
		w.buf = append(w.buf, b...)
	}
}

// string writes a text without escaping <, > and &.
func (w *writer) string(s string) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil && w.err == nil {
		w.err = err
	}
	w.buf = append(w.buf, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func (w *writer) comma(i int) {
	if i > 0 {
		w.buf = append(w.buf, ", "...)
	}
}

func (w *writer) float(f float64) {
	if (math.IsNaN(f) || math.IsInf(f, 0)) && w.err == nil {
		w.err = fmt.Errorf("%v is not a number that JSON can represent", f)
	}
	at := len(w.buf)
	w.buf = strconv.AppendFloat(w.buf, f, 'g', -1, 64)
	if !strings.ContainsAny(string(w.buf[at:]), ".e") {
		w.buf = append(w.buf, ".0"...)
	}
}

// sortedBy returns a sorted copy; flows from files are sorted already.
func sortedBy[T any](list []T, name func(T) string) []T {
	return slices.SortedStableFunc(slices.Values(list), func(a, b T) int { return strings.Compare(name(a), name(b)) })
}
