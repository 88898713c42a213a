package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// maxFile bounds a file, in bytes, and maxDepth how deep it may nest.
const (
	maxFile  = 1 << 20
	maxDepth = 64
)

// Invalid says all that is wrong with the files.
type Invalid struct{ Problems []Problem }

// Error returns a problem a line.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Problem is one thing that a file cannot say. It never shows a value.
type Problem struct {
	File         string
	Line, Column int // from 1; 0 is the file as a whole
	// Path leads there, as "providers.local".
	Path    string
	Message string
	// Hint says what to do, where the message does not.
	Hint string
}

// String is file:line:column: path: message (hint).
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	s += ": "
	if p.Path != "" {
		s += p.Path + ": "
	}
	s += p.Message
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// document is one file.
type document struct {
	path     string
	root     *yaml.Node
	values   map[string]any
	problems []Problem
}

// parse parses and checks a file.
func parse(path string, data []byte, s *jsonschema.Schema, reserved []string) *document {
	d := &document{path: path, values: map[string]any{}}
	if len(data) > maxFile {
		d.report(nil, fmt.Sprintf("the file has %d bytes; there may be at most %d", len(data), maxFile), "")
		return d
	}
	limits := loaderlimits.New(loaderlimits.DepthValue(maxDepth))
	var docs []yaml.Node
	if err := yaml.Load(data, &docs, yaml.WithAllDocuments(), yaml.WithPlugin(limits)); err != nil {
		d.reportUnreadable(err)
		return d
	}
	switch {
	case len(docs) > 1:
		d.problems = append(d.problems, Problem{
			File: path, Line: docs[1].Line, Column: docs[1].Column, Message: "a second YAML document; a file holds one",
		})
		return d
	case len(docs) == 0 || len(docs[0].Content) == 0 || docs[0].Content[0].Tag == "!!null":
		return d // says nothing
	}
	d.root = docs[0].Content[0]
	if d.aliases(d.root); len(d.problems) > 0 {
		return d
	}
	var v any
	if err := d.root.Decode(&v); err != nil {
		d.reportUnreadable(err)
		return d
	}
	if !d.validate(s, v) {
		return d
	}
	d.values, _ = v.(map[string]any)
	d.check(reserved)
	return d
}

// aliases reports each reference to another part of the file: what it stands
// for could not be distinguished from its place.
func (d *document) aliases(n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		d.problems = append(d.problems, Problem{
			File: d.path, Line: n.Line, Column: n.Column, Message: "an alias; write out what it stands for",
		})
		return
	}
	for _, c := range n.Content {
		d.aliases(c)
	}
}

// reportUnreadable reports what the parser says.
func (d *document) reportUnreadable(err error) {
	p := Problem{File: d.path, Message: "not YAML: " + err.Error()}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		p.Message, p.Line, p.Column = "not YAML: "+e.Message, e.Mark.Line, e.Mark.Column
		if p.Line == 0 {
			p.Line, p.Column = e.ContextMark.Line, e.ContextMark.Column
		}
	}
	d.problems = append(d.problems, p)
}

// report adds a problem with what path leads to.
func (d *document) report(path []string, message, hint string) {
	p := Problem{File: d.path, Path: strings.Join(path, "."), Message: message, Hint: hint}
	if n := d.find(path); n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
}

// find returns the key that a path leads to, or the element of a list; nil
// if there is none.
func (d *document) find(path []string) *yaml.Node {
	n, at := d.root, d.root
	for _, step := range path {
		at, n = child(n, step)
		if n == nil {
			return nil
		}
	}
	return at
}

// child returns where a step is written and what is there.
func child(n *yaml.Node, step string) (at, value *yaml.Node) {
	if n == nil {
		return nil, nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			if fmt.Sprint(i) == step {
				return c, c
			}
		}
	default:
	}
	return nil, nil
}

// resolvePaths makes the paths of keys and flows begin at the folder of the file.
func (d *document) resolvePaths() {
	dir, err := filepath.Abs(filepath.Dir(d.path))
	if err != nil {
		dir = filepath.Dir(d.path)
	}
	fix := func(v any) {
		m, _ := v.(map[string]any)
		if path, ok := m["file"].(string); ok && !filepath.IsAbs(path) {
			m["file"] = filepath.Join(dir, path)
		}
	}
	for _, s := range mapAt(d.values, "secrets") {
		fix(s)
	}
	for _, p := range mapAt(d.values, "providers") {
		m, _ := p.(map[string]any)
		fix(m["key"])
	}
	fix(mapAt(d.values, "executors", "e2b")["key"])
	fix(mapAt(d.values, "server", "oidc")["clientSecret"])
	for _, h := range mapAt(d.values, "otel", "headers") {
		fix(h)
	}
	d.resolveTemporalPaths(dir)
	d.resolveStoragePaths(dir)
	d.resolvePythonPath(dir)
	d.resolveTrajectoryPath(dir)
	d.resolveFlowFolders(dir)
	d.resolveServerFolders(dir)
	flows, _ := mapAt(d.values, "tools")["flows"].([]any)
	for _, f := range flows {
		fix(f)
	}
	for _, s := range mapAt(d.values, "tools", "mcp") {
		m, _ := s.(map[string]any)
		for _, texts := range []string{"env", "headers"} {
			for _, v := range mapAt(m, texts) {
				fix(v)
			}
		}
	}
}

// resolveFlowFolders makes the folders of flows begin at that of the file.
func (d *document) resolveFlowFolders(dir string) {
	folders, _ := mapAt(d.values, "flows")["folders"].([]any)
	for i, v := range folders {
		if path, ok := v.(string); ok && !filepath.IsAbs(path) {
			folders[i] = filepath.Join(dir, path)
		}
	}
}

func mapAt(v map[string]any, path ...string) map[string]any {
	for _, step := range path {
		v, _ = v[step].(map[string]any)
	}
	return v
}

// Read and ReadBytes make it a provider for koanf.
func (d *document) Read() (map[string]any, error) { return d.values, nil }

// ReadBytes is not used: the file is parsed already.
func (d *document) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }

// sortProblems puts problems in the order of the file.
func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}
