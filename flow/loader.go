package flow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Load reads and validates a flow file and the files of the flows it uses, which must be in
// the folder of the flow file, in one of the given folders, or below. For an invalid
// flow the error is an *Invalid with all problems, including those of the flows it uses; a
// file that cannot be read is another error. Load executes nothing.
func Load(path string, c Catalogue, folders ...string) (*Flow, error) {
	data, err := OSFiles{}.Read(path)
	if err != nil {
		return nil, fmt.Errorf("load flow: %w", err)
	}
	files := OSFiles{Folders: append([]string{filepath.Dir(path)}, folders...)}
	return Source{Files: files}.Parse(path, data, c)
}

// Parse parses and validates a flow. The name appears in positions and as the flow's File;
// if it ends in .json, or data is a JSON object, data is parsed as JSON, otherwise as YAML.
// Both the authoring form and the normal form are accepted. Parse finds no flow that this
// one uses, except for itself; use a Source for that. The error is an *Invalid with all
// problems.
func Parse(name string, data []byte, c Catalogue) (*Flow, error) {
	return Source{}.Parse(name, data, c)
}

// Build makes a flow from one written in Go, in any order and in authoring or normal form:
// Nodes and Edges as a file would list them, and in Uses the flows that its nodes use. The
// result is valid, ordered and immutable; the error is an *Invalid.
func Build(f *Flow, c Catalogue) (*Flow, error) {
	data, err := f.Normal()
	if err != nil {
		return nil, err
	}
	given := make(map[string]*Flow, len(f.Uses))
	for _, u := range f.Uses {
		given[u.Ref] = u.Flow
	}
	l := newLoader(newSharedState(Source{Flows: given}, c), f.File, data)
	l.built = true
	out := l.load()
	if len(l.problems) > 0 {
		return nil, l.invalid()
	}
	return out, nil
}

// Check validates a flow built in Go by the rules of Parse. The error is an *Invalid whose
// problems have no line.
func (f *Flow) Check(c Catalogue) error {
	_, err := Build(f, c)
	return err
}

// loader reads one flow and collects its problems.
type loader struct {
	*sharedState
	file  string
	src   *source
	built bool // from Go: problems have no position
	// problems found so far, and whether there were too many.
	problems        []Problem
	tooManyProblems bool
	flow            *Flow
	inputs          map[string]bool // declared inputs of the flow
	state           map[string]Reducer
	hints           int // number of hints computed so far, which are expensive
	// pins are the entries of `uses`, and used the flows that nodes named, by reference;
	// nil for a missing or invalid one.
	pins map[string]*pin
	used map[string]*Flow
}

func newLoader(of *sharedState, name string, data []byte) *loader {
	return &loader{
		sharedState: of, file: name, src: &source{data: data},
		inputs: map[string]bool{}, state: map[string]Reducer{}, pins: map[string]*pin{}, used: map[string]*Flow{},
	}
}

// load runs the stages; each continues as far as the previous one succeeded.
func (l *loader) load() *Flow {
	data := bytes.TrimPrefix(l.src.data, []byte("\ufeff"))
	if len(data) != len(l.src.data) {
		l.src.data = data
	}
	if !utf8.Valid(data) {
		l.report(1, 1, CodeSyntax, "the file is not UTF-8", "")
		return nil
	}
	var doc *value
	if l.built || isJSON(l.file, data) {
		doc = l.parseJSON(data)
	} else {
		doc = l.parseYAML(data)
	}
	if doc == nil || l.tooManyProblems {
		return nil
	}
	if doc.kind != kindObject {
		l.reportAt(doc, CodeBadValue, "a flow must be an object with the keys weir, name and nodes; got "+doc.kind.String(), "")
		return nil
	}
	l.readFlow(doc)
	return l.flow
}

func isJSON(name string, data []byte) bool {
	if strings.EqualFold(filepath.Ext(name), ".json") {
		return true
	}
	t := bytes.TrimLeft(data, " \t\r\n")
	return len(t) > 0 && t[0] == '{' && json.Valid(t)
}

// report adds a problem at a line and column.
func (l *loader) report(line, col int, code, msg, hint string) {
	if len(l.problems) >= MaxProblems {
		if !l.tooManyProblems {
			l.tooManyProblems = true
			l.problems = append(l.problems, Problem{Pos: l.pos(line, col), Code: CodeTooManyProblems, Message: "the flow has more problems than these", Hint: "correct the listed problems first"})
		}
		return
	}
	l.problems = append(l.problems, Problem{Pos: l.pos(line, col), Code: code, Message: msg, Hint: hint})
}

// reportAt adds a problem at a value.
func (l *loader) reportAt(v *value, code, msg, hint string) {
	l.report(int(v.line), int(v.col), code, msg, hint)
}

// reportAtKey adds a problem at a key.
func (l *loader) reportAtKey(m *member, code, msg, hint string) {
	l.report(int(m.line), int(m.col), code, msg, hint)
}

// reportInText adds a problem at byte off of a text.
func (l *loader) reportInText(v *value, off int, code, msg, hint string) {
	if l.tooManyProblems {
		return
	}
	line, col := l.src.textPosition(v, off)
	l.report(line, col, code, msg, hint)
}

// suggest returns the hint of a message about an unknown name: the nearest candidate, or a
// list of them. It is limited to the first few hundred calls, because it compares every
// candidate.
func (l *loader) suggest(got string, candidates func() []string) string {
	if l.hints++; l.hints > 200 {
		return ""
	}
	all := candidates()
	return cmp.Or(didYouMean(got, all), listCandidates("available: ", all))
}

// nearest is suggest for a message that lists the candidates itself: its hint does not repeat
// them.
func (l *loader) nearest(got string, candidates func() []string) string {
	if l.hints++; l.hints > 200 {
		return ""
	}
	return didYouMean(got, candidates())
}

func (l *loader) pos(line, col int) Pos {
	if l.built || l.AlreadyValid { // the stored text is not a file of the user
		return Pos{File: l.file}
	}
	return Pos{File: l.file, Line: line, Column: col}
}

func (l *loader) posOf(v *value) Pos { return l.pos(int(v.line), int(v.col)) }

// invalid returns the error: the problems by position, without duplicates, those of other
// files after those of the flow's own.
func (l *loader) invalid() error {
	other := func(p Problem) string {
		if p.Pos.File == l.file {
			return ""
		}
		return p.Pos.File
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(other(a), other(b)), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return &Invalid{slices.Compact(l.problems)}
}
