package sqlite

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Sizes from which something is stored apart, in bytes of JSON.
const (
	smallText  = 8    // shorter texts are never referred to
	sharedText = 32   // texts from here on are values, found again shortly after
	largeValue = 1024 // anything from here on is a value with a digest
)

// packer turns the events of one commit into rows. In its JSON
//
//	{"$context": id}       is a handle
//	{"$v": id}             is the value of that id
//	{"$m": n}              is the content of message n of this commit, from 0
//	{"$m": [context, pos]} is the content of that message
//	{"$": {...}}           is an object with the one key shown, which begins with "$"
type packer struct {
	w   *writeTx
	run *runState
	seq int64

	// detached is set where what is encoded is read without the commit, so that
	// a reference must not count from its first message.
	detached bool

	text       []byte
	values     []valueRow
	messages   []messageRow
	contexts   []contextRow
	spans      []int64 // context, position, count, ...
	mainFolded bool    // the run's main context has no row
	failed     error   // of the database
}

type valueRow struct {
	id     int64
	digest []byte // nil for what is only found shortly after
	body   string
}

type messageRow struct {
	id                 int64
	role               any
	content, key, rest any
	value              int64
	message            *convo.Message // for rest, which is encoded last
}

type contextRow struct {
	id, start, source int64
	kind, name        string
}

// pack fills the packer. It writes nothing; refused is an event that cannot be
// stored.
func (p *packer) pack(events []engine.Event) (refused, failed error) {
	for _, e := range events {
		for i, changes := 0, engine.ContextChanges(e); i < len(changes); i++ {
			if err := p.placeMessages(&changes[i]); err != nil {
				return err, p.failed
			}
		}
	}
	codec := engine.Codec{AppendValue: p.appendValue, AppendBody: p.appendBody}
	var err error
	if p.text, err = codec.Encode(make([]byte, 0, 1024), events); err != nil {
		return err, p.failed
	}
	p.detached = true
	for i := range p.messages {
		m := &p.messages[i]
		if m.rest, err = p.encodeRest(m.message); err != nil {
			return err, p.failed
		}
	}
	return nil, nil
}

// placeMessages gives positions to the messages of a change. All of a commit are
// placed before anything is encoded, since results and outputs repeat them.
func (p *packer) placeMessages(ch *engine.ContextChange) error {
	body, err := store.ContextChangeOf(ch.Body)
	if err != nil {
		return err
	}
	var list []convo.Message
	if body != nil {
		list = body.Append
	}
	if len(list) == 0 && ch.At == 0 && ch.Session == "" && (!ch.Create || p.run.base.run == 0) {
		return nil
	}
	c, err := p.context(ch)
	if err != nil {
		return err
	}
	for i := range list {
		if err := p.placeMessage(c, &list[i]); err != nil {
			return err
		}
		c.next++
	}
	if n := int64(len(list)); n > 0 {
		p.spans = append(p.spans, c.id, c.next-n, n)
	}
	return nil
}

func (p *packer) placeMessage(c *contextState, m *convo.Message) error {
	row := messageRow{id: messageID(c.id, c.next), role: packRole(m.Role), key: nullText(p.run.round.packKey(c.id, m.ID)), message: m}
	quoted := engine.AppendString(nil, m.Text)
	var at valuePlace
	if len(quoted) >= smallText {
		d := p.run.digest(quoted)
		at, _ = p.run.recent.get(d)
		switch {
		case at.value == 0 && len(quoted) >= largeValue:
			var err error
			if at, err = p.storeValue(quoted, d); err != nil {
				return err
			}
		case at.value == 0:
			p.run.recent.put(d, valuePlace{context: c.id, position: c.next, seq: p.seq, index: len(p.messages)})
		}
	}
	if row.value = at.value; row.value == 0 {
		row.content = utf8Text(quoted, m.Text)
	}
	p.messages = append(p.messages, row)
	return nil
}

