package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// coder visits the fields of events in a fixed order. It writes them when encoding and
// fills them when decoding, so that the two directions cannot differ. Encoding only reads
// what it visits. The first error is kept.
type coder struct {
	codec *Codec
	enc   bool
	err   error

	b     []byte // encoding: the output
	comma bool   // encoding: the next member needs a comma

	members     []member // decoding: the members of all open objects
	objectStart int      // decoding: index of the innermost object's first member
}

// member is one member of an object that was not visited yet.
type member struct {
	key string
	raw []byte
}

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *coder) open() {
	c.b = append(c.b, '{')
	c.comma = false
}

func (c *coder) close() {
	c.b = append(c.b, '}')
	c.comma = true
}

func (c *coder) key(name string) {
	if c.comma {
		c.b = append(c.b, ',')
	}
	c.comma = true
	c.b = append(append(append(c.b, '"'), name...), '"', ':')
}

// object visits the members of raw. Each must be visited exactly once.
func (c *coder) object(raw []byte, visit func()) {
	if c.err != nil {
		return
	}
	if len(raw) == 0 || raw[0] != '{' {
		c.fail(fmt.Errorf("expected an object, got %.40s", raw))
		return
	}
	lo := c.objectStart
	c.objectStart = len(c.members)
	for k, v := range Members(raw) {
		c.members = append(c.members, member{string(k), v})
	}
	visit()
	for i := c.objectStart; i < len(c.members) && c.err == nil; i++ {
		if c.members[i].raw != nil {
			c.fail(fmt.Errorf("unknown or repeated field %q", c.members[i].key))
		}
	}
	c.members = c.members[:c.objectStart]
	c.objectStart = lo
}

// takeMember finds a member of the innermost object and marks it visited.
func (c *coder) takeMember(name string) ([]byte, bool) {
	if c.err != nil {
		return nil, false
	}
	for i := c.objectStart; i < len(c.members); i++ {
		if m := &c.members[i]; m.key == name && m.raw != nil {
			raw := m.raw
			m.raw = nil
			return raw, !bytes.Equal(raw, []byte("null"))
		}
	}
	return nil, false
}

func (c *coder) str(name string, p *string) {
	if c.enc {
		if *p != "" {
			c.key(name)
			c.b = AppendString(c.b, *p)
		}
		return
	}
	if raw, ok := c.takeMember(name); ok {
		if *p, ok = Unquote(raw); !ok {
			c.fail(fmt.Errorf("%s: expected text, got %.40s", name, raw))
		}
	}
}

// text is str for strings that may be long or repeat a value.
func (c *coder) text(name string, p *string) {
	if c.enc {
		if *p != "" {
			c.key(name)
			c.appendValue(*p)
		}
		return
	}
	var v Value
	if c.value(name, &v); v != nil {
		s, ok := v.(string)
		if !ok {
			c.fail(fmt.Errorf("%s: expected text, got %T", name, v))
		}
		*p = s
	}
}

func (c *coder) int64(name string, p *int64) {
	if c.enc {
		if *p != 0 {
			c.key(name)
			c.b = strconv.AppendInt(c.b, *p, 10)
		}
		return
	}
	if raw, ok := c.takeMember(name); ok {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			c.fail(fmt.Errorf("%s: expected a whole number, got %.40s", name, raw))
		}
		*p = n
	}
}

func (c *coder) int(name string, p *int) {
	n := int64(*p)
	c.int64(name, &n)
	if !c.enc {
		*p = int(n)
	}
}

func (c *coder) bool(name string, p *bool) {
	if c.enc {
		if *p {
			c.key(name)
			c.b = append(c.b, "true"...)
		}
		return
	}
	if raw, ok := c.takeMember(name); ok {
		if *p = raw[0] == 't'; !*p && raw[0] != 'f' {
			c.fail(fmt.Errorf("%s: expected true or false, got %.40s", name, raw))
		}
	}
}

func (c *coder) appendValue(v Value) {
	if c.err != nil {
		return
	}
	add := EncodeValue
	if c.codec.AppendValue != nil {
		add = c.codec.AppendValue
	}
	b, err := add(c.b, v)
	if err != nil {
		c.fail(err)
		return
	}
	c.b = b
}

func (c *coder) decodeValue(raw []byte) Value {
	read := DecodeValue
	if c.codec.DecodeValue != nil {
		read = c.codec.DecodeValue
	}
	v, err := read(raw)
	if err != nil {
		c.fail(err)
	}
	return v
}

func (c *coder) value(name string, p *Value) {
	if c.enc {
		if *p != nil {
			c.key(name)
			c.appendValue(*p)
		}
		return
	}
	if raw, ok := c.takeMember(name); ok {
		*p = c.decodeValue(raw)
	}
}

func (c *coder) values(name string, p *Values) {
	if c.enc {
		if len(*p) > 0 {
			c.key(name)
			c.appendValues(*p)
		}
		return
	}
	if raw, ok := c.takeMember(name); ok {
		*p = c.decodeValues(raw)
	}
}

func (c *coder) appendValues(v Values) {
	c.open()
	for i := range v {
		if c.comma {
			c.b = append(c.b, ',')
		}
		c.comma = true
		c.b = append(AppendString(c.b, v[i].Name), ':')
		c.appendValue(v[i].Value)
	}
	c.close()
}

