package flow

import (
	"fmt"
	"slices"
)

// readNode reads everything of a node except its connections.
func (s *scope) readNode(it *nodeDraft) {
	l, n := s.l, it.node
	f, ok := l.object(it.val, "a node")
	if !ok {
		return
	}
	f.rejectUnknown(NodeKeys()...)
	s.readType(it)
	n.Description = f.text("description")
	if n.Join = f.choice("join", "any", "all"); n.Join == "" {
		n.Join = "any"
	}
	n.InterruptBefore, n.InterruptAfter = f.flag("interruptBefore"), f.flag("interruptAfter")
	n.Isolation = f.choice("isolation", "fresh", "fork", "share")
	if v := it.val.get("budget"); v != nil {
		n.Spend = l.spend(v)
	}
	if v := it.val.get("retry"); v != nil {
		n.Retry = l.retry(v)
	}
	if v := it.val.get("timeout"); v != nil {
		n.Timeout = l.timeout(v)
	}
	if v := it.val.get("onError"); v != nil {
		n.OnError = l.onError(v)
	}
	if v := it.val.get("cache"); v != nil {
		n.Cache = s.cache(it, v)
	}
	s.readSettings(it)
	n.Artifacts = s.artifacts(it)
	s.checkPolicy(it)
}

func (s *scope) readType(it *nodeDraft) {
	v := it.val.get("type")
	name := ""
	if v != nil {
		name, _ = v.asText()
	}
	if name == "" {
		at := it.val
		if v != nil {
			at = v
		}
		s.l.reportAt(at, CodeMissingKey, fmt.Sprintf("node %s has no type", it.node.ID), "add type: NAME; weir nodes lists the types")
		return
	}
	it.node.Type = name
	if it.spec = s.l.cat.Lookup(name); it.spec == nil {
		s.l.reportAt(v, CodeUnknownType, fmt.Sprintf("the node type %s does not exist", quote(name)), s.l.suggest(name, s.l.typeNames))
		return
	}
	it.node.Type = it.spec.Name
	it.ports = it.spec.Ports
}

func (l *loader) typeNames() []string {
	var names []string
	for _, sp := range l.cat.Specs() {
		names = append(append(names, sp.Name), sp.Aliases...)
	}
	return names
}

func (l *loader) retry(v *value) Retry {
	f, ok := l.object(v, "retry")
	if !ok {
		return Retry{}
	}
	f.rejectUnknown("attempts", "backoff", "on")
	r := Retry{Attempts: f.count("attempts", 100), Backoff: f.duration("backoff")}
	if v.get("attempts") == nil {
		l.reportAt(v, CodeMissingKey, "retry has no attempts", "add attempts: 3, the number of attempts in all")
	}
	on := v.get("on")
	if on == nil {
		return r
	}
	codes := []*value{on}
	if on.kind == kindList {
		codes = on.items
	}
	for _, c := range codes {
		if s, ok := c.asText(); ok && s != "" {
			r.On = append(r.On, s)
		} else {
			l.reportAt(c, CodeBadValue, fmt.Sprintf("on must be a list of error codes; got %s", l.describe(c)), "")
		}
	}
	return r
}

func (l *loader) timeout(v *value) Timeout {
	if v.kind != kindObject {
		return Timeout{Total: l.duration(v, "timeout")}
	}
	f := fields{l, v, "timeout"}
	f.rejectUnknown("total", "idle")
	return Timeout{Total: f.duration("total"), Idle: f.duration("idle")}
}

func (l *loader) onError(v *value) OnError {
	if v.kind == kindText && v.text == "fail" {
		return OnError{}
	}
	val := v.get("value")
	if v.kind != kindObject || val == nil {
		l.reportAt(v, CodeBadValue, fmt.Sprintf("onError must be fail or {value: ...}; got %s", l.describe(v)), "")
		return OnError{}
	}
	fields{l, v, "onError"}.rejectUnknown("value")
	return OnError{Handled: true, Value: val.any()}
}

func (s *scope) cache(it *nodeDraft, v *value) Cache {
	switch v.kind {
	case kindBool:
		on, _ := v.scalar.(bool)
		return Cache{On: on}
	case kindObject:
	default:
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("cache must be true, false or {ttl, key, shared}; got %s", s.l.describe(v)), "")
		return Cache{}
	}
	f := fields{s.l, v, "cache"}
	f.rejectUnknown("ttl", "key", "shared")
	c := Cache{On: true, TTL: f.duration("ttl"), Key: f.text("key"), Shared: f.flag("shared")}
	if k := v.get("key"); k != nil && k.kind == kindText {
		s.template(it, k, false)
	}
	return c
}

// isBound reports whether an input of the node has an edge or value.
func (s *scope) isBound(it *nodeDraft, name string) bool {
	return it.val.get("in").get(name) != nil || slices.Contains(s.edgePorts[it.node.ID], name)
}

// bodyInput reports whether inputs.NAME is defined in this body.
func (s *scope) bodyInput(name string) bool {
	return slices.Contains(s.bodyInputs(), name)
}

// bodyInputs lists what this body may read under inputs.*.
func (s *scope) bodyInputs() []string {
	it := s.owner
	names := []string{"item", "index"}
	if it.spec != nil && it.spec.BodyInputs != nil {
		names = slices.Clone(it.spec.BodyInputs)
	}
	names = append(names, it.inNames()...)
	if in := it.val.get("in"); in != nil {
		for _, m := range in.members {
			names = append(names, m.key)
		}
	}
	names = append(names, s.parent.edgePorts[it.node.ID]...)
	if it.ports.AnyOut && !it.spec.Branches { // its outputs are those of the body, carried from iteration to iteration
		for _, b := range s.graph.Outputs {
			names = append(names, b.Name)
		}
	}
	return names
}
