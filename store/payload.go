package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// AppendPayload appends the JSON of events on which chains are computed: that of the journal with all values and
// messages included, and with sorted keys. It is the same for events to be appended and for those that were read
// back.
func AppendPayload(b []byte, events []engine.Event) ([]byte, error) {
	codec := engine.Codec{AppendValue: appendAnyValue, AppendBody: func(b []byte, ch *engine.ContextChange) ([]byte, error) {
		return appendBody(b, ch, nil)
	}}
	return codec.Encode(b, events)
}

// PayloadMessage says where a payload has a message that a commit appends to a context.
type PayloadMessage struct {
	Context    string
	Start, End int // bytes of the payload, the last excluded
}

// LocatePayload is AppendPayload to nothing. It also returns where the payload has the messages, in the order of the
// events, so that a store can keep a message as a range of bytes of its commit.
func LocatePayload(events []engine.Event) ([]byte, []PayloadMessage, error) {
	var found []PayloadMessage
	codec := engine.Codec{AppendValue: appendAnyValue, AppendBody: func(b []byte, ch *engine.ContextChange) ([]byte, error) {
		return appendBody(b, ch, func(start, end int) { found = append(found, PayloadMessage{ch.ID, start, end}) })
	}}
	payload, err := codec.Encode(nil, events)
	return payload, found, err
}

// DecodePayloadMessage decodes the bytes of a message that LocatePayload found.
func DecodePayloadMessage(data []byte) (convo.Message, error) {
	var p messageJSON
	if err := decodeStored(data, &p); err != nil {
		return convo.Message{}, fmt.Errorf("%w: a message: %w", ErrCorrupt, err)
	}
	return p.message(), nil
}

// appendAnyValue is engine.EncodeValue for values that may contain other Go types, which are read back as their JSON.
func appendAnyValue(b []byte, v engine.Value) (_ []byte, err error) {
	switch t := v.(type) {
	case nil, bool, int64, float64, int, string, engine.Handle:
		return engine.EncodeValue(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range t {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendAnyValue(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		return appendObject(b, t)
	case engine.Values:
		return appendObject(b, t.Map())
	}
	data, err := engine.AppendValue(nil, v)
	if err != nil {
		return nil, err
	}
	plain, err := engine.DecodeValue(data)
	if err != nil {
		return nil, err
	}
	return appendAnyValue(b, plain)
}

func appendObject(b []byte, m map[string]any) (_ []byte, err error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	marked := len(keys) == 1 && keys[0] != "" && keys[0][0] == '$'
	if marked {
		b = append(b, `{"$":`...)
	}
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(engine.AppendString(b, k), ':')
		if b, err = appendAnyValue(b, m[k]); err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
	}
	if marked {
		b = append(b, '}')
	}
	return append(b, '}'), nil
}

// ContextChangeOf returns the body of a context change as a convo.Change, nil for another body. JSON of a change is
// decoded.
func ContextChangeOf(body any) (*convo.Change, error) {
	switch t := body.(type) {
	case *convo.Change:
		return t, nil
	case convo.Change:
		return &t, nil
	case json.RawMessage:
		if !json.Valid(t) {
			return nil, fmt.Errorf("the body of a change is not JSON: %.40s", t)
		}
		var c convo.Change
		d := json.NewDecoder(bytes.NewReader(t))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err == nil {
			return &c, nil
		}
	}
	return nil, nil
}

// appendBody calls located, unless it is nil, with the bytes of each message that the change appends.
func appendBody(b []byte, ch *engine.ContextChange, located func(start, end int)) ([]byte, error) {
	c, err := ContextChangeOf(ch.Body)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return appendJSON(b, ch.Body)
	}
	b = append(b, '{')
	if len(c.Append) > 0 {
		b = append(b, `"append":[`...)
		for i := range c.Append {
			if i > 0 {
				b = append(b, ',')
			}
			start := len(b)
			if b, err = appendMessage(b, &c.Append[i]); err != nil {
				return nil, err
			}
			if located != nil {
				located(start, len(b))
			}
		}
		b = append(b, `],`...)
	}
	rest := *c
	rest.Append = nil
	b = append(b, `"change":`...)
	if b, err = appendJSON(b, &rest); err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

// appendMessage encodes the common fields of messages itself, because most messages have no others.
func appendMessage(b []byte, m *convo.Message) ([]byte, error) {
	b = engine.AppendString(append(b, `{"id":`...), m.ID)
	b = engine.AppendString(append(b, `,"role":`...), string(m.Role))
	b = engine.AppendString(append(b, `,"text":`...), m.Text)
	if m.Native != nil { // stored unchanged, not normalized
		b = engine.AppendString(append(b, `,"native":`...), string(m.Native))
	}
	rest := *m
	rest.ID, rest.Role, rest.Text, rest.Native = "", "", "", nil
	if !rest.Equal(convo.Message{}) || rest.Metadata != nil {
		var err error
		if b, err = appendJSON(append(b, `,"rest":`...), &rest); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendJSON encodes x as JSON with sorted keys.
func appendJSON(b []byte, x any) ([]byte, error) {
	data, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	v, err := engine.ParseValue(data)
	if err != nil {
		return nil, err
	}
	return appendAnyValue(b, v)
}

// DecodePayload decodes the output of AppendPayload. The bodies of context changes are *convo.Change, or JSON for
// others.
func DecodePayload(data []byte) ([]engine.Event, error) {
	codec := engine.Codec{DecodeBody: decodeBody}
	return codec.Decode(data)
}

// messageJSON has the format of appendMessage.
type messageJSON struct {
	ID     string        `json:"id"`
	Role   convo.Role    `json:"role"`
	Text   string        `json:"text"`
	Native *string       `json:"native"`
	Rest   convo.Message `json:"rest"`
}

func decodeBody(data []byte, _ *engine.ContextChange) (any, error) {
	var body struct {
		Append []messageJSON `json:"append"`
		Change *convo.Change `json:"change"`
	}
	if err := decodeStored(data, &body); err != nil || body.Change == nil {
		return json.RawMessage(bytes.Clone(data)), nil //nolint:nilerr // not a convo.Change
	}
	for i := range body.Append {
		body.Change.Append = append(body.Change.Append, body.Append[i].message())
	}
	return body.Change, nil
}

// decodeStored decodes what appendJSON and its like encoded into x, a pointer to a struct that has every field. In the
// encoding, an object with one key that begins with "$" is wrapped; see engine.EncodeValue.
func decodeStored(data []byte, x any) error {
	if bytes.Contains(data, []byte(`{"$":`)) {
		v, err := engine.DecodeValue(data)
		if err != nil {
			return err
		}
		if data, err = engine.AppendValue(nil, v); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(x)
}

func (p *messageJSON) message() convo.Message {
	m := p.Rest
	m.ID, m.Role, m.Text = p.ID, p.Role, p.Text
	if p.Native != nil {
		m.Native = json.RawMessage(*p.Native)
	}
	return m
}
