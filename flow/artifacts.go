package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow/expr"
)

// Artifact declares data that a node found, used or made, for the trajectory of the run:
// one item, or one for each element of Each. All values except Type and Relation may have
// {{ }} templates that read the node's `outputs.*` and `inputs.*`, `state.*`, `run.*`, and
// with Each also `item` and `index`.
type Artifact struct {
	// Type is one of ArtifactTypes.
	Type string
	// Name distinguishes the data from other data of its type; Description describes it.
	Name, Description string
	// Attributes is an object, or one template for an object; nil means none.
	Attributes any
	// Relation is the relation of the edge to the data, "" for the default.
	Relation string
	// Columns names the columns of a Table: a list of texts, or one template for a list;
	// nil means none.
	Columns any
	// Each is a list, or one template for a list; nil means a single artifact.
	Each any
	Pos  Pos
}

// MaxArtifacts is the maximum number of entries in `artifacts` of one node.
const MaxArtifacts = 100

// The types of data in a trajectory.
const (
	knowledge = "Knowledge"
	table     = "Table"
	column    = "Column"
	file      = "File"
	script    = "Script"
	toolData  = "Tool"
	skill     = "Skill"
)

// ArtifactTypes returns the types of data that a node may declare: those of package
// trajectory.
func ArtifactTypes() []string {
	return []string{knowledge, toolData, table, column, file, script, skill}
}

// artifactRelations has the types that a relation may lead to; nil means no type of data.
// Relations that are not listed may lead to any type.
func artifactRelations() map[string][]string {
	return map[string][]string{
		"triggers": nil, "has_conclusion": nil, "continues_to": nil,
		"has_script": {script}, "has_column": {column}, "has_additional_file": {file}, "has_additional_table": {table},
		"find_relevant_data":      {table, column, file, script, knowledge},
		"find_relevant_knowledge": {knowledge},
		"find_relevant_tool":      {toolData, skill},
	}
}

// wordPattern is the pattern of relations.
const wordPattern = "^[a-z][a-z0-9_]{0,62}$"

func isRelationWord(s string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }
	return s != "" && len(s) <= 63 && s[0] >= 'a' && s[0] <= 'z' && !strings.ContainsFunc(s, other)
}

// artifacts reads `artifacts`, after the ports of the node are known.
func (s *scope) artifacts(it *nodeDraft) []Artifact {
	v := it.val.get("artifacts")
	if v == nil || v.kind == kindNull {
		return nil
	}
	if v.kind != kindList {
		s.l.reportAt(v, CodeBadValue, "artifacts must be a list of {type, name, ...}; got "+v.kind.String(), "")
		return nil
	}
	if len(v.items) > MaxArtifacts {
		s.l.reportAt(v, CodeTooBig, fmt.Sprintf("%s declares %d artifacts; a node has at most %d", it.node.ID, len(v.items), MaxArtifacts),
			"use each to declare several artifacts of a kind")
		return nil
	}
	var out []Artifact
	for _, e := range v.items {
		if f, ok := s.l.object(e, "an artifact"); ok {
			out = append(out, s.artifact(it, f))
		}
	}
	return out
}

func (s *scope) artifact(it *nodeDraft, f fields) Artifact {
	f.rejectUnknown("type", "name", "description", "attributes", "relation", "columns", "each")
	a := Artifact{
		Type: s.artifactType(f), Name: f.text("name"), Description: f.text("description"), Relation: f.text("relation"), Pos: s.l.posOf(f.v),
	}
	s.artifactRelation(f, a)
	if v := f.v.get("name"); a.Name == "" && (v == nil || v.kind < kindList) {
		at := f.v
		if v != nil {
			at = v
		}
		s.l.reportAt(at, CodeMissingKey, "an artifact must have a name", "add name: it distinguishes the artifact from others of its type; a text or a template")
	}
	if a.Attributes = s.artifactValue(f, "attributes", kindObject, "an object"); a.Attributes != nil {
		s.checkAttributes(f)
	}
	a.Columns = s.artifactValue(f, "columns", kindList, "a list of names")
	a.Each = s.artifactValue(f, "each", kindList, "a list")
	s.checkColumns(f, &a)
	if !s.l.AlreadyValid {
		for _, key := range []string{"name", "description", "attributes", "columns", "each"} {
			if v := f.v.get(key); v != nil {
				s.artifactRefs(it, v, key == "each", a.Each != nil)
			}
		}
	}
	return a
}

