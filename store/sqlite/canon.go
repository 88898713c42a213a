package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// A JSON text can say one thing to one reader and another to the next: of two members
// with one name SQLite takes the first and Go the last, and Go takes "Role" for
// "role". What is chained is what Go reads, so verifying also demands that each text
// is written in the one way that Weir writes it. Then all readers agree.

func notCanonical(format string, args ...any) error {
	return fmt.Errorf("%w: %s", store.ErrNotCanonical, fmt.Sprintf(format, args...))
}

// canonicalValue checks the JSON of a stored value: no space between tokens, members
// in order and none twice, texts and numbers as the encoder writes them, references of
// known kinds.
func canonicalValue(raw []byte) error {
	if !json.Valid(raw) {
		return notCanonical("it is not JSON")
	}
	c := canon{text: raw}
	return c.whole()
}

// uniqueJSON checks JSON that another encoder wrote: no space between tokens and no
// member twice, also not in another case.
func uniqueJSON(raw []byte) error {
	if !json.Valid(raw) {
		return notCanonical("it is not JSON")
	}
	c := canon{text: raw, foreign: true}
	return c.whole()
}

// canon walks a valid JSON text.
type canon struct {
	text    []byte
	at      int
	foreign bool // by another encoder, which orders members and writes texts otherwise
}

func (c *canon) whole() error {
	if err := c.value(); err != nil {
		return err
	}
	if c.at != len(c.text) {
		return notCanonical("something follows its JSON")
	}
	return nil
}

func (c *canon) value() error {
	if c.at >= len(c.text) {
		return notCanonical("it ends early")
	}
	switch c.text[c.at] {
	case '{':
		return c.object()
	case '[':
		return c.list()
	case '"':
		_, err := c.str()
		return err
	case ' ', '\t', '\n', '\r':
		return notCanonical("there is space at byte %d", c.at)
	}
	end := scalarEnd(c.text, c.at)
	raw := c.text[c.at:end]
	c.at = end
	return c.scalar(raw)
}

func (c *canon) scalar(raw []byte) error {
	if len(raw) > 0 && (raw[0] == 't' || raw[0] == 'f' || raw[0] == 'n') {
		if s := string(raw); s != "true" && s != "false" && s != "null" {
			return notCanonical("there is space after %.10q", raw)
		}
		return nil
	}
	if bytes.ContainsAny(raw, " \t\r\n") {
		return notCanonical("there is space after a number")
	}
	if c.foreign {
		return nil
	}
	var v engine.Value
	i, err := strconv.ParseInt(string(raw), 10, 64)
	if v = i; err != nil || string(raw) == "-0" {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return notCanonical("number %.40q", raw)
		}
		v = f
	}
	if b, err := engine.AppendValue(nil, v); err != nil || !bytes.Equal(b, raw) {
		return notCanonical("number %.40q", raw)
	}
	return nil
}

func (c *canon) str() (string, error) {
	end := stringEnd(c.text, c.at)
	raw := c.text[c.at:end]
	c.at = end
	s, ok := engine.Unquote(raw)
	if !ok || !c.foreign && !bytes.Equal(engine.AppendString(nil, s), raw) {
		return s, notCanonical("text %.60s", raw)
	}
	return s, nil
}

func (c *canon) next(closing byte) (more bool, err error) {
	switch {
	case c.at >= len(c.text):
		return false, notCanonical("it ends early")
	case c.text[c.at] == closing:
		c.at++
		return false, nil
	case c.text[c.at] == ',':
		c.at++
		return true, nil
	}
	return false, notCanonical("there is space at byte %d", c.at)
}

