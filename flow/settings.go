package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	fault "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/weir-run/weir/flow/schema"
)

// SettingsSchemas are the schemas of the settings of node types, prepared when a flow first has a
// node of the type and compiled when one is first checked. All loads with one catalogue share
// them. The zero value is empty; it may be used concurrently.
type SettingsSchemas struct {
	byName sync.Map // name of a type to *settingsSchema
}

// settingsSchema is the schema of a type's settings.
type settingsSchema struct {
	spec    *TypeSpec
	raw     map[string]any
	invalid error // what is wrong with the schema of the type
	compile func() (*schema.Schema, error)
}

// of returns the schema of a type's settings.
func (c *SettingsSchemas) of(sp *TypeSpec) *settingsSchema {
	kept, _ := c.byName.Load(sp.Name)
	if s, ok := kept.(*settingsSchema); ok && s.spec == sp {
		return s
	}
	s := newSettingsSchema(sp)
	c.byName.Store(sp.Name, s)
	return s
}

// settingsOf returns the schema of a type's settings; compiled is nil if they are not checked.
func (l *loader) settingsOf(sp *TypeSpec) (s *settingsSchema, compiled *schema.Schema) {
	s = l.cat.Settings().of(sp)
	err := s.invalid
	if err == nil && !l.AlreadyValid {
		compiled, err = s.compile()
	}
	if err != nil && !l.invalidTypes[sp] { // an error of the catalogue, reported once per load
		l.invalidTypes[sp] = true
		l.report(1, 1, CodeInvalidSetting, fmt.Sprintf("the settings schema of node type %s is invalid: %v", sp.Name, err), "")
	}
	return s, compiled
}

func newSettingsSchema(sp *TypeSpec) *settingsSchema {
	raw := map[string]any{"type": "object"}
	if sp.Settings != nil {
		b, err := json.Marshal(sp.Settings)
		if err != nil {
			return &settingsSchema{spec: sp, invalid: err}
		}
		v, err := schema.Parse(string(b))
		if err != nil {
			return &settingsSchema{spec: sp, invalid: err}
		}
		raw, _ = v.(map[string]any)
	}
	maps.DeleteFunc(raw, func(_ string, v any) bool { return v == nil }) // an empty list in Go
	if _, ok := raw["additionalProperties"]; !ok {
		raw["additionalProperties"] = false
	}
	if sp.Composite {
		removeBody(raw, sp.bodyKey())
	}
	return &settingsSchema{spec: sp, raw: raw, compile: sync.OnceValues(func() (*schema.Schema, error) { return schema.Compile(raw) })}
}

// removeBody removes the graph, or graphs, from a composite's settings.
func removeBody(raw map[string]any, key string) {
	if p, ok := raw["properties"].(map[string]any); ok {
		p = maps.Clone(p)
		delete(p, key)
		raw["properties"] = p
	}
	if r, ok := raw["required"].([]any); ok {
		raw["required"] = slices.DeleteFunc(slices.Clone(r), func(x any) bool { return x == key })
	}
}

// readSettings reads and checks `with` and sets the ports of the node.
func (s *scope) readSettings(it *nodeDraft) {
	v := it.val.get("with")
	if v != nil && v.kind == kindNull {
		v = nil
	}
	if v != nil && v.kind != kindObject {
		s.l.reportAt(v, CodeBadValue, "with must be an object of settings; got "+v.kind.String(), "")
		return
	}
	s.readBody(it, v)
	if v == nil {
		v = &value{kind: kindObject, line: it.key.line, col: it.key.col}
	}
	if it.spec == nil {
		it.node.With, _ = v.any().(map[string]any)
		return
	}
	schema, compiled := s.l.settingsOf(it.spec)
	if schema.invalid != nil {
		return
	}
	r := settingsReader{s: s, it: it}
	with := make(map[string]any, len(v.members))
	for _, m := range v.members {
		if it.spec.Composite && m.key == it.spec.bodyKey() {
			continue
		}
		r.path = append(r.path[:0], m.key)
		with[m.key] = r.read(m.val, propertySchema(schema.raw, m.key), roleNone)
	}
	if len(with) > 0 {
		it.node.With = with
	}
	if compiled != nil {
		r.validate(compiled, v, with)
	}
	if it.spec.PortsFor != nil {
		it.ports = it.spec.PortsFor(it.node.With)
	}
	if it.spec.Check != nil {
		s.report(v, it.spec.Check(it.node.With))
	}
	if it.spec.Uses != nil {
		s.useFlow(it, v)
	}
	if it.spec.Flows != nil {
		s.nameFlows(it, v)
	}
}