// decodeValues returns nil for an empty object.
func (c *coder) decodeValues(raw []byte) Values {
	if raw[0] != '{' {
		c.fail(fmt.Errorf("expected an object of values, got %.40s", raw))
		return nil
	}
	var v Values
	for k, r := range Members(raw) {
		v = append(v, Named{string(k), c.decodeValue(r)})
	}
	return v
}

func (c *coder) strings(name string, p *[]string) {
	each(c, name, p, func(s *string) {
		if c.enc {
			c.b = AppendString(c.b, *s)
		}
	}, func(raw []byte, s *string) {
		var ok bool
		if *s, ok = Unquote(raw); !ok {
			c.fail(fmt.Errorf("%s: expected text, got %.40s", name, raw))
		}
	})
}

// each visits a list; put writes an element, get reads one.
func each[T any](c *coder, name string, p *[]T, put func(*T), get func([]byte, *T)) {
	if c.enc {
		if len(*p) == 0 {
			return
		}
		c.key(name)
		c.b = append(c.b, '[')
		for i := range *p {
			if i > 0 {
				c.b = append(c.b, ',')
			}
			put(&(*p)[i])
		}
		c.b = append(c.b, ']')
		c.comma = true
		return
	}
	raw, ok := c.takeMember(name)
	if !ok {
		return
	}
	if raw[0] != '[' {
		c.fail(fmt.Errorf("%s: expected a list, got %.40s", name, raw))
		return
	}
	for r := range Elements(raw) {
		var t T
		get(r, &t)
		*p = append(*p, t)
	}
}

// objects visits a list of objects with the function that visits one.
func objects[T any](c *coder, name string, p *[]T, visit func(*coder, *T)) {
	each(c, name, p, func(t *T) {
		c.open()
		visit(c, t)
		c.close()
	}, func(raw []byte, t *T) {
		c.object(raw, func() { visit(c, t) })
	})
}

// pointer visits an object that may be absent.
func pointer[T any](c *coder, name string, p **T, visit func(*coder, *T)) {
	if c.enc {
		if *p != nil {
			c.key(name)
			c.open()
			visit(c, *p)
			c.close()
		}
		return
	}
	if raw, ok := c.takeMember(name); ok {
		*p = new(T)
		c.object(raw, func() { visit(c, *p) })
	}
}

// nested visits an object that is a field by value. An empty one is omitted.
func (c *coder) nested(name string, visit func()) {
	if c.enc {
		b, comma := len(c.b), c.comma
		c.key(name)
		c.open()
		at := len(c.b)
		visit()
		if len(c.b) == at {
			c.b, c.comma = c.b[:b], comma
			return
		}
		c.close()
		return
	}
	if raw, ok := c.takeMember(name); ok {
		c.object(raw, visit)
	}
}

// status visits a status by its name.
func (c *coder) status(name string, p *Status) {
	var s string
	if *p != Pending {
		s = p.String()
	}
	c.str(name, &s)
	if c.enc || s == "" {
		return
	}
	st, ok := StatusNamed(s)
	if !ok {
		c.fail(fmt.Errorf("%s: unknown status %q", name, s))
		return
	}
	*p = st
}

func (c *coder) body(p *ContextChange) {
	if c.enc {
		if p.Body != nil && c.err == nil {
			c.key("body")
			c.appendBody(p)
		}
		return
	}
	raw, ok := c.takeMember("body")
	if !ok {
		return
	}
	if c.codec.DecodeBody == nil {
		p.Body = json.RawMessage(bytes.Clone(raw))
		return
	}
	v, err := c.codec.DecodeBody(raw, p)
	if err != nil {
		c.fail(fmt.Errorf("body of the change to context %q: %w", p.ID, err))
	}
	p.Body = v
}

func (c *coder) appendBody(p *ContextChange) {
	if c.codec.AppendBody != nil {
		b, err := c.codec.AppendBody(c.b, p)
		if err != nil {
			c.fail(fmt.Errorf("body of the change to context %q: %w", p.ID, err))
			return
		}
		c.b = b
		return
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(p.Body); err != nil {
		c.fail(fmt.Errorf("body of the change to context %q: %w", p.ID, err))
		return
	}
	c.b = append(c.b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

var errNotObject = errors.New("expected an object")

// schema visits a JSON Schema, which is always an object.
func (c *coder) schema(name string, p *map[string]any) {
	if c.enc {
		if *p != nil {
			c.key(name)
			c.appendValue(*p)
		}
		return
	}
	var v Value
	if c.value(name, &v); v == nil {
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		c.fail(fmt.Errorf("%s: %w, got %T", name, errNotObject, v))
	}
	*p = m
}

// stringMap visits an object of strings as one value, because it may be large.
func (c *coder) stringMap(name string, p *map[string]string) {
	var m map[string]any
	if c.enc {
		if len(*p) > 0 {
			m = make(map[string]any, len(*p))
			for k, s := range *p { // order: the result is a map
				m[k] = s
			}
		}
		c.schema(name, &m)
		return
	}
	c.schema(name, &m)
	if m == nil {
		return
	}
	*p = make(map[string]string, len(m))
	// order: the result is a map; of several invalid members the error names any one
	for k, v := range m {
		s, ok := v.(string)
		if !ok {
			c.fail(fmt.Errorf("%s: %s: expected text, got %T", name, k, v))
		}
		(*p)[k] = s
	}
}
