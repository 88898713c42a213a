package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// packedChange is a convo.Change in its stored form: it has the number of messages in place of
// the messages. Texts and settings are references to values.
type packedChange struct {
	Append   int             `json:"append,omitempty"`
	Versions bool            `json:"versions,omitempty"`
	Create   bool            `json:"create,omitempty"`
	Kind     convo.Kind      `json:"kind,omitempty"`
	Label    string          `json:"label,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Epoch    int             `json:"epoch,omitempty"`
	Set      json.RawMessage `json:"set,omitempty"`
	Reset    bool            `json:"reset,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Session  json.RawMessage `json:"session,omitempty"`
	Marks    json.RawMessage `json:"marks,omitempty"`
	// Other is a body that is no convo.Change, as it is.
	Other json.RawMessage `json:"other,omitempty"`
}

// packedRest has the fields of a message other than role, text and id.
type packedRest struct {
	Parts     json.RawMessage `json:"parts,omitempty"`
	Reasoning json.RawMessage `json:"reasoning,omitempty"`
	Calls     json.RawMessage `json:"calls,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Failed    bool            `json:"failed,omitempty"`
	// Native is kept as text, since its bytes must not change.
	Native   json.RawMessage `json:"native,omitempty"`
	Provider string          `json:"provider,omitempty"`
	Pinned   bool            `json:"pinned,omitempty"`
	Priority int             `json:"priority,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// valueJSON returns the JSON that stands for a value.
func (p *packer) valueJSON(v engine.Value) (json.RawMessage, error) {
	return p.appendValue(nil, v)
}

// valueOf returns the value that the JSON of x says.
func valueOf(x any) (engine.Value, error) {
	b, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return engine.DecodeValue(b)
}

func (p *packer) appendBody(b []byte, ch *engine.ContextChange) ([]byte, error) {
	c, err := store.ContextChangeOf(ch.Body)
	if err != nil {
		return nil, err
	}
	var k packedChange
	if c == nil {
		k.Other, err = json.Marshal(ch.Body)
	} else {
		k = packedChange{Append: len(c.Append), Versions: c.Versions, Create: c.Create, Kind: c.Kind, Label: c.Label, Epoch: c.Epoch, Reset: c.Reset}
		err = p.packChange(&k, c)
	}
	if err != nil {
		return nil, err
	}
	return appendJSON(b, &k)
}

func (p *packer) packChange(k *packedChange, c *convo.Change) error {
	for _, f := range []struct {
		to   *json.RawMessage
		from any
		set  bool
	}{
		{&k.Settings, c.Settings, c.Settings != nil},
		{&k.Set, c.Set, c.Set != nil},
		{&k.Output, c.Output, c.Output != nil},
		{&k.Session, c.Session, c.Session != nil},
		{&k.Marks, c.Marks, c.Marks != nil},
	} {
		if !f.set {
			continue
		}
		v, err := valueOf(f.from)
		if err != nil {
			return err
		}
		if *f.to, err = p.valueJSON(v); err != nil {
			return err
		}
	}
	return nil
}

// encodeRest returns the column for what the others do not hold, nil for nothing.
func (p *packer) encodeRest(m *convo.Message) (any, error) {
	k := packedRest{
		CallID: m.CallID, Name: m.Name, Failed: m.Failed,
		Provider: m.Provider, Pinned: m.Pinned, Priority: m.Priority,
	}
	for _, f := range []struct {
		to   *json.RawMessage
		from any
		set  bool
	}{
		{&k.Parts, m.Parts, len(m.Parts) > 0},
		{&k.Reasoning, m.Reasoning, m.Reasoning != ""},
		{&k.Calls, m.Calls, len(m.Calls) > 0},
		{&k.Native, string(m.Native), len(m.Native) > 0},
		{&k.Metadata, map[string]any(m.Metadata), m.Metadata != nil},
	} {
		if !f.set {
			continue
		}
		v, err := valueOrSelf(f.from)
		if err != nil {
			return nil, err
		}
		if *f.to, err = p.valueJSON(v); err != nil {
			return nil, err
		}
	}
	b, err := appendJSON(nil, &k)
	if err != nil || string(b) == "{}" {
		return nil, err
	}
	return string(b), nil
}

// valueOrSelf converts x to a value unless it is one.
func valueOrSelf(x any) (engine.Value, error) {
	switch x.(type) {
	case string, map[string]any:
		return x, nil
	}
	return valueOf(x)
}

func appendJSON(b []byte, x any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		return nil, err
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}

// decodeBody is the inverse of appendBody. The messages come from the
// spans of the commit, in order.
func (u *unpacker) decodeBody(data []byte, _ *engine.ContextChange) (any, error) {
	var k packedChange
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, err
	}
	if k.Other != nil {
		return k.Other, nil
	}
	c := &convo.Change{Versions: k.Versions, Create: k.Create, Kind: k.Kind, Label: k.Label, Epoch: k.Epoch, Reset: k.Reset}
	if err := u.decodeFields(
		encodedField{k.Settings, &c.Settings}, encodedField{k.Set, &c.Set},
		encodedField{k.Output, &c.Output}, encodedField{k.Session, &c.Session}, encodedField{k.Marks, &c.Marks},
	); err != nil {
		return nil, err
	}
	if k.Append == 0 {
		return c, nil
	}
	c.Append = make([]convo.Message, 0, k.Append)
	for range k.Append {
		m, err := u.commitMessage(u.next)
		if err != nil {
			return nil, err
		}
		u.next++
		c.Append = append(c.Append, *m)
	}
	return c, nil
}

