package flow

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// FileValue is one value of a file with its position. Files other than flows, such as tests of
// flows, are read with it; flows themselves are read with Parse.
type FileValue struct {
	v    *value
	file string
}

// Entry is one key of an object, with its position.
type Entry struct {
	Key   string
	Pos   Pos
	Value *FileValue
}

// ReadData parses a file as Parse does, without interpreting it as a flow: JSON if the name
// ends in .json, otherwise YAML by the 1.2 core schema, with the same limits. The error is
// an *Invalid with all problems; an empty file is null.
func ReadData(name string, data []byte) (*FileValue, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	l := newLoader(newSharedState(Source{}, nil), name, data)
	var doc *value
	switch {
	case !utf8.Valid(data):
		l.report(1, 1, CodeSyntax, "the file is not UTF-8", "")
	case len(bytes.TrimSpace(data)) == 0:
		doc = &value{line: 1, col: 1}
	case isJSON(name, data):
		doc = l.parseJSON(data)
	default:
		doc = l.parseYAML(data)
	}
	for i := range l.problems {
		p := &l.problems[i]
		p.Message = strings.Replace(p.Message, "a file must have one flow", "a file must have one", 1)
		p.Message = strings.Replace(p.Message, "; expected the keys weir, name and nodes", "", 1)
	}
	if len(l.problems) > 0 {
		return nil, l.invalid()
	}
	return &FileValue{doc, name}, nil
}

// Pos returns the position of the value.
func (d *FileValue) Pos() Pos { return Pos{File: d.file, Line: int(d.v.line), Column: int(d.v.col)} }

// Kind returns the kind of the value in words: "null", "a bool", "a number", "a text", "a
// list" or "an object".
func (d *FileValue) Kind() string { return d.v.kind.String() }

// Value returns the value as plain data: nil, bool, int64, float64, string, []any or
// map[string]any. It belongs to the caller.
func (d *FileValue) Value() any { return d.v.any() }

// Text returns the content of a text, and the source of any other scalar except null: where
// text is expected, `true` and `1` are text.
func (d *FileValue) Text() (s string, ok bool) { return d.v.asText() }

// IsNull reports whether the value is null.
func (d *FileValue) IsNull() bool { return d.v.kind == kindNull }

// IsText reports whether the value is a text.
func (d *FileValue) IsText() bool { return d.v.kind == kindText }

// IsList reports whether the value is a list.
func (d *FileValue) IsList() bool { return d.v.kind == kindList }

// IsObject reports whether the value is an object.
func (d *FileValue) IsObject() bool { return d.v.kind == kindObject }

// Items returns the elements of a list, nil for other kinds.
func (d *FileValue) Items() []*FileValue {
	var out []*FileValue
	for _, v := range d.v.items {
		out = append(out, &FileValue{v, d.file})
	}
	return out
}

// Entries returns the keys of an object in file order, nil for other kinds.
func (d *FileValue) Entries() []Entry {
	var out []Entry
	for i := range d.v.members {
		m := &d.v.members[i]
		out = append(out, Entry{
			Key: m.key, Pos: Pos{File: d.file, Line: int(m.line), Column: int(m.col)}, Value: &FileValue{m.val, d.file},
		})
	}
	return out
}

// Get returns the value of a key of an object, nil if there is none.
func (d *FileValue) Get(key string) *FileValue {
	if d == nil {
		return nil
	}
	if v := d.v.get(key); v != nil {
		return &FileValue{v, d.file}
	}
	return nil
}
