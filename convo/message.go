package convo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// What a message can be refused for.
var (
	// ErrUnknownRole means that the role is not one of the four.
	ErrUnknownRole = errors.New("unknown role")
	// ErrNoCallID means that a tool message does not name the call that it answers.
	ErrNoCallID = errors.New("a tool message needs the id of the call it answers")
)

// Metadata is free-form data of a message. Read from JSON, whole numbers are int64 and
// other numbers float64.
type Metadata map[string]any

// UnmarshalJSON reads an object; null gives no metadata.
func (m *Metadata) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var raw map[string]any
	if err := d.Decode(&raw); err != nil {
		return err
	}
	for k, v := range raw {
		n, err := plainNumbers(v)
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		raw[k] = n
	}
	*m = raw
	return nil
}

func plainNumbers(v any) (any, error) {
	switch t := v.(type) {
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i, nil
		}
		return t.Float64()
	case []any:
		for i, e := range t {
			n, err := plainNumbers(e)
			if err != nil {
				return nil, err
			}
			t[i] = n
		}
	case map[string]any:
		for k, e := range t {
			n, err := plainNumbers(e)
			if err != nil {
				return nil, err
			}
			t[k] = n
		}
	}
	return v, nil
}

// Equal reports whether two messages are equal, including their ids.
func (m Message) Equal(o Message) bool {
	return m.ID == o.ID && m.Role == o.Role && m.Text == o.Text && m.Reasoning == o.Reasoning &&
		m.CallID == o.CallID && m.Name == o.Name && m.Failed == o.Failed && m.Provider == o.Provider &&
		m.Pinned == o.Pinned && m.Priority == o.Priority &&
		slices.Equal(m.Calls, o.Calls) && slices.EqualFunc(m.Parts, o.Parts, equalPart) &&
		bytes.Equal(m.Native, o.Native) &&
		(len(m.Metadata) == 0 && len(o.Metadata) == 0 || reflect.DeepEqual(m.Metadata, o.Metadata))
}

func equalPart(a, b Part) bool {
	return a.Kind == b.Kind && a.MIME == b.MIME && a.Name == b.Name && a.URL == b.URL && bytes.Equal(a.Data, b.Data)
}

// Normalized validates m and returns it in the form in which its JSON would be read back,
// sharing nothing mutable except for the data of parts. So a live message and the same
// message replayed from a journal are equal. Errors are ErrUnknownRole, ErrNoCallID, and
// invalid JSON in native blocks or metadata.
func (m Message) Normalized() (Message, error) {
	switch m.Role {
	case System, User, Assistant:
	case Tool:
		if m.CallID == "" {
			return Message{}, fmt.Errorf("message %q: %w", m.ID, ErrNoCallID)
		}
	default:
		return Message{}, fmt.Errorf("message %q: %w %q: use system, user, assistant or tool", m.ID, ErrUnknownRole, m.Role)
	}
	m = m.clone()
	m.replaceInvalidUTF8()
	if m.Native != nil {
		b, err := json.Marshal(m.Native)
		if err != nil {
			return Message{}, fmt.Errorf("message %q: native blocks: %w", m.ID, err)
		}
		m.Native = b
	}
	if m.Metadata != nil {
		b, err := json.Marshal(m.Metadata)
		if err == nil {
			m.Metadata = nil
			err = json.Unmarshal(b, &m.Metadata)
		}
		if err != nil {
			return Message{}, fmt.Errorf("message %q: metadata: %w", m.ID, err)
		}
	}
	return m, nil
}

// replaceInvalidUTF8 replaces invalid UTF-8 with U+FFFD, as JSON does.
func (m *Message) replaceInvalidUTF8() {
	for _, s := range []*string{&m.ID, &m.Text, &m.Reasoning, &m.CallID, &m.Name, &m.Provider} {
		fixUTF8(s)
	}
	for i := range m.Calls {
		fixUTF8(&m.Calls[i].ID)
		fixUTF8(&m.Calls[i].Name)
		fixUTF8(&m.Calls[i].Arguments)
	}
	for i := range m.Parts {
		fixUTF8(&m.Parts[i].Kind)
		fixUTF8(&m.Parts[i].MIME)
		fixUTF8(&m.Parts[i].Name)
		fixUTF8(&m.Parts[i].URL)
	}
}

// fixUTF8 replaces each invalid byte, not each run of them, as JSON does.
func fixUTF8(s *string) {
	if !utf8.ValidString(*s) {
		*s = strings.Map(func(r rune) rune { return r }, *s)
	}
}

// clone returns m without anything that is shared and mutable, except for the data of
// parts.
func (m Message) clone() Message {
	m.Calls = cloneList(m.Calls)
	m.Parts = cloneList(m.Parts)
	m.Native = cloneList(m.Native)
	if len(m.Metadata) == 0 {
		m.Metadata = nil
	} else {
		m.Metadata = cloneValue(map[string]any(m.Metadata)).(map[string]any)
	}
	return m
}

func cloneList[S ~[]E, E any](s S) S {
	if len(s) == 0 {
		return nil
	}
	return slices.Clone(s)
}

func cloneValue(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = cloneValue(e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = cloneValue(e)
		}
		return out
	}
	return v
}
