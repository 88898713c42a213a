package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// unpacker turns rows back into events and messages. It fetches in bulk what a
// batch of rows refers to, and alone what is too large to hold on to.
type unpacker struct {
	s   *Store
	ctx context.Context //nolint:containedctx // lives as long as one call

	values   map[int64][]byte
	messages map[int64]*storedMessage
	spans    []int64 // of the commit at hand
	next     int     // of its messages, the first that no body has taken
	depth    int     // values whose bodies are being read
	strict   bool    // what is not written as Weir writes it is refused
}

// storedMessage is a row of message; decoded is made when it is asked for.
type storedMessage struct {
	role    any
	content *string
	value   int64
	key     string
	rest    string
	decoded *convo.Message
}

func newUnpacker(ctx context.Context, s *Store) *unpacker {
	return &unpacker{s: s, ctx: ctx, values: map[int64][]byte{}, messages: map[int64]*storedMessage{}}
}

// bulkValue is the size up to which values are fetched together, in bytes.
const bulkValue = 64 << 10

// fetchValues fetches the values that texts refer to, and those that these
// refer to.
func (u *unpacker) fetchValues(ids []int64) error {
	for len(ids) > 0 {
		list, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		ids = ids[:0:0]
		err = u.s.query(u.ctx, func(row scanner) error {
			var id int64
			var body []byte
			err := row.Scan(&id, &body)
			u.values[id] = body
			ids = u.addMissingValues(ids, body)
			if err == nil {
				err = u.checkValue(id, body)
			}
			return err
		}, "SELECT id, body FROM value_json WHERE id IN (SELECT value FROM json_each(?)) AND length(body) <= ?",
			string(list), bulkValue)
		if err != nil {
			return err
		}
	}
	return nil
}

// addMissingValues adds the ids of values that text refers to and that are not here.
func (u *unpacker) addMissingValues(ids []int64, text []byte) []int64 {
	for {
		i := bytes.Index(text, []byte(`"$v":`))
		if i < 0 {
			return ids
		}
		text = text[i+len(`"$v":`):]
		n := 0
		for n < len(text) && text[n] >= '0' && text[n] <= '9' {
			n++
		}
		id, err := strconv.ParseInt(string(text[:n]), 10, 64)
		if _, here := u.values[id]; err == nil && !here {
			ids = append(ids, id)
		}
	}
}

// fetchMessages fetches messages of a context at positions from up to to, and
// returns the values these refer to.
func (u *unpacker) fetchMessages(ids []int64, context, from, to int64) ([]int64, error) {
	var slashed []int64
	err := u.s.query(u.ctx, func(row scanner) error {
		m := new(storedMessage)
		var id int64
		if err := row.Scan(&id, &m.role, &m.content, &m.value, &m.key, &m.rest); err != nil {
			return err
		}
		u.messages[id] = m
		if strings.HasPrefix(m.key, "/") {
			slashed = append(slashed, id)
		}
		if _, here := u.values[m.value]; m.value != 0 && !here {
			ids = append(ids, m.value)
		}
		if m.rest != "" {
			ids = u.addMissingValues(ids, []byte(m.rest))
		}
		return u.checkMessage(id, m)
	}, `SELECT id, role, content, coalesce(value, 0), coalesce(key, ''), coalesce(rest, '')
		FROM message WHERE id >= ? AND id < ?`, messageID(context, from), messageID(context, to))
	if err != nil || len(slashed) == 0 {
		return ids, err
	}
	p, err := lineage{u.ctx, u.s.reader}.prefixes(context, from, to)
	for _, id := range slashed {
		u.messages[id].key = p.unpack(u.messages[id].key, id%rowsPerParent)
	}
	return ids, err
}

// value returns the JSON of a value.
func (u *unpacker) value(id int64) ([]byte, error) {
	if body, ok := u.values[id]; ok {
		return body, nil
	}
	var body []byte
	if err := u.s.reader.QueryRowContext(u.ctx, "SELECT body FROM value_json WHERE id = ?", id).Scan(&body); err != nil {
		return nil, missingError("value", id, err)
	}
	return body, u.checkValue(id, body)
}

// checkValue refuses the JSON of a value that is not written as Weir writes it, where
// that is asked for.
func (u *unpacker) checkValue(id int64, body []byte) error {
	if !u.strict {
		return nil
	}
	if err := checkCanonicalValue(body); err != nil {
		return fmt.Errorf("value %d: %w", id, err)
	}
	return nil
}

func (u *unpacker) checkMessage(id int64, m *storedMessage) error {
	if !u.strict {
		return nil
	}
	var err error
	switch role := packRole(unpackRole(m.role)); {
	case role != m.role:
		err = notCanonical("role %v", m.role)
	case m.content != nil && m.value != 0:
		err = notCanonical("it has a text of its own and another's")
	case m.content == nil && m.value == 0:
		err = notCanonical("it has no text")
	case m.rest != "":
		err = checkCanonicalRest(m.rest)
	}
	if err != nil {
		return fmt.Errorf("message %d of context %d: %w", id%rowsPerParent, id/rowsPerParent, err)
	}
	return nil
}

