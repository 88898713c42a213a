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

// checkCanonicalValue checks the JSON of a stored value: no space between tokens, members
// in order and none twice, texts and numbers as the encoder writes them, references of
// known kinds.
func checkCanonicalValue(raw []byte) error {
	if !json.Valid(raw) {
		return notCanonical("it is not JSON")
	}
	c := canonChecker{text: raw}
	return c.checkAll()
}

// checkUniqueKeys checks JSON that another encoder wrote: no space between tokens and no
// member twice, also not in another case.
func checkUniqueKeys(raw []byte) error {
	if !json.Valid(raw) {
		return notCanonical("it is not JSON")
	}
	c := canonChecker{text: raw, otherEncoder: true}
	return c.checkAll()
}

// canonChecker walks a valid JSON text.
type canonChecker struct {
	text         []byte
	at           int
	otherEncoder bool // by another encoder, which orders members and writes texts otherwise
}

func (c *canonChecker) checkAll() error {
	if err := c.checkValue(); err != nil {
		return err
	}
	if c.at != len(c.text) {
		return notCanonical("something follows its JSON")
	}
	return nil
}

func (c *canonChecker) checkValue() error {
	if c.at >= len(c.text) {
		return notCanonical("it ends early")
	}
	switch c.text[c.at] {
	case '{':
		return c.checkObject()
	case '[':
		return c.checkList()
	case '"':
		_, err := c.checkString()
		return err
	case ' ', '\t', '\n', '\r':
		return notCanonical("there is space at byte %d", c.at)
	}
	end := scalarEnd(c.text, c.at)
	raw := c.text[c.at:end]
	c.at = end
	return c.checkScalar(raw)
}

func (c *canonChecker) checkScalar(raw []byte) error {
	if len(raw) > 0 && (raw[0] == 't' || raw[0] == 'f' || raw[0] == 'n') {
		if s := string(raw); s != "true" && s != "false" && s != "null" {
			return notCanonical("there is space after %.10q", raw)
		}
		return nil
	}
	if bytes.ContainsAny(raw, " \t\r\n") {
		return notCanonical("there is space after a number")
	}
	if c.otherEncoder {
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

func (c *canonChecker) checkString() (string, error) {
	end := stringEnd(c.text, c.at)
	raw := c.text[c.at:end]
	c.at = end
	s, ok := engine.Unquote(raw)
	if !ok || !c.otherEncoder && !bytes.Equal(engine.AppendString(nil, s), raw) {
		return s, notCanonical("text %.60s", raw)
	}
	return s, nil
}

func (c *canonChecker) next(closing byte) (more bool, err error) {
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

func (c *canonChecker) checkList() error {
	if c.at++; c.at < len(c.text) && c.text[c.at] == ']' {
		c.at++
		return nil
	}
	for more := true; more; {
		err := c.checkValue()
		if err == nil {
			more, err = c.next(']')
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *canonChecker) checkObject() error {
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
		key, err := c.checkString()
		switch {
		case err != nil:
			return err
		case seen[key], !c.otherEncoder && n > 0 && key == last:
			return notCanonical("member %q is there twice", key)
		case !c.otherEncoder && n > 0 && key < last:
			return notCanonical("member %q is not in its place", key)
		case c.at >= len(c.text) || c.text[c.at] != ':':
			return notCanonical("there is space at byte %d", c.at)
		}
		if last = key; c.otherEncoder {
			seen[key] = true
		}
		c.at++
		at := c.at
		if err = c.checkValue(); err == nil {
			more, err = c.next('}')
		}
		if err != nil {
			return err
		}
		if n == 0 && !more && !c.otherEncoder && key != "" && key[0] == '$' {
			return c.checkReference(key, c.text[at:c.at-1], c.text[start:c.at])
		}
	}
	return nil
}

// checkReference checks an object whose one key begins with "$"; see packer.
func (c *canonChecker) checkReference(key string, raw, whole []byte) error {
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

// checkCanonicalStruct checks JSON that was written of a struct of the type of into: it
// says nothing else, and says it in the same bytes.
func checkCanonicalStruct(raw []byte, into any) error {
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

func checkCanonicalParts(parts ...json.RawMessage) error {
	for _, p := range parts {
		if p == nil {
			continue
		}
		if err := checkCanonicalValue(p); err != nil {
			return err
		}
	}
	return nil
}

func checkCanonicalBody(raw []byte) error {
	var k packedChange
	if err := checkCanonicalStruct(raw, &k); err != nil {
		return fmt.Errorf("change of a context: %w", err)
	}
	if k.Other != nil {
		return checkUniqueKeys(k.Other)
	}
	return checkCanonicalParts(k.Settings, k.Set, k.Output, k.Session, k.Marks)
}

func checkCanonicalRest(raw string) error {
	var k packedRest
	if err := checkCanonicalStruct([]byte(raw), &k); err != nil {
		return err
	}
	return checkCanonicalParts(k.Parts, k.Reasoning, k.Calls, k.Native, k.Metadata)
}

// checkCanonicalCommit checks the text of a commit, of which events were read: they are
// written as this text and no other, and so is each value in it.
func checkCanonicalCommit(text []byte, u *unpacker) error {
	if err := checkUniqueKeys(text); err != nil {
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
		AppendValue: func(b []byte, _ engine.Value) ([]byte, error) { return appendNext(b, &raws) },
		AppendBody:  func(b []byte, _ *engine.ContextChange) ([]byte, error) { return appendNext(b, &bodies) },
	}
	events, err := codec.Decode(text)
	if err != nil {
		return err
	}
	for _, raw := range raws {
		if err := checkCanonicalValue(raw); err != nil {
			return err
		}
	}
	for _, raw := range bodies {
		if err := checkCanonicalBody(raw); err != nil {
			return err
		}
	}
	again, err := codec.Encode(nil, events)
	if err != nil || !bytes.Equal(again, text) {
		return notCanonical("its events are written in another way")
	}
	return nil
}

var errNoValueLeft = errors.New("an event has more values than its text")

// appendNext appends what was read next, as encoding meets values in the order of decoding.
func appendNext(b []byte, from *[][]byte) ([]byte, error) {
	if len(*from) == 0 {
		return nil, errNoValueLeft
	}
	b = append(b, (*from)[0]...)
	*from = (*from)[1:]
	return b, nil
}

// checkCanonicalDiff checks that a commit is stored as the differences from its base that
// are written for it.
func checkCanonicalDiff(base *tokenizedText, diff, text []byte) error {
	o := tokenize(text, maphash.MakeSeed())
	if len(o.scalars) != len(base.scalars) {
		return notCanonical("it has other parts than the commit it differs from")
	}
	if again := appendDiff(nil, base, &o); !bytes.Equal(again, diff) {
		return notCanonical("its differences are written in another way")
	}
	return nil
}