// report reports the problems that a type finds in the settings of a node.
func (s *scope) report(with *value, problems []Problem) {
	for _, p := range problems {
		at := with
		if p.Setting != "" {
			at = locate(with, strings.Split(p.Setting, "."))
		}
		s.l.reportAt(at, p.Code, p.Message, p.Hint)
	}
}

// readBody reads the graph of a composite.
func (s *scope) readBody(it *nodeDraft, with *value) {
	if it.spec == nil || !it.spec.Composite {
		return
	}
	body := with.get(it.spec.bodyKey())
	if body == nil {
		at := with
		if at == nil {
			at = &value{line: it.key.line, col: it.key.col}
		}
		missing, hint := "body", "add with.body: {nodes: ..., outputs: ...}"
		if it.spec.Branches {
			missing, hint = "branches", "add with.branches: {NAME: {nodes: ..., outputs: ...}, NAME: ...}"
		}
		s.l.reportAt(at, CodeMissingBody, fmt.Sprintf("%s (%s) has no %s", it.node.ID, it.spec.Name, missing), hint)
		return
	}
	if s.depth+1 > MaxScopes {
		s.l.reportAt(body, CodeTooBig, fmt.Sprintf("bodies nest deeper than %d", MaxScopes), "")
		return
	}
	if it.spec.Branches {
		s.readBranches(it, body)
		return
	}
	f, ok := s.l.object(body, "a body")
	if !ok {
		return
	}
	f.rejectUnknown("nodes", "edges", "outputs")
	it.body = s.l.readGraph(body, s, it)
	it.node.Body = &it.body.graph
}

// settingRole returns what a setting may contain: the x-weir keyword of its schema.
type settingRole uint8

const (
	roleNone settingRole = iota
	roleTemplate
	roleExpression
	roleSecret
)

func roleOf(schema map[string]any) settingRole {
	switch schema["x-weir"] {
	case "template":
		return roleTemplate
	case "expression":
		return roleExpression
	case "secret":
		return roleSecret
	}
	return roleNone
}

// settingsReader converts settings to plain data by their schema: where it expects text,
// scalars become text, and where it has a role, the text is checked.
type settingsReader struct {
	s    *scope
	it   *nodeDraft
	path []string
	// dynamic are the paths with values that are known only at run time.
	dynamic [][]string
}

func (r *settingsReader) read(v *value, schema map[string]any, outer settingRole) any {
	as := max(roleOf(schema), outer)
	switch v.kind {
	case kindList:
		out := make([]any, len(v.items))
		for i, e := range v.items {
			r.path = append(r.path, fmt.Sprint(i))
			out[i] = r.read(e, itemSchema(schema, i), as)
			r.path = r.path[:len(r.path)-1]
		}
		return out
	case kindObject:
		if isSchema(schema) {
			return schemaValue(v)
		}
		out := make(map[string]any, len(v.members))
		for _, m := range v.members {
			r.path = append(r.path, m.key)
			out[m.key] = r.read(m.val, propertySchema(schema, m.key), as)
			r.path = r.path[:len(r.path)-1]
		}
		return out
	default:
		return r.scalar(v, schema, as)
	}
}

func (r *settingsReader) scalar(v *value, schema map[string]any, as settingRole) any {
	text, ok := v.asText()
	if choices, _ := schema["enum"].([]any); v.kind == kindNull && v.text == "null" && slices.Contains(choices, any("null")) {
		return "null" // as `true` is a text where one is expected
	}
	if !ok || (v.kind != kindText && schema["type"] != "string") {
		return v.any()
	}
	if r.s.l.AlreadyValid {
		return text
	}
	if as != roleNone {
		n := r.it.node
		if n.Places == nil {
			n.Places = make(map[string]Pos)
		}
		n.Places[strings.Join(r.path, ".")] = r.s.l.posOf(v)
	}
	switch as {
	case roleExpression:
		r.s.expression(r.it, v, text)
	case roleTemplate, roleSecret:
		if r.s.template(r.it, v, as == roleSecret) {
			r.dynamic = append(r.dynamic, slices.Clone(r.path))
		}
	case roleNone:
	}
	return text
}

// isSchema reports whether a setting has a JSON Schema as its value: an object that its own
// schema does not describe.
func isSchema(schema map[string]any) bool {
	return schema["type"] == "object" && schema["properties"] == nil && schema["additionalProperties"] == nil
}

// propertySchema returns the schema of a member or element; empty if unknown.
func propertySchema(schema map[string]any, key string) map[string]any {
	if p, ok := schema["properties"].(map[string]any); ok {
		if s, ok := p[key].(map[string]any); ok {
			return s
		}
	}
	if s, ok := schema["additionalProperties"].(map[string]any); ok {
		return s
	}
	return firstAlternative(schema, func(s map[string]any) map[string]any { return propertySchema(s, key) })
}

