package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/internal/excerpt"
)

// parseJSON parses a JSON file and records the positions of its values.
func (l *loader) parseJSON(data []byte) *value {
	if len(data) > MaxJSON {
		l.report(1, 1, CodeTooBig, fmt.Sprintf("the file has %d bytes; a JSON flow has at most %d", len(data), MaxJSON), "")
		return nil
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		off := len(data)
		if e := new(json.SyntaxError); errors.As(err, &e) {
			off = int(e.Offset) - 1
		}
		l.src.offset(1, 1)
		line, col := l.src.lineColumn(max(0, min(off, len(data))))
		l.report(line, col, CodeSyntax, "not JSON: "+err.Error(), "")
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	r := &jsonReader{l: l, dec: d, data: data, line: 1}
	v := r.read(1)
	if r.failed {
		return nil
	}
	return v
}

// jsonReader reads the tokens of well-formed JSON.
type jsonReader struct {
	l    *loader
	dec  *json.Decoder
	data []byte
	// at is the offset up to which positions are counted; line and col are its position,
	// col from 0.
	at, line, col int
	failed        bool
}

// next returns the next token with its position.
func (r *jsonReader) next() (tok json.Token, line, col int32) {
	from := int(r.dec.InputOffset())
	for from < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[from]) >= 0 {
		from++
	}
	for ; r.at < from; r.at++ {
		switch c := r.data[r.at]; {
		case c == '\n':
			r.line, r.col = r.line+1, 0
		case utf8.RuneStart(c):
			r.col++
		}
	}
	tok, err := r.dec.Token()
	if err != nil && !r.failed {
		r.failed = true
		r.l.report(r.line, 1, CodeSyntax, "not JSON: "+err.Error(), "")
	}
	return tok, int32(r.line), int32(r.col + 1)
}

func (r *jsonReader) read(depth int) *value {
	tok, line, col := r.next()
	v := &value{line: line, col: col}
	switch t := tok.(type) {
	case bool:
		v.kind, v.scalar, v.text = kindBool, t, fmt.Sprint(t)
	case string:
		v.kind, v.text, v.quoted = kindText, t, true
	case json.Number:
		var ok bool
		v.text = t.String()
		if v.scalar, v.kind, ok = parseNumber(v.text); !ok {
			r.l.report(int(line), int(col), CodeTooBig, fmt.Sprintf("the number %s does not fit 64 bits", excerpt.Bytes(v.text, maxQuoted)), "quote it to use it as text")
			v.kind, v.scalar = kindFloat, 0.0
		}
	case json.Delim:
		if depth > MaxDepth {
			r.l.report(int(line), int(col), CodeTooBig, fmt.Sprintf("lists and objects nest deeper than %d", MaxDepth), "")
			r.failed = true
			return v
		}
		if t == '[' {
			r.list(v, depth)
		} else {
			r.object(v, depth)
		}
	}
	return v
}

func (r *jsonReader) list(v *value, depth int) {
	v.kind = kindList
	for !r.failed && r.dec.More() {
		v.items = append(v.items, r.read(depth+1))
	}
	if !r.failed {
		r.next()
	}
}

func (r *jsonReader) object(v *value, depth int) {
	v.kind = kindObject
	var seen map[string]int32
	for !r.failed && r.dec.More() {
		tok, line, col := r.next()
		key, _ := tok.(string)
		m := member{key: key, line: line, col: col}
		m.val = r.read(depth + 1)
		if seen == nil && len(v.members) > 8 {
			seen = make(map[string]int32)
			for _, e := range v.members {
				seen[e.key] = e.line
			}
		}
		if first, dup := findDuplicateKey(v, seen, key); dup {
			r.l.report(int(line), int(col), CodeDuplicateKey, fmt.Sprintf("the key %s occurs twice; first at line %d", quote(key), first), "")
			continue
		}
		if seen != nil {
			seen[key] = line
		}
		v.members = append(v.members, m)
	}
	if !r.failed {
		r.next()
	}
}