func (s *scope) artifactType(f fields) string {
	v := f.v.get("type")
	if v == nil {
		s.l.reportAt(f.v, CodeMissingKey, "an artifact must have a type", "add type: one of "+strings.Join(ArtifactTypes(), ", "))
		return ""
	}
	t, _ := v.asText()
	if !slices.Contains(ArtifactTypes(), t) {
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("the type of an artifact must be one of %s; got %s", strings.Join(ArtifactTypes(), ", "), s.l.describe(v)),
			s.l.nearest(t, ArtifactTypes))
	}
	return t
}

func (s *scope) artifactRelation(f fields, a Artifact) {
	v := f.v.get("relation")
	if v == nil || v.kind == kindNull {
		return
	}
	if !isRelationWord(a.Relation) {
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("relation must be a word of small letters, digits and _; got %s", s.l.describe(v)), "")
		return
	}
	leads, known := artifactRelations()[a.Relation]
	switch {
	case !known || !slices.Contains(ArtifactTypes(), a.Type) || slices.Contains(leads, a.Type):
	case leads == nil:
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s connects steps and cannot lead to data", a.Relation), "remove it, or use produces, refers_to or a relation of your own")
	default:
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s leads to %s, not to %s", a.Relation, strings.Join(leads, " or "), a.Type),
			"use produces, refers_to or a relation of your own")
	}
}

// artifactValue reads a value of a kind, or a text that is one template for such a value.
func (s *scope) artifactValue(f fields, key string, k kind, what string) any {
	v := f.v.get(key)
	if v == nil || v.kind == kindNull {
		return nil
	}
	if v.kind != k && (v.kind != kindText || !isOneTemplate(v.text)) {
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be %s, or one {{ }} that gives one; got %s", key, what, s.l.describe(v)), "")
		return nil
	}
	return v.any()
}

// isOneTemplate reports whether a text is exactly one {{ }}. Syntax errors are reported
// elsewhere.
func isOneTemplate(text string) bool {
	if !strings.HasPrefix(text, "{{") {
		return false
	}
	t, err := expr.ParseTemplate(text)
	return err != nil || t.Program() != nil
}

// checkAttributes refuses attributes with reserved names.
func (s *scope) checkAttributes(f fields) {
	members := f.members("attributes")
	for i := range members {
		if m := &members[i]; m.key == "" || m.key == "name" || m.key == "description" {
			s.l.reportAtKey(m, CodeReservedID, fmt.Sprintf("an attribute cannot have the name %s", quote(m.key)), "name and description are keys of the artifact itself")
		}
	}
}

// checkColumns checks `columns` and converts the names to text.
func (s *scope) checkColumns(f fields, a *Artifact) {
	v := f.v.get("columns")
	if a.Columns == nil {
		return
	}
	if a.Type != table && slices.Contains(ArtifactTypes(), a.Type) {
		s.l.reportAt(v, CodeBadValue, fmt.Sprintf("only a %s has columns, and this is a %s", table, a.Type), "")
	}
	list, _ := a.Columns.([]any)
	for i, e := range v.items {
		name, ok := e.asText()
		if !ok || name == "" {
			s.l.reportAt(e, CodeBadValue, "a column must be the text of its name; got "+s.l.describe(e), "")
		}
		list[i] = name
	}
}

// artifactRefs checks the references of templates in a value of an artifact.
func (s *scope) artifactRefs(it *nodeDraft, v *value, inEach, each bool) {
	switch v.kind {
	case kindList:
		for _, e := range v.items {
			s.artifactRefs(it, e, inEach, each)
		}
	case kindObject:
		for _, m := range v.members {
			s.artifactRefs(it, m.val, inEach, each)
		}
	case kindText:
		if t := s.l.parseTemplate(v); t != nil {
			for _, r := range t.Refs() {
				s.artifactRef(it, v, r, inEach, each)
			}
		}
	default:
	}
}