func itemSchema(schema map[string]any, i int) map[string]any {
	if p, ok := schema["prefixItems"].([]any); ok && i < len(p) {
		s, _ := p[i].(map[string]any)
		return s
	}
	if s, ok := schema["items"].(map[string]any); ok {
		return s
	}
	return firstAlternative(schema, func(s map[string]any) map[string]any { return itemSchema(s, i) })
}

// firstAlternative returns the first result of the schemas that a schema combines.
func firstAlternative(schema map[string]any, of func(map[string]any) map[string]any) map[string]any {
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := schema[k].([]any)
		for _, e := range list {
			if s, ok := e.(map[string]any); ok {
				if found := of(s); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

// validate checks the settings against the schema, except for values that a template will
// set.
func (r *settingsReader) validate(of *schema.Schema, at *value, with map[string]any) {
	e, err := of.ValidationError(with)
	if err != nil {
		r.s.l.reportAt(at, CodeInvalidSetting, err.Error(), "")
	}
	if e == nil {
		return
	}
	for _, leaf := range leafErrors(e, nil) {
		if !r.isDynamic(leaf.InstanceLocation) {
			r.report(at, leaf)
		}
	}
}

func (r *settingsReader) isDynamic(path []string) bool {
	return slices.ContainsFunc(r.dynamic, func(d []string) bool { return slices.Equal(d, path) })
}

// leafErrors lists the errors that have a reason of their own; a choice of schemas is one
// error.
func leafErrors(e *jsonschema.ValidationError, to []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *fault.AnyOf, *fault.OneOf:
		return append(to, e)
	}
	if len(e.Causes) == 0 {
		return append(to, e)
	}
	for _, c := range e.Causes {
		to = leafErrors(c, to)
	}
	return to
}

// report reports one schema error at the position of the setting.
func (r *settingsReader) report(with *value, e *jsonschema.ValidationError) {
	l, id := r.s.l, r.it.node.ID
	at := locate(with, e.InstanceLocation)
	path := strings.Join(e.InstanceLocation, ".")
	switch k := e.ErrorKind.(type) {
	case *fault.Required:
		for _, name := range k.Missing {
			l.reportAt(at, CodeMissingSetting, fmt.Sprintf("%s (%s) requires the setting %s", id, r.it.spec.Name, joinPath(path, name)), "")
		}
	case *fault.AdditionalProperties:
		for _, name := range k.Properties {
			key := &member{line: at.line, col: at.col}
			for i := range at.members {
				if at.members[i].key == name {
					key = &at.members[i]
				}
			}
			known := r.settingNames(e.InstanceLocation)
			hint := l.suggest(name, func() []string { return known })
			if name == "engine" {
				hint = "templates have one language, {{ }} with CEL; docs/expressions.md shows the counterparts of Jinja's forms"
			}
			l.reportAtKey(key, CodeUnknownSetting, fmt.Sprintf("%s (%s) has no setting %s", id, r.it.spec.Name, joinPath(path, name)), hint)
		}
	default:
		hint := ""
		if en, ok := k.(*fault.Enum); ok {
			hint = l.nearest(fmt.Sprint(en.Got), func() []string { return stringList(en.Want) })
		}
		l.reportAt(at, CodeInvalidSetting, fmt.Sprintf("the setting %s of %s: %s", joinPath(path, ""), id, strings.Join(schema.Reasons(e), ", or ")), hint)
	}
}

// settingNames lists the existing settings at a path.
func (r *settingsReader) settingNames(path []string) []string {
	schema := r.s.l.cat.Settings().of(r.it.spec).raw
	for _, p := range path {
		if next := propertySchema(schema, p); next != nil {
			schema = next
		} else {
			schema = itemSchema(schema, 0)
		}
	}
	props, _ := schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(props))
}

func stringList(of []any) []string {
	out := make([]string, len(of))
	for i, w := range of {
		out[i] = fmt.Sprint(w)
	}
	return out
}

func joinPath(path, name string) string { return strings.Trim(path+"."+name, ".") }

// locate follows a path of keys and indexes, and returns the last value reached.
func locate(v *value, path []string) *value {
	for _, p := range path {
		next := v.get(p)
		if v.kind == kindList {
			var i int
			if _, err := fmt.Sscanf(p, "%d", &i); err == nil && i >= 0 && i < len(v.items) {
				next = v.items[i]
			}
		}
		if next == nil {
			return v
		}
		v = next
	}
	return v
}
