package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow/expr"
)

// parseTemplate parses {{ }} in a text; nil if there is none or it is invalid.
func (l *loader) parseTemplate(v *value) *expr.Template {
	if !strings.Contains(v.text, "{{") {
		return nil
	}
	t, err := expr.ParseTemplate(v.text)
	if err != nil {
		l.badExpression(v, err, "")
		return nil
	}
	return t
}

func (l *loader) badExpression(v *value, err error, hint string) {
	off, msg := 0, err.Error()
	if syn := new(expr.SyntaxError); errors.As(err, &syn) {
		off, msg = syn.Offset, syn.Message
	}
	l.reportInText(v, off, CodeBadExpression, "invalid expression: "+msg, hint)
}

// template checks a setting that may contain {{ }}; true if it does.
func (s *scope) template(it *nodeDraft, v *value, secret bool) bool {
	t := s.l.parseTemplate(v)
	if t == nil {
		return strings.Contains(v.text, "{{")
	}
	for _, r := range t.Refs() {
		s.settingRef(it, v, r, secret)
	}
	return len(t.Refs()) > 0 || !isLiteral(t)
}

func isLiteral(t *expr.Template) bool {
	_, ok := t.Literal()
	return ok
}

// expression checks a setting that is a bare expression.
func (s *scope) expression(it *nodeDraft, v *value, text string) {
	p, err := expr.Compile(text)
	if err != nil {
		hint := ""
		if strings.Contains(text, "{{") {
			hint = "this setting is an expression by itself; write it without {{ }}"
		}
		s.l.badExpression(v, err, hint)
		return
	}
	for _, r := range p.Refs() {
		s.settingRef(it, v, r, false)
	}
}

// settingRef checks one reference in a setting.
func (s *scope) settingRef(it *nodeDraft, v *value, r expr.Ref, secret bool) {
	l := s.l
	switch r.Root {
	case "state", "now":
	case "run":
		l.runRef(v, r)
	case "inputs":
		it.recordRead(r)
		s.nodeInput(it, v, r)
	case "secrets":
		if !secret {
			l.reportInText(v, r.Offset, CodeSecretRefused, "secrets may be read only in settings marked secret", "")
		}
	default:
		if it.spec != nil && it.spec.Composite && slices.Contains([]string{"outputs", "item", "index"}, r.Root) {
			return
		}
		msg := fmt.Sprintf("%s cannot be read in settings; they read inputs.*, state.*, run.* and now", quote(r.Root))
		if s.byID[r.Root] != nil {
			l.reportInText(v, r.Offset, CodeUnknownReference, msg,
				fmt.Sprintf("bind it: in: {value: \"{{ %s }}\"}, then read inputs.value", r))
			return
		}
		l.reportInText(v, r.Offset, CodeUnknownReference, msg, l.nearest(r.Root, func() []string { return []string{"inputs", "state", "run", "now"} }))
	}
}

// nodeInput checks inputs.NAME in a node's own settings.
func (s *scope) nodeInput(it *nodeDraft, v *value, r expr.Ref) {
	if len(r.Path) == 0 || r.IsHas || it.spec == nil || it.spec.Composite {
		return
	}
	name := r.Path[0]
	if _, declared := it.inPort(name); (declared && !it.ports.AnyIn) || s.isBound(it, name) || slices.Contains(it.inNames(), name) {
		return
	}
	hint := fmt.Sprintf("bind it under in: of %s", it.node.ID)
	if s.l.inputs[name] {
		hint = "an input of the flow is " + expr.Join("run", "inputs", name)
	}
	s.l.reportInText(v, r.Offset, CodeUnknownInput, fmt.Sprintf("the node %s has no input %s", it.node.ID, quote(name)), hint)
}

// runMembers lists what expressions may read of the run.
func runMembers() []string { return []string{"id", "flow", "user", "session", "round", "inputs"} }

// runRef checks the member of run, and run.inputs.NAME against the declared inputs.
func (l *loader) runRef(v *value, r expr.Ref) {
	if len(r.Path) > 0 && !slices.Contains(runMembers(), r.Path[0]) {
		l.reportInText(v, r.Offset, CodeUnknownReference, fmt.Sprintf("run has no member %s; it has %s", quote(r.Path[0]), strings.Join(runMembers(), ", ")),
			l.nearest(r.Path[0], runMembers))
		return
	}
	if len(r.Path) < 2 || r.Path[0] != "inputs" || l.inputs[r.Path[1]] {
		return
	}
	l.reportInText(v, r.Offset, CodeUnknownInput, fmt.Sprintf("the flow declares no input %s", quote(r.Path[1])),
		l.suggest(r.Path[1], l.inputNames))
}

func (l *loader) inputNames() []string {
	names := make([]string, 0, len(l.inputs))
	for n := range l.inputs {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// scopeRef checks a reference in `in:` or `outputs:`. It returns the node if the reference
// is to a port of a node, and reports invalid references.
func (s *scope) scopeRef(v *value, r expr.Ref) *nodeDraft {
	l := s.l
	switch r.Root {
	case "state":
		return nil
	case "now":
		if s.byID["now"] == nil {
			return nil
		}
	case "run":
		l.runRef(v, r)
		return nil
	case "secrets":
		l.reportInText(v, r.Offset, CodeSecretRefused, "secrets never travel along edges; they are read in settings marked secret", "")
		return nil
	case "inputs":
		s.bodyRef(v, r)
		return nil
	case "context":
		l.reportInText(v, r.Offset, CodeUnknownReference, "context is not defined in expressions", "a node's context is on its port: NODE.context")
		return nil
	}
	if len(r.Path) == 0 {
		if it := s.find(r.Root, v, r.Offset); it != nil {
			l.reportInText(v, r.Offset, CodeUnknownPort, fmt.Sprintf("%s is a node; name one of its ports", r.Root),
				listCandidates("it has ", it.outNames()))
		}
		return nil
	}
	return s.source(r.Root, r.Path[0], v, r.Offset)
}

// bodyRef checks inputs.NAME in `in:` or `outputs:`.
func (s *scope) bodyRef(v *value, r expr.Ref) {
	l := s.l
	if s.owner == nil {
		name := "NAME"
		if len(r.Path) > 0 {
			name = r.Path[0]
		}
		l.reportInText(v, r.Offset, CodeUnknownReference, "inputs.* are the inputs of a node or body, not those of the flow",
			"an input of the flow is "+expr.Join("run", "inputs", name))
		return
	}
	s.owner.recordRead(r)
	if len(r.Path) == 0 || r.IsHas || s.bodyInput(r.Path[0]) {
		return
	}
	l.reportInText(v, r.Offset, CodeUnknownInput, fmt.Sprintf("the body of %s has no input %s", s.owner.node.ID, quote(r.Path[0])),
		l.suggest(r.Path[0], s.bodyInputs))
}