func (s *scope) artifactRef(it *nodeDraft, v *value, r expr.Ref, inEach, each bool) {
	l := s.l
	switch r.Root {
	case "state":
	case "run":
		l.runRef(v, r)
	case "inputs":
		it.recordRead(r)
		s.nodeInput(it, v, r)
	case "outputs":
		s.nodeOutput(it, v, r)
	case "item", "index":
		switch {
		case inEach:
			l.reportInText(v, r.Offset, CodeUnknownReference, fmt.Sprintf("each is the list itself and cannot read %s", r.Root), "")
		case !each:
			l.reportInText(v, r.Offset, CodeUnknownReference, fmt.Sprintf("%s does not exist here: the artifact has no each", r.Root), "add each with the list of elements")
		}
	case "secrets":
		l.reportInText(v, r.Offset, CodeSecretRefused, "secrets may be read only in settings marked secret", "")
	default:
		msg := fmt.Sprintf("%s cannot be read in artifacts; they read outputs.*, inputs.*, state.* and run.*", quote(r.Root))
		hint := ""
		switch {
		case r.Root == it.node.ID && len(r.Path) > 0:
			hint = "the node's own output is " + expr.Join("outputs", r.Path[0])
		case s.byID[r.Root] != nil:
			hint = fmt.Sprintf("bind it: in: {value: \"{{ %s }}\"}, then read inputs.value", r)
		default:
			hint = l.nearest(r.Root, func() []string { return []string{"outputs", "inputs", "state", "run", "item", "index"} })
		}
		l.reportInText(v, r.Offset, CodeUnknownReference, msg, hint)
	}
}

// nodeOutput checks outputs.NAME against the node's own output ports.
func (s *scope) nodeOutput(it *nodeDraft, v *value, r expr.Ref) {
	if len(r.Path) == 0 || it.spec == nil {
		return
	}
	name := r.Path[0]
	if p, ok := it.outPort(name); ok && p.Type != TypeContext && (name != "error" || slices.Contains(portNames(it.ports.Out), name)) {
		return
	}
	names := slices.DeleteFunc(it.outNames(), func(n string) bool {
		p, _ := it.outPort(n)
		return p.Type == TypeContext || n == "error" && !slices.Contains(portNames(it.ports.Out), n)
	})
	msg := fmt.Sprintf("%s (%s) has no output %s for its artifacts", it.node.ID, it.spec.Name, quote(name))
	if len(names) > 0 {
		msg += "; it has " + strings.Join(names, ", ")
	}
	s.l.reportInText(v, r.Offset, CodeUnknownPort, msg, s.l.nearest(name, func() []string { return names }))
}

// artifacts writes `artifacts`.
func (w *writer) artifacts(list []Artifact) {
	if len(list) == 0 {
		return
	}
	w.key("artifacts")
	w.open('[')
	for _, a := range list {
		w.next()
		w.open('{')
		w.text("type", a.Type)
		w.text("name", a.Name)
		w.text("description", a.Description)
		if a.Attributes != nil {
			w.field("attributes", a.Attributes)
		}
		w.text("relation", a.Relation)
		if a.Columns != nil {
			w.field("columns", a.Columns)
		}
		if a.Each != nil {
			w.field("each", a.Each)
		}
		w.close('}')
	}
	w.close(']')
}

func artifactsSchema() obj {
	text := obj{"type": "string"}
	one := func(what string, s obj) obj {
		s["description"] = what
		return s
	}
	template := obj{"type": "string", "pattern": `^\{\{`}
	var types []any
	for _, t := range ArtifactTypes() {
		types = append(types, t)
	}
	artifact := closed(obj{
		"type":        obj{"enum": types},
		"name":        one("distinguishes the artifact from others of its type; a template", obj{"type": "string", "minLength": 1}),
		"description": text,
		"attributes":  one("an object, or one {{ }} that gives one", obj{"anyOf": []any{obj{"type": []any{"object", "null"}}, template}}),
		"relation":    one("relation of the edge to the data; default: produces", obj{"type": "string", "pattern": wordPattern}),
		"columns": one("the names of a Table's columns, or one {{ }} that gives them", obj{"anyOf": []any{
			obj{"type": []any{"array", "null"}, "items": obj{"type": []any{"string", "number", "boolean"}}}, template,
		}}),
		"each": one("a list, or one {{ }} that gives one: an artifact is declared for each element, which templates read as item and index",
			obj{"anyOf": []any{obj{"type": []any{"array", "null"}}, template}}),
	})
	artifact["required"] = []any{"type", "name"}
	return obj{
		"type": []any{"array", "null"}, "maxItems": MaxArtifacts, "items": artifact,
		"description": "data that the node found, used or made, for the trajectory of the run; templates may read outputs.*, inputs.*, state.* and run.*",
	}
}
