package flowtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// mock replaces the function of one node.
type mock struct {
	key    string // the node's path, with the numbers of iterations or without
	pos    flow.Pos
	inTest bool // declared by the test itself, not by the defaults
	node   *flow.Node
	// actions are the results of the first attempt, the second, and so on; the last applies to all further ones.
	actions []mockAction
}

// mockAction is the result of a mock in one attempt.
type mockAction struct {
	real     bool // the node's own function runs
	delay    time.Duration
	err      *engine.Error
	outputs  engine.Values
	state    map[string]any
	messages []convo.Message
}

// actionFor returns the action of an attempt, counted from 1.
func (m *mock) actionFor(attempt int) *mockAction { return &m.actions[min(attempt, len(m.actions))-1] }

// mocks reads `mocks`.
func (r *fileReader) mocks(l testKeys) []*mock {
	var out []*mock
	for _, e := range l.entries(&r.reader, "mocks", "mocks by the path of the node") {
		n := r.node(e.Pos, e.Key)
		if n == nil {
			continue
		}
		m := &mock{key: e.Key, pos: e.Pos, inTest: e.inTest, node: n}
		items := []*flow.FileValue{e.Value}
		if e.Value.IsList() {
			items = e.Value.Items()
		}
		for _, d := range items {
			m.actions = append(m.actions, r.mockAction(n, d))
		}
		if len(m.actions) == 0 {
			r.reportAt(e.Value, "a mock is what the node does, or a list of that, an element an attempt; this list is empty")
			continue
		}
		out = append(out, m)
	}
	return out
}

// mockAction reads one action: a value, or an object of keys.
func (r *fileReader) mockAction(n *flow.Node, d *flow.FileValue) mockAction {
	a := mockAction{}
	if !d.IsObject() {
		a.outputs = r.mockValue(n, d)
		return a
	}
	if !r.object(d, "a mock", "value", "outputs", "branch", "error", "delay", "state", "messages", "real") {
		return a
	}
	if len(d.Entries()) == 0 {
		r.reportAt(d, "a mock says what the node does: value, outputs, branch, error, delay, state, messages or real; outputs: {} gives nothing")
	}
	a.delay = r.duration(d.Get("delay"), "delay")
	a.real = r.flag(d.Get("real"), "real")
	if e := d.Get("error"); e != nil {
		a.err = r.mockError(e)
	}
	given := 0
	for _, key := range []string{"value", "outputs", "branch", "error", "real"} {
		if d.Get(key) != nil {
			given++
		}
	}
	if given > 1 && (d.Get("error") != nil || d.Get("real") != nil || d.Get("value") != nil && d.Get("outputs") != nil) {
		r.reportAt(d, "a mock has one of value, outputs, error and real")
	}
	if v := d.Get("value"); v != nil {
		a.outputs = append(a.outputs, r.mockValue(n, v)...)
	}
	for _, e := range r.members(d.Get("outputs"), "outputs", "values by port") {
		a.outputs = r.output(a.outputs, n, e.Key, e.Pos, e.Value)
	}
	if b := d.Get("branch"); b != nil {
		a.outputs = r.branch(a.outputs, n, b)
	}
	a.state = r.mockState(d)
	a.messages = r.mockMessages(n, d.Get("messages"))
	slices.SortFunc(a.outputs, func(x, y engine.Named) int { return strings.Compare(x.Name, y.Name) })
	return a
}

func (r *fileReader) mockState(d *flow.FileValue) map[string]any {
	out := make(map[string]any)
	for _, e := range r.members(d.Get("state"), "state", "values by key") {
		out[e.Key] = e.Value.Value()
	}
	return out
}

// mockError reads an error: a code, or an object.
func (r *fileReader) mockError(d *flow.FileValue) *engine.Error {
	e := &engine.Error{Message: "the mock of the node says so"}
	if !d.IsObject() {
		e.Code = r.text(d, "error")
	} else if r.object(d, "error", "code", "message", "permanent", "hint") {
		e.Code, e.Hint = r.text(d.Get("code"), "code"), r.text(d.Get("hint"), "hint")
		if m := d.Get("message"); m != nil {
			e.Message = r.text(m, "message")
		}
		e.Permanent = r.flag(d.Get("permanent"), "permanent")
	}
	if e.Code == "" {
		e.Code = engine.CodeNodeFailed
	}
	return e
}

// portsOf returns the ports of a node under its settings.
func (r *fileReader) portsOf(n *flow.Node) flow.Ports { return r.cat.Lookup(n.Type).PortsOf(n) }

// outPorts returns the names of the ports to which a mock may set a value.
func outPorts(n *flow.Node, p flow.Ports) []string {
	var names []string
	for _, port := range p.Out {
		if port.Type != flow.TypeContext {
			names = append(names, port.Name)
		}
	}
	if n.Body != nil {
		for _, b := range n.Body.Outputs {
			if !slices.Contains(names, b.Name) {
				names = append(names, b.Name)
			}
		}
	}
	return names
}

