package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// newContext is a row of context that a commit makes.
type newContext struct {
	id, start, source int64
	name, kind        string
}

const insertContext = "INSERT INTO context (id, run, name, start, source, kind) VALUES ($1, $2, $3, $4, $5, $6)"

// messageRows are the columns of rows of message.
type messageRows struct {
	context, position []int64
	start, length     []int32
	id, role          []string
	tokens            []int32
}

func (m *messageRows) add(context, position int64, at store.PayloadMessage, msg *convo.Message, tokens int) {
	m.context, m.position = append(m.context, context), append(m.position, position)
	m.start, m.length = append(m.start, int32(at.Start)), append(m.length, int32(at.End-at.Start))
	m.id, m.role = append(m.id, escapeText(msg.ID)), append(m.role, escapeText(string(msg.Role)))
	m.tokens = append(m.tokens, int32(tokens))
}

func (m *messageRows) queue(t *tx, run, seq int64) {
	t.queue(`INSERT INTO message (context, position, run, seq, start, length, id, role, tokens)
		SELECT u.context, u.position, $1, $2, u.start, u.length, u.id, u.role, u.tokens
		FROM unnest($3::bigint[], $4::bigint[], $5::integer[], $6::integer[], $7::text[], $8::text[], $9::integer[])
			AS u (context, position, start, length, id, role, tokens)`,
		run, seq, m.context, m.position, m.start, m.length, m.id, m.role, m.tokens)
}

// placeMessages finds the contexts and positions of the messages that the commit appends.
func (w *commitWriter) placeMessages() (refused, failed error) {
	w.next = map[string]contextState{}
	located := w.encoded.messages
	for _, e := range w.a.Commit.Events {
		for i, changes := 0, engine.ContextChanges(e); i < len(changes); i++ {
			ch := &changes[i]
			body, err := store.ContextChangeOf(ch.Body)
			if err != nil {
				return err, nil
			}
			if body == nil {
				body = &convo.Change{}
			}
			x, refused, failed := w.context(ch, len(body.Append) > 0)
			if refused != nil || failed != nil {
				return refused, failed
			}
			if located, failed = w.placeAppended(&x, ch.ID, body.Append, located); failed != nil {
				return nil, failed
			}
			if x.row != 0 {
				w.next[ch.ID] = x
			}
		}
	}
	return nil, nil
}

// placeAppended adds the rows of messages that a context gains. It returns the places in the
// payload that follow theirs.
func (w *commitWriter) placeAppended(x *contextState, id string, messages []convo.Message, located []store.PayloadMessage) ([]store.PayloadMessage, error) {
	for i := range messages {
		if len(located) == 0 || located[0].Context != id {
			return nil, fmt.Errorf("context %s: the payload and the events have different messages", id)
		}
		w.rows.add(x.messages, x.next, located[0], &messages[i], w.countTokens(*x, &messages[i]))
		located = located[1:]
		x.next++
	}
	return located, nil
}

// countTokens counts the tokens of a message to a session.
func (w *commitWriter) countTokens(x contextState, m *convo.Message) int {
	count := w.t.s.tokens.Load()
	if count == nil || w.session == nil || x.messages != w.session.context {
		return 0
	}
	return (*count)(*m)
}

// context returns the context of a change. One that is not there is made, unless it is the
// base's and the change adds no messages.
func (w *commitWriter) context(ch *engine.ContextChange, adds bool) (x contextState, refused, failed error) {
	if x, ok := w.next[ch.ID]; ok {
		return x, nil, nil
	}
	x, found, err := w.ownContext(ch.ID)
	if err != nil || found {
		return x, nil, err
	}
	c := newContext{name: ch.ID, start: int64(ch.At)}
	if refused, failed = w.findSource(ch, &c); refused != nil || failed != nil {
		return x, refused, failed
	}
	if c.kind == fromBase && !adds {
		return x, nil, nil
	}
	if c.id, failed = w.t.s.contexts.next(w.t); failed != nil {
		return x, nil, failed
	}
	w.contexts = append(w.contexts, c)
	x = contextState{row: c.id, messages: c.id, next: c.start}
	if c.kind == fromSession {
		x.messages = c.source
	}
	return x, nil, nil
}