// encodedField is a value to be decoded into a field.
type encodedField struct {
	raw json.RawMessage
	to  any
}

// decodeFields decodes values into fields whose JSON they are.
func (u *unpacker) decodeFields(parts ...encodedField) error {
	for _, p := range parts {
		if p.raw == nil {
			continue
		}
		v, err := u.decodeValue(p.raw)
		if err != nil {
			return err
		}
		if err := u.decodeField(v, p.to); err != nil {
			return err
		}
	}
	return nil
}

// decodeField stores a decoded value in a field.
func (u *unpacker) decodeField(v, field any) error {
	switch to := field.(type) {
	case *string:
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("%w: a %T where a text was stored", store.ErrCorrupt, v)
		}
		*to = s
		return nil
	case *convo.Metadata:
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%w: a %T where an object was stored", store.ErrCorrupt, v)
		}
		*to = m
		return nil
	}
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, field); err != nil || !u.strict {
		return err
	}
	return checkSameValue(b, field)
}

// checkSameValue checks that a value contains exactly what was decoded from it: Go's decoder
// ignores unknown members and accepts member names in any case.
func checkSameValue(raw []byte, decoded any) error {
	b, err := appendJSON(nil, decoded)
	if err != nil {
		return err
	}
	v, err := engine.DecodeValue(b)
	if err != nil {
		return err
	}
	if b, err = engine.AppendValue(nil, v); err != nil {
		return err
	}
	if !bytes.Equal(b, raw) {
		return notCanonical("%.60s says more than %.60s", raw, b)
	}
	return nil
}

// decodeRest is the inverse of encodeRest.
func (u *unpacker) decodeRest(data string, m *convo.Message) error {
	var k packedRest
	if err := json.Unmarshal([]byte(data), &k); err != nil {
		return fmt.Errorf("%w: message: %w", store.ErrCorrupt, err)
	}
	m.CallID, m.Name, m.Failed = k.CallID, k.Name, k.Failed
	m.Provider, m.Pinned, m.Priority = k.Provider, k.Pinned, k.Priority
	var native string
	err := u.decodeFields(
		encodedField{k.Parts, &m.Parts}, encodedField{k.Reasoning, &m.Reasoning}, encodedField{k.Calls, &m.Calls},
		encodedField{k.Native, &native}, encodedField{k.Metadata, &m.Metadata},
	)
	if native != "" {
		m.Native = json.RawMessage(native)
	}
	return err
}

// roles are stored in the table message as numbers, in this order; another role is stored as
// text.
func roles() [4]convo.Role {
	return [4]convo.Role{convo.User, convo.Assistant, convo.Tool, convo.System}
}

func packRole(r convo.Role) any {
	for i, known := range roles() {
		if r == known {
			return int64(i)
		}
	}
	return string(r)
}

func unpackRole(x any) convo.Role {
	if n, ok := x.(int64); ok {
		for i, known := range roles() {
			if int64(i) == n {
				return known
			}
		}
	}
	s, _ := x.(string)
	return convo.Role(s)
}

// messageID returns the id of a message's row.
func messageID(context, position int64) int64 { return context*rowsPerParent + position }

// messagesPerTurn is the number of messages that a typical turn appends: the question and the
// answer.
const messagesPerTurn = 2

// parseSpans reads the column that says which messages a commit appended; main is
// what two numbers alone follow, and one, which has as many messages as a turn.
func parseSpans(s string, main [2]int64) ([]int64, error) {
	var spans []int64
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: messages of a commit: %q", store.ErrCorrupt, s)
		}
		spans = append(spans, n)
	}
	if main[0] != 0 && len(spans) == 1 {
		spans = append(spans, messagesPerTurn)
	}
	if main[0] != 0 && len(spans) == 2 {
		return []int64{main[0], main[1] + spans[0], spans[1]}, nil
	}
	if len(spans)%3 != 0 {
		return nil, fmt.Errorf("%w: messages of a commit: %q", store.ErrCorrupt, s)
	}
	return spans, nil
}