// mockValue sets a value on the node's first port.
func (r *fileReader) mockValue(n *flow.Node, d *flow.FileValue) engine.Values {
	p := r.portsOf(n)
	names := outPorts(n, p)
	if len(names) == 0 {
		if !p.AnyOut {
			r.reportAt(d, "node %s (%s) has no output that a mock could give a value", n.ID, n.Type)
			return nil
		}
		names = []string{"value"}
	}
	return r.output(nil, n, names[0], d.Pos(), d)
}

// output sets a value on a port and checks it.
func (r *fileReader) output(out engine.Values, n *flow.Node, name string, pos flow.Pos, d *flow.FileValue) engine.Values {
	p := r.portsOf(n)
	i := slices.IndexFunc(p.Out, func(port flow.Port) bool { return port.Name == name })
	if i < 0 {
		if names := outPorts(n, p); !p.AnyOut && !slices.Contains(names, name) {
			r.report(pos, flow.CodeUnknownPort,
				fmt.Sprintf("node %s (%s) has no output %q; it has %s", n.ID, n.Type, name, strings.Join(names, ", ")), didYouMean(name, names))
			return out
		}
		return append(out, engine.Named{Name: name, Value: d.Value()})
	}
	port := p.Out[i]
	if port.Type == flow.TypeContext {
		r.report(pos, flow.CodeBadValue, fmt.Sprintf("%s carries a context, which a mock passes on by itself", name), "remove it; `messages` says something in the context")
		return out
	}
	v, err := convertTo(port, d.Value())
	if err != nil {
		r.report(d.Pos(), flow.CodeTypeMismatch, fmt.Sprintf("output %s of node %s (%s): %v", name, n.ID, n.Type, err), "")
		return out
	}
	return append(out, engine.Named{Name: name, Value: v})
}

// convertTo converts a value to the type of a port.
func convertTo(port flow.Port, v any) (engine.Value, error) {
	v, err := engine.Normalize(v)
	if err != nil {
		return nil, err
	}
	if v, err = node.Coerce(port.Type, v); err != nil || port.Schema == nil {
		return v, err
	}
	s, err := node.CompileSchema(port.Schema)
	if err != nil {
		return nil, err
	}
	return v, s.Check(v)
}

// branch adds the output that takes a branch.
func (r *fileReader) branch(out engine.Values, n *flow.Node, d *flow.FileValue) engine.Values {
	name := r.text(d, "branch")
	p := r.portsOf(n)
	var branches []string
	for _, port := range p.Out {
		if port.Branch {
			branches = append(branches, port.Name)
		}
	}
	if !slices.Contains(branches, name) {
		has := "it has " + strings.Join(branches, ", ")
		if len(branches) == 0 {
			has = "it has none"
		}
		r.report(d.Pos(), flow.CodeUnknownPort, fmt.Sprintf("node %s (%s) has no branch %q; %s", n.ID, n.Type, name, has), didYouMean(name, branches))
		return out
	}
	for _, port := range p.Out {
		_, given := out.Get(port.Name)
		switch {
		case given:
		case port.Name == name && port.Type == flow.TypeBool:
			out = append(out, engine.Named{Name: name, Value: true})
		case port.Name == name:
			v, _ := convertTo(port, name)
			out = append(out, engine.Named{Name: name, Value: v})
		case !port.Branch && port.Type == flow.TypeText && (port.Name == "result" || port.Name == "category"):
			out = append(out, engine.Named{Name: port.Name, Value: name})
		}
	}
	return out
}

// mockMessages reads the messages that a mock adds to the node's context.
func (r *fileReader) mockMessages(n *flow.Node, d *flow.FileValue) []convo.Message {
	if d == nil {
		return nil
	}
	if !d.IsList() {
		r.reportAt(d, "messages must be a list of messages; got %s", show(d))
		return nil
	}
	spec := r.cat.Lookup(n.Type)
	if spec.ContextOf(n) != flow.ContextWrite && !spec.NewContext {
		r.reportAt(d, "node %s (%s) writes no context, so that its mock cannot say anything in one", n.ID, n.Type)
	}
	var out []convo.Message
	for _, e := range d.Items() {
		out = append(out, r.message(e))
	}
	return out
}

// message reads {role, text}, or {ROLE: text}.
func (r *fileReader) message(d *flow.FileValue) convo.Message {
	roles := []string{"system", "user", "assistant", "tool"}
	if !r.object(d, "a message", append([]string{"role", "text", "name"}, roles...)...) {
		return convo.Message{}
	}
	m := convo.Message{Role: convo.Role(r.text(d.Get("role"), "role")), Text: r.text(d.Get("text"), "text"), Name: r.text(d.Get("name"), "name")}
	for _, role := range roles {
		if t := d.Get(role); t != nil {
			m.Role, m.Text = convo.Role(role), r.text(t, role)
		}
	}
	if !slices.Contains(roles, string(m.Role)) {
		r.reportAt(d, "a message is {role: ..., text: ...}, or {user: ...} or {assistant: ...} for short; its role is %q", m.Role)
	}
	return m
}
