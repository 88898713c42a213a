package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// The errors of decoding a journal, other than damage.
var (
	// ErrUnknownEvent means that the journal has an event of a kind that this build does
	// not know.
	ErrUnknownEvent = errors.New("unknown kind of event; the journal was written by another version of Weir")
	// ErrNewerEvent means that the journal has an event in a later version of its kind.
	ErrNewerEvent = errors.New("the event has a newer version; read it with the version of Weir that wrote it")
)

// EncodeEvents appends the JSON of events to b: an array of objects, each with "type"
// first, "v" if the kind's version is over 1, and the event's own fields without defaults.
func EncodeEvents(b []byte, events []Event) ([]byte, error) {
	return new(Codec).Encode(b, events)
}

// DecodeEvents reads the output of EncodeEvents, of this or an earlier version. The bodies
// of context changes are json.RawMessage. Errors wrap ErrUnknownEvent or ErrNewerEvent if
// that is the reason.
func DecodeEvents(data []byte) ([]Event, error) {
	return new(Codec).Decode(data)
}

// Codec is EncodeEvents and DecodeEvents with hooks for the parts that a store may keep
// elsewhere: values and the bodies of context changes. Without a hook the part stays in
// place. Encoding and decoding visit values and bodies in the same order. A Codec is safe
// for concurrent use if its functions are.
type Codec struct {
	// AppendValue appends JSON that represents v.
	AppendValue func(b []byte, v Value) ([]byte, error)
	// DecodeValue reads the output of AppendValue.
	DecodeValue func(data []byte) (Value, error)
	// AppendBody appends JSON that represents c.Body, which is not nil.
	AppendBody func(b []byte, c *ContextChange) ([]byte, error)
	// DecodeBody reads the output of AppendBody. The other fields of c are already decoded.
	DecodeBody func(data []byte, c *ContextChange) (any, error)

	versions versions
}

// Encode appends the JSON of events to b. After an error b is unusable.
func (c *Codec) Encode(b []byte, events []Event) ([]byte, error) {
	w := coder{codec: c, enc: true, b: append(b, '[')}
	for i, e := range events {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.encode(e)
		if w.err != nil {
			return nil, fmt.Errorf("encode event %d (%s): %w", i+1, e.Kind(), w.err)
		}
	}
	return append(w.b, ']'), nil
}

// Decode reads the output of Encode.
func (c *Codec) Decode(data []byte) ([]Event, error) {
	if !json.Valid(data) {
		return nil, errors.New("decode events: not JSON")
	}
	if d := bytes.TrimSpace(data); d[0] != '[' {
		return nil, fmt.Errorf("decode events: expected an array, got %.20s", d)
	}
	r := coder{codec: c}
	var events []Event
	for raw := range Elements(data) {
		e := r.decode(raw)
		if r.err != nil {
			return nil, fmt.Errorf("decode event %d: %w", len(events)+1, r.err)
		}
		events = append(events, e)
	}
	return events, nil
}

func (c *coder) encode(e Event) {
	kind := e.Kind()
	c.open()
	c.str("type", &kind)
	if v := c.codec.versions.of(kind); v > 1 {
		c.int("v", &v)
	}
	c.fields(e)
	c.close()
}

func (c *coder) decode(raw []byte) Event {
	var e Event
	c.object(raw, func() {
		var kind string
		v := 1
		c.str("type", &kind)
		c.int("v", &v)
		if c.err != nil {
			return
		}
		if e = newEvent(kind); e == nil {
			c.fail(fmt.Errorf("%q: %w", kind, ErrUnknownEvent))
			return
		}
		if !c.upcast(kind, v) {
			return
		}
		c.fields(e)
		if c.err != nil {
			c.err = fmt.Errorf("%s: %w", kind, c.err)
		}
	})
	return e
}

// upcast converts the fields of the current event to the present version of its kind.
func (c *coder) upcast(kind string, v int) bool {
	now := c.codec.versions.of(kind)
	if v > now || v < 1 {
		c.fail(fmt.Errorf("%q version %d, this build reads up to %d: %w", kind, v, now, ErrNewerEvent))
		return false
	}
	for ; v < now; v++ {
		up := c.codec.versions[kind][v-1]
		m, err := up(c.members[c.objectStart:])
		if err != nil {
			c.fail(fmt.Errorf("%s: from version %d: %w", kind, v, err))
			return false
		}
		c.members = append(c.members[:c.objectStart:c.objectStart], m...)
	}
	return true
}

// versions is the upcast table: for each kind that ever changed, the functions that convert
// version 1 to 2, 2 to 3 and so on. A kind without an entry is at version 1. No kind has
// changed yet.
type versions map[string][]func([]member) ([]member, error)

func (v versions) of(kind string) int { return len(v[kind]) + 1 }