// utf8Text is s as its JSON has it.
func utf8Text(quoted []byte, s string) string {
	if len(quoted) == len(s)+2 {
		return s
	}
	t, _ := engine.Unquote(quoted)
	return t
}

// countTokens returns the number of tokens of a session's message, nil if no counter is set.
func (p *packer) countTokens(m *convo.Message) any {
	count := p.w.s.tokens.Load()
	if p.run.round.session == 0 || count == nil {
		return nil
	}
	return int64((*count)(*m))
}

// insert writes the rows that go with the commit.
func (p *packer) insert() error {
	st := &p.w.s.stmts
	if p.mainFolded {
		if err := p.w.setFolded(p.run, foldedMain); err != nil {
			return err
		}
	}
	for i := range p.contexts {
		c := &p.contexts[i]
		if _, err := st.insertContext.ExecContext(p.w.ctx, c.id, p.run.num, c.name, c.start, nullInt(c.source), nullText(c.kind)); err != nil {
			return err
		}
	}
	for i := range p.values {
		if err := p.insertValue(&p.values[i]); err != nil {
			return err
		}
	}
	for i := range p.messages {
		m := &p.messages[i]
		if _, err := st.insertMessage.ExecContext(p.w.ctx, m.id, m.role, m.content, nullInt(m.value), m.key, m.rest, p.seq, p.countTokens(m.message)); err != nil {
			return err
		}
		if last := m.id + 1; last%pagePositions == 0 {
			if err := p.w.writePage(m.id/rowsPerParent, m.id%rowsPerParent/pagePositions); err != nil {
				return err
			}
		}
	}
	return nil
}