// missingError converts a missing reference to an error for a damaged database.
func missingError(what string, id int64, err error) error {
	err = wrap(fmt.Sprintf("%s %d", what, id), err)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %s %d is missing", store.ErrCorrupt, what, id)
	}
	return err
}

// message returns the message at a position of a context.
func (u *unpacker) message(context, position int64) (*convo.Message, error) {
	id := messageID(context, position)
	m := u.messages[id]
	if m == nil {
		ids, err := u.fetchMessages(nil, context, position, position+1)
		if err != nil {
			return nil, err
		}
		if err := u.fetchValues(ids); err != nil {
			return nil, err
		}
		if m = u.messages[id]; m == nil {
			return nil, fmt.Errorf("%w: message %d of context %d is missing", store.ErrCorrupt, position, context)
		}
	}
	if m.decoded != nil {
		return m.decoded, nil
	}
	d := &convo.Message{ID: m.key, Role: unpackRole(m.role)}
	switch {
	case m.content != nil:
		d.Text = *m.content
	case m.value != 0:
		body, err := u.value(m.value)
		if err != nil {
			return nil, err
		}
		d.Text, _ = engine.Unquote(body)
	}
	if m.rest != "" {
		if err := u.decodeRest(m.rest, d); err != nil {
			return nil, err
		}
	}
	m.decoded = d
	return d, nil
}

// commitMessage returns a message that the commit at hand appended.
func (u *unpacker) commitMessage(n int) (*convo.Message, error) {
	left := int64(n)
	for s := range slices.Chunk(u.spans, 3) {
		if left < s[2] {
			return u.message(s[0], s[1]+left)
		}
		left -= s[2]
	}
	return nil, fmt.Errorf("%w: the commit has no message %d", store.ErrCorrupt, n)
}

// decodeValue is the inverse of packer.appendValue.
func (u *unpacker) decodeValue(raw []byte) (engine.Value, error) {
	switch raw[0] {
	case '"':
		s, _ := engine.Unquote(raw)
		return s, nil
	case 't', 'f':
		return raw[0] == 't', nil
	case 'n':
		return nil, nil
	case '[':
		list := []any{}
		for e := range engine.Elements(raw) {
			v, err := u.decodeValue(e)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case '{':
		return u.decodeObject(raw)
	}
	if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil, fmt.Errorf("%w: number %.40q", store.ErrCorrupt, raw)
	}
	return f, nil
}

func (u *unpacker) decodeObject(raw []byte) (engine.Value, error) {
	if len(raw) > 2 && raw[1] == '"' && raw[2] == '$' {
		for k, v := range engine.Members(raw) {
			if end := len(raw) - 1; len(raw) == len(k)+len(v)+5 && raw[end] == '}' {
				return u.decodeReference(string(k), v)
			}
			break
		}
	}
	return u.decodePlain(raw)
}

func (u *unpacker) decodePlain(raw []byte) (engine.Value, error) {
	m := map[string]any{}
	for k, r := range engine.Members(raw) {
		v, err := u.decodeValue(r)
		if err != nil {
			return nil, err
		}
		m[string(k)] = v
	}
	return m, nil
}

// decodeReference reads an object with one key that begins with "$".
func (u *unpacker) decodeReference(key string, raw []byte) (engine.Value, error) {
	switch key {
	case "$":
		return u.decodePlain(raw)
	case "$context":
		id, _ := engine.Unquote(raw)
		return engine.Handle{ID: id}, nil
	case "$v":
		id, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: reference to value %.40s", store.ErrCorrupt, raw)
		}
		body, err := u.value(id)
		if err != nil {
			return nil, err
		}
		return u.decodeStored(id, body)
	case "$m":
		return u.decodeMessageText(raw)
	}
	return nil, fmt.Errorf("%w: reference of unknown kind %.40q", store.ErrCorrupt, key)
}

// maxValueDepth bounds how deep values refer to each other. Those that are as they were
// written do so less deep than JSON nests.
const maxValueDepth = 10000

// decodeStored reads the body of a value, which refers to others perhaps.
func (u *unpacker) decodeStored(id int64, body []byte) (engine.Value, error) {
	if !json.Valid(body) {
		return nil, fmt.Errorf("%w: value %d is not JSON", store.ErrCorrupt, id)
	}
	if u.depth++; u.depth > maxValueDepth {
		return nil, fmt.Errorf("%w: value %d refers to itself", store.ErrCorrupt, id)
	}
	v, err := u.decodeValue(bytes.TrimSpace(body))
	u.depth--
	return v, err
}

func (u *unpacker) decodeMessageText(raw []byte) (engine.Value, error) {
	at := slices.Collect(engine.Elements(raw))
	if len(at) == 0 {
		at = [][]byte{raw}
	}
	var n [2]int64
	for i := range at {
		var err error
		if n[min(i, 1)], err = strconv.ParseInt(string(at[i]), 10, 64); err != nil || i > 1 {
			return nil, fmt.Errorf("%w: reference to message %.40s", store.ErrCorrupt, raw)
		}
	}
	var m *convo.Message
	var err error
	if len(at) == 1 {
		m, err = u.commitMessage(int(n[0]))
	} else {
		m, err = u.message(n[0], n[1])
	}
	if err != nil {
		return nil, err
	}
	return m.Text, nil
}