func (c *canon) list() error {
	if c.at++; c.at < len(c.text) && c.text[c.at] == ']' {
		c.at++
		return nil
	}
	for more := true; more; {
		err := c.value()
		if err == nil {
			more, err = c.next(']')
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *canon) object() error {
	start := c.at
	if c.at++; c.at < len(c.text) && c.text[c.at] == '}' {
		c.at++
		return nil
	}
	var last string
	seen := map[string]bool{}
	n := 0
	for more := true; more; n++ {
		if c.at >= len(c.text) || c.text[c.at] != '"' {
			return notCanonical("there is space at byte %d", c.at)
		}
		key, err := c.str()
		switch {
		case err != nil:
			return err
		case seen[key], !c.foreign && n > 0 && key == last:
			return notCanonical("member %q is there twice", key)
		case !c.foreign && n > 0 && key < last:
			return notCanonical("member %q is not in its place", key)
		case c.at >= len(c.text) || c.text[c.at] != ':':
			return notCanonical("there is space at byte %d", c.at)
		}
		if last = key; c.foreign {
			seen[key] = true
		}
		c.at++
		at := c.at
		if err = c.value(); err == nil {
			more, err = c.next('}')
		}
		if err != nil {
			return err
		}
		if n == 0 && !more && !c.foreign && key != "" && key[0] == '$' {
			return c.marked(key, c.text[at:c.at-1], c.text[start:c.at])
		}
	}
	return nil
}

// marked checks an object whose one key begins with "$"; see packer.
func (c *canon) marked(key string, raw, whole []byte) error {
	whole = whole[:min(len(whole), 60)]
	switch key {
	case "$":
		n, dollar := 0, false
		for k := range engine.Members(raw) {
			n++
			dollar = len(k) > 0 && k[0] == '$'
		}
		if raw[0] != '{' || n != 1 || !dollar {
			return notCanonical("%s need not be marked", whole)
		}
		return nil
	case "$context":
		if raw[0] == '"' {
			return nil
		}
	case "$v":
		if wholeNumber(raw) {
			return nil
		}
	case "$m":
		if wholeNumber(raw) {
			return nil
		}
		n := 0
		for e := range engine.Elements(raw) {
			if n++; !wholeNumber(e) {
				return notCanonical("%s refers to no message", whole)
			}
		}
		if n == 2 {
			return nil
		}
	}
	return notCanonical("%s is a reference of no known kind", whole)
}

// canonicalStruct checks JSON that was written of a struct of the type of into: it
// says nothing else, and says it in the same bytes.
func canonicalStruct(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", store.ErrNotCanonical, err)
	}
	b, err := appendJSON(nil, into)
	if err != nil {
		return err
	}
	if !bytes.Equal(b, raw) {
		return notCanonical("%.60s", raw)
	}
	return nil
}

func canonicalParts(parts ...json.RawMessage) error {
	for _, p := range parts {
		if p == nil {
			continue
		}
		if err := canonicalValue(p); err != nil {
			return err
		}
	}
	return nil
}

func canonicalBody(raw []byte) error {
	var k packedChange
	if err := canonicalStruct(raw, &k); err != nil {
		return fmt.Errorf("change of a context: %w", err)
	}
	if k.Other != nil {
		return uniqueJSON(k.Other)
	}
	return canonicalParts(k.Settings, k.Set, k.Output, k.Session, k.Marks)
}

func canonicalRest(raw string) error {
	var k packedRest
	if err := canonicalStruct([]byte(raw), &k); err != nil {
		return err
	}
	return canonicalParts(k.Parts, k.Reasoning, k.Calls, k.Native, k.Metadata)
}

// canonicalCommit checks the text of a commit, of which events were read: they are
// written as this text and no other, and so is each value in it.
func canonicalCommit(text []byte, u *unpacker) error {
	if err := uniqueJSON(text); err != nil {
		return err
	}
	var raws, bodies [][]byte
	codec := engine.Codec{
		DecodeValue: func(raw []byte) (engine.Value, error) {
			raws = append(raws, raw)
			return u.decodeValue(raw)
		},
		DecodeBody: func(raw []byte, _ *engine.ContextChange) (any, error) {
			bodies = append(bodies, raw)
			return json.RawMessage(raw), nil
		},
		AppendValue: func(b []byte, _ engine.Value) ([]byte, error) { return pop(b, &raws) },
		AppendBody:  func(b []byte, _ *engine.ContextChange) ([]byte, error) { return pop(b, &bodies) },
	}
	events, err := codec.Decode(text)
	if err != nil {
		return err
	}
	for _, raw := range raws {
		if err := canonicalValue(raw); err != nil {
			return err
		}
	}
	for _, raw := range bodies {
		if err := canonicalBody(raw); err != nil {
			return err
		}
	}
	again, err := codec.Encode(nil, events)
	if err != nil || !bytes.Equal(again, text) {
		return notCanonical("its events are written in another way")
	}
	return nil
}

var errNoneLeft = errors.New("an event has more values than its text")

// pop appends what was read next, as encoding meets values in the order of decoding.
func pop(b []byte, from *[][]byte) ([]byte, error) {
	if len(*from) == 0 {
		return nil, errNoneLeft
	}
	b = append(b, (*from)[0]...)
	*from = (*from)[1:]
	return b, nil
}

// canonicalDiff checks that a commit is stored as the differences from its base that
// are written for it.
func canonicalDiff(base *outline, diff, text []byte) error {
	o := newOutline(text, maphash.MakeSeed())
	if len(o.leaves) != len(base.leaves) {
		return notCanonical("it has other parts than the commit it differs from")
	}
	if again := appendDiff(nil, base, &o); !bytes.Equal(again, diff) {
		return notCanonical("its differences are written in another way")
	}
	return nil
}
