package runner

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/follow"
)

// Limits of what one completion of a node may declare by its key `artifacts`.
const (
	maxArtifacts        = 1000
	maxArtifactBytes    = 1 << 20 // of all of them as JSON
	maxArtifactName     = 1000    // bytes
	maxReportedProblems = 5       // that are reported one by one
)

// artifact is an entry of a node's key `artifacts` with its compiled templates, which are nil if the entry has none.
type artifact struct {
	def                                          *flow.Artifact
	name, description, attributes, columns, each *expr.Template
}

func prepareArtifacts(list []flow.Artifact) ([]artifact, error) {
	var out []artifact
	for i := range list {
		d := &list[i]
		p := artifact{def: d}
		for _, t := range []struct {
			of   any
			into **expr.Template
		}{{d.Name, &p.name}, {textTemplate(d.Description), &p.description}, {d.Attributes, &p.attributes}, {d.Columns, &p.columns}, {d.Each, &p.each}} {
			if t.of == nil {
				continue
			}
			var err error
			if *t.into, err = expr.ParseTemplate(t.of); err != nil {
				return nil, fmt.Errorf("%s: artifacts: %w", d.Pos, err)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

func textTemplate(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// declareArtifacts evaluates the node's key `artifacts` with the node's outputs. Invalid artifacts are recorded with
// the others, and do not fail the node.
func (a *attempt) declareArtifacts() {
	d := artifactDeclaration{a: a, list: []any{}}
	if err := d.declareAll(); err != nil {
		d.addProblem("", err)
	}
	if len(d.list) == 0 && d.problemCount == 0 {
		return
	}
	note := map[string]any{"artifacts": d.list}
	if d.problemCount > maxReportedProblems {
		d.reported = append(d.reported, fmt.Sprintf("and %d more", d.problemCount-maxReportedProblems))
	}
	if d.problemCount > 0 {
		note["error"] = strings.Join(d.reported, "; ")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if key, err := a.noteKey(follow.NoteArtifacts, note); err == nil { // its parts were written before
		a.declared = &engine.NoteRecorded{Path: a.Path, Key: key, Value: note}
	}
}

// artifactDeclaration collects the artifacts that one completion of a node declares.
type artifactDeclaration struct {
	a            *attempt
	outputs      object
	list         []any
	size         int // bytes
	reported     []string
	problemCount int
}

func (d *artifactDeclaration) declareAll() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the templates panicked: %v", p)
		}
	}()
	outputs, _, _ := d.a.ctx.Result()
	for _, o := range outputs {
		if v, err := engine.Normalize(o.Value); err == nil { // otherwise the node does not complete
			d.outputs = append(d.outputs, engine.Named{Name: o.Name, Value: v})
		}
	}
	for i := range d.a.host.artifacts {
		p := &d.a.host.artifacts[i]
		place := fmt.Sprintf("artifact %d (%s)", i+1, p.def.Type)
		if p.each == nil {
			err = d.add(p, artifactVars{d: d}, place)
		} else {
			err = d.addEach(p, place)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addEach declares an artifact for each element of a list.
func (d *artifactDeclaration) addEach(p *artifact, place string) error {
	v, err := p.each.Eval(artifactVars{d: d})
	if err == nil {
		v, err = engine.Normalize(v)
	}
	if err != nil {
		d.addProblem(place, fmt.Errorf("each: %w", err))
		return nil
	}
	list, ok := v.([]any)
	if !ok && v != nil {
		d.addProblem(place, fmt.Errorf("each: expected a list, this is %s", describeValue(v)))
	}
	for i, e := range list {
		if err := d.add(p, artifactVars{d, true, e, int64(i)}, fmt.Sprintf("%s, element %d", place, i+1)); err != nil {
			return err
		}
	}
	return nil
}

// add declares an artifact, or records why it is invalid. The error is one that ends the declaration.
func (d *artifactDeclaration) add(p *artifact, vars artifactVars, place string) error {
	switch {
	case len(d.list)+d.problemCount >= maxArtifacts:
		return fmt.Errorf("a node declares at most %d artifacts at once; the rest is left out", maxArtifacts)
	case d.a.ctx.Err() != nil:
		return errors.New("the time of the node is up; the rest is left out")
	}
	made, err := p.eval(vars)
	if err != nil {
		d.addProblem(place, err)
		return nil
	}
	if d.size += made.size; d.size > maxArtifactBytes {
		return fmt.Errorf("%s: the artifacts of a node have at most %d bytes together; the rest is left out", place, maxArtifactBytes)
	}
	d.list = append(d.list, made.value)
	return nil
}

func (d *artifactDeclaration) addProblem(place string, err error) {
	if d.problemCount++; d.problemCount > maxReportedProblems {
		return
	}
	text := err.Error()
	if place != "" {
		text = place + ": " + text
	}
	d.reported = append(d.reported, text)
}

// evaluatedArtifact is an artifact as a plain value.
type evaluatedArtifact struct {
	value engine.Value
	size  int
}

// eval evaluates the templates of an entry.
func (p *artifact) eval(vars artifactVars) (m evaluatedArtifact, err error) {
	out := trajectory.Artifact{Type: trajectory.Type(p.def.Type), Relation: trajectory.Relation(p.def.Relation)}
	if out.Name, err = evalText(p.name, vars); err != nil {
		return m, fmt.Errorf("name: %w", err)
	}
	if len(out.Name) > maxArtifactName {
		return m, fmt.Errorf("its name has %d bytes; a name has at most %d", len(out.Name), maxArtifactName)
	}
	if out.Description, err = evalText(p.description, vars); err != nil {
		return m, fmt.Errorf("description: %w", err)
	}
	if out.Attributes, err = p.attributesOf(vars); err != nil {
		return m, fmt.Errorf("attributes: %w", err)
	}
	if out.Columns, err = p.columnsOf(vars); err != nil {
		return m, fmt.Errorf("columns: %w", err)
	}
	if err := out.Check(); err != nil {
		return m, err
	}
	if m.value, err = out.Value(); err != nil {
		return m, err
	}
	b, err := engine.AppendValue(nil, m.value)
	m.size = len(b)
	return m, err
}

// evalText returns the result of a template as text, "" if there is no template or it gives null.
func evalText(t *expr.Template, vars expr.Vars) (string, error) {
	if t == nil {
		return "", nil
	}
	if v, err := t.Eval(vars); err != nil || v == nil {
		return "", err
	}
	text, err := t.Text(vars)
	return strings.ToValidUTF8(text, "\uFFFD"), err
}

func (p *artifact) attributesOf(vars artifactVars) (map[string]any, error) {
	if p.attributes == nil {
		return nil, nil
	}
	v, err := p.attributes.Eval(vars)
	if err == nil {
		v, err = engine.Normalize(v)
	}
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("expected an object, this is %s", describeValue(v))
	}
	return m, nil
}

func (p *artifact) columnsOf(vars artifactVars) ([]string, error) {
	if p.columns == nil {
		return nil, nil
	}
	v, err := p.columns.Eval(vars)
	if err == nil {
		v, err = engine.Normalize(v)
	}
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("expected a list, this is %s", describeValue(v))
	}
	var out []string
	for i, e := range list {
		name, ok := e.(string)
		if !ok || name == "" || len(name) > maxArtifactName {
			return nil, fmt.Errorf("column %d is %s; expected a text of 1 to %d bytes", i+1, describeValue(e), maxArtifactName)
		}
		out = append(out, name)
	}
	return out, nil
}

// describeValue describes a value in a message.
func describeValue(v engine.Value) string {
	if t, ok := v.(string); ok {
		return fmt.Sprintf("a text of %d bytes", len(t))
	}
	return engine.KindOf(v)
}

// artifactVars are the names that templates of artifacts may read.
type artifactVars struct {
	d     *artifactDeclaration
	each  bool
	item  any
	index int64
}

// Lookup resolves the node's outputs and inputs, and the element of a list.
func (v artifactVars) Lookup(name string) (any, bool) {
	switch name {
	case "outputs":
		return v.d.outputs, true
	case "item":
		return v.item, v.each
	case "index":
		return v.index, v.each
	}
	return v.d.a.ctx.Lookup(name)
}