// spansColumn returns the column that says which messages the commit appended.
func (p *packer) spansColumn() any {
	if len(p.spans) == 0 {
		return nil
	}
	spans := p.spans
	if main, first := p.run.mainRange(); len(spans) == 3 && spans[0] == main && spans[1] >= first {
		spans = []int64{spans[1] - first, spans[2]}
		if spans[1] == messagesPerTurn {
			spans = spans[:1]
		}
	}
	var b []byte
	for i, n := range spans {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(b)
}

func (p *packer) appendValue(b []byte, v engine.Value) ([]byte, error) {
	start := len(b)
	var err error
	switch t := v.(type) {
	case nil, bool, int64, float64, int, engine.Handle:
		return engine.AppendValue(b, v)
	case string:
		return p.appendText(b, t)
	case []any:
		b, err = p.appendList(b, t)
	case map[string]any:
		b, err = p.appendObject(b, t)
	case engine.Values:
		b, err = p.appendObject(b, t.Map())
	default:
		// A type of its own: what its JSON says.
		if b, err = engine.AppendValue(b, v); err != nil {
			return nil, err
		}
		plain, err := engine.DecodeValue(b[start:])
		if err != nil {
			return nil, err
		}
		return p.appendValue(b[:start], plain)
	}
	if err != nil || len(b)-start < largeValue {
		return b, err
	}
	if !p.detached && bytes.Contains(b[start:], []byte(`{"$m":`)) {
		p.detached = true
		b, err = p.appendValue(b[:start], v)
		p.detached = false
		return b, err
	}
	return p.intern(b, start, p.run.digest(b[start:]))
}

func (p *packer) appendList(b []byte, l []any) ([]byte, error) {
	b = append(b, '[')
	for i, e := range l {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = p.appendValue(b, e); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func (p *packer) appendObject(b []byte, m map[string]any) ([]byte, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	escape := len(keys) == 1 && len(keys[0]) > 0 && keys[0][0] == '$'
	if escape {
		b = append(b, `{"$":`...)
	}
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(engine.AppendString(b, k), ':')
		var err error
		if b, err = p.appendValue(b, m[k]); err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
	}
	if escape {
		b = append(b, '}')
	}
	return append(b, '}'), nil
}

// appendText appends a text, or a reference to where it is stored.
func (p *packer) appendText(b []byte, s string) ([]byte, error) {
	start := len(b)
	if len(s) < largeText {
		return p.shareText(engine.AppendString(b, s), start)
	}
	place := placeOf(s)
	if d, ok := p.run.large[place]; ok {
		if at, ok := p.run.recent.get(d); ok {
			return p.appendReference(b, at), nil
		}
	}
	b = engine.AppendString(b, s)
	d := p.run.digest(b[start:])
	p.run.large.put(place, d)
	return p.intern(b, start, d)
}

// shareText replaces the text at b[start:] by a reference where that is worth
// it.
func (p *packer) shareText(b []byte, start int) ([]byte, error) {
	n := len(b) - start
	if n < smallText {
		return b, nil
	}
	d := p.run.digest(b[start:])
	if at, ok := p.run.recent.get(d); ok {
		return p.appendReference(b[:start], at), nil
	}
	if n < sharedText {
		return b, nil
	}
	return p.intern(b, start, d)
}

func (p *packer) appendReference(b []byte, at valuePlace) []byte {
	switch {
	case at.value != 0:
		b = strconv.AppendInt(append(b, `{"$v":`...), at.value, 10)
	case at.seq == p.seq && !p.detached:
		b = strconv.AppendInt(append(b, `{"$m":`...), int64(at.index), 10)
	default:
		b = strconv.AppendInt(append(b, `{"$m":[`...), at.context, 10)
		b = strconv.AppendInt(append(b, ','), at.position, 10)
		b = append(b, ']')
	}
	return append(b, '}')
}

// intern stores the JSON at b[start:] as a value and replaces it by a
// reference.
func (p *packer) intern(b []byte, start int, d digest) ([]byte, error) {
	at, known := p.run.recent.get(d)
	if !known {
		var err error
		if at, err = p.storeValue(b[start:], d); err != nil {
			return nil, err
		}
	}
	return p.appendReference(b[:start], at), nil
}

// storeValue stores JSON as a value, or finds it where it is stored.
func (p *packer) storeValue(body []byte, d digest) (at valuePlace, err error) {
	defer func() {
		if p.failed = err; err == nil {
			p.run.recent.put(d, at)
		}
	}()
	row := valueRow{body: string(body)}
	if len(body) >= largeValue {
		row.digest = d[:]
		for i := range p.values {
			if bytes.Equal(p.values[i].digest, row.digest) {
				return valuePlace{value: p.values[i].id}, nil
			}
		}
		if at.value, err = p.w.findValue(p.run.root, d); err != nil || at.value != 0 {
			return at, err
		}
	}
	row.id, err = p.w.nextValue()
	p.values = append(p.values, row)
	return valuePlace{value: row.id}, err
}

// A value of more than wholeBody and at most splitBody bytes is stored in
// pieces, since one row would leave up to half of its page empty; eight pieces
// fill one.
const (
	wholeBody    = 1000
	splitBody    = 32 << 10
	partSize     = 500
	partsPerBody = 1 << 20
)

func (p *packer) insertValue(v *valueRow) error {
	st := &p.w.s.stmts
	var d any
	if v.digest != nil {
		d = v.digest
	}
	if len(v.body) <= wholeBody || len(v.body) > splitBody {
		_, err := st.insertValue.ExecContext(p.w.ctx, v.id, p.run.root, d, v.body)
		return err
	}
	if _, err := st.insertValue.ExecContext(p.w.ctx, v.id, p.run.root, d, nil); err != nil {
		return err
	}
	for n, rest := int64(0), v.body; rest != ""; n++ {
		end := min(partSize, len(rest))
		for end < len(rest) && !utf8.RuneStart(rest[end]) {
			end--
		}
		if _, err := st.insertPart.ExecContext(p.w.ctx, v.id*partsPerBody+n, rest[:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}