// ownContext finds a context that the run itself has.
func (w *commitWriter) ownContext(name string) (x contextState, found bool, err error) {
	r := w.r
	if x, found = r.contexts[name]; found {
		return x, true, nil
	}
	if r.commits == r.base.seq {
		return x, false, nil // there is no commit of its own yet
	}
	h := contextRef{run: r.num}
	err = w.t.queryRow([]any{&h.id, &h.start, &h.source, &h.kind},
		"SELECT id, start, coalesce(source, 0), kind FROM context WHERE run = $1 AND name = $2", r.num, text(name))
	if errors.Is(err, pgx.ErrNoRows) {
		return x, false, nil
	}
	if err != nil {
		return x, false, err
	}
	x = contextState{row: h.id, messages: h.messages()}
	x.next, err = lineage{w.t}.endOf(h)
	r.contexts[name] = x
	return x, true, err
}

// findSource finds what a new context continues.
func (w *commitWriter) findSource(ch *engine.ContextChange, c *newContext) (refused, failed error) {
	l := lineage{w.t}
	switch {
	case ch.Session != "":
		c.kind = fromSession
		c.source, refused = w.sessionSource(ch)
		return refused, nil
	case ch.Run != "":
		c.kind = fromRun
		c.source, refused, failed = w.sourceInRun(ch)
	case ch.Parent != "" && ch.At > 0:
		c.kind = fromLane
		c.source, failed = w.sourceInThisRun(ch.Parent)
	case !ch.Create && w.r.base.run != 0:
		var h contextRef
		h, failed = l.findContext(w.r.base.run, ch.ID, w.r.base.seq)
		if h.id != 0 {
			c.kind, c.source, c.start = fromBase, h.id, h.end
		}
	}
	if c.source == 0 {
		c.kind = ""
	}
	return refused, failed
}

// sourceInRun finds a context of another run, which has at least as many messages as the
// change says.
func (w *commitWriter) sourceInRun(ch *engine.ContextChange) (id int64, refused, failed error) {
	if ch.At == 0 {
		return 0, nil, nil
	}
	var num int64
	var h contextRef
	err := w.t.queryRow([]any{&num}, "SELECT coalesce((SELECT num FROM run WHERE id = $1), 0)", text(ch.Run))
	if err == nil && num != 0 {
		h, err = lineage{w.t}.findContext(num, ch.Parent, maxNumber)
	}
	if err != nil {
		return 0, nil, err
	}
	if h.id == 0 || h.end < int64(ch.At) {
		return 0, fmt.Errorf("context %s: %d messages of context %s in run %s: %w", ch.ID, ch.At, ch.Parent, ch.Run, store.ErrNotFound), nil
	}
	return h.id, nil, nil
}

// sourceInThisRun finds a context of this run, 0 if there is none.
func (w *commitWriter) sourceInThisRun(name string) (int64, error) {
	if x, ok := w.next[name]; ok && x.row != 0 {
		return x.row, nil
	}
	x, found, err := w.ownContext(name)
	if err != nil || found {
		return x.row, err
	}
	if w.r.base.run == 0 {
		return 0, nil
	}
	h, err := lineage{w.t}.findContext(w.r.base.run, name, w.r.base.seq)
	return h.id, err
}

// contextBlock is how many ids of contexts one value of the sequence stands for; the
// migration has the same number.
const contextBlock = 64

// idBlock hands out ids of contexts, which a process takes from the database in blocks.
type idBlock struct {
	mu         sync.Mutex // guards the following fields
	first, end int64
}

func (b *idBlock) next(t *tx) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == b.end {
		if err := t.queryRow([]any{&b.first}, "SELECT nextval('context_block')"); err != nil {
			return 0, err
		}
		b.end = b.first + contextBlock
	}
	b.first++
	return b.first - 1, nil
}

// contextOf finds the context with a name in a run, for reading.
func (s *Store) contextOf(ctx context.Context, run, name string) (lineage, contextRef, error) {
	l := lineage{reader{s, ctx}}
	num, err := s.number(ctx, run)
	if err != nil {
		return l, contextRef{}, err
	}
	h, err := l.findContext(num, name, maxNumber)
	return l, h, s.wrap("context "+name+" of run "+run, err)
}
