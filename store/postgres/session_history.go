package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/store"
)

// SessionMessages returns messages of a session's history; see store.SessionStore.
func (s *Store) SessionMessages(ctx context.Context, id string, from, to int) ([]store.SessionMessage, error) {
	num, parts, err := s.sessionStretches(ctx, id, from, to)
	out := []store.SessionMessage{}
	for _, p := range slices.Backward(parts) {
		if err == nil {
			out, err = s.appendHistory(ctx, out, num, p)
		}
	}
	if err != nil {
		return nil, s.wrap("messages of session "+id, err)
	}
	return out, nil
}

// SessionHistory returns the same messages without the rounds that added them.
func (s *Store) SessionHistory(ctx context.Context, id string, from, to int) ([]convo.Message, error) {
	_, parts, err := s.sessionStretches(ctx, id, from, to)
	out := []convo.Message{}
	if err == nil {
		out, err = s.messagesIn(ctx, parts)
	}
	if err != nil {
		return nil, s.wrap("history of session "+id, err)
	}
	return out, nil
}

// sessionStretches finds the number of a session and where its messages are, the last first.
func (s *Store) sessionStretches(ctx context.Context, id string, from, to int) (num int64, parts []stretch, err error) {
	var h contextRef
	err = s.queryRow(ctx, []any{&num, &h.id, &h.start, &h.source, &h.kind, &h.end}, `SELECT s.num, c.id, c.start, coalesce(c.source, 0), c.kind, s.length
		FROM session s JOIN context c ON c.id = s.context WHERE s.id = $1`, text(id))
	if err != nil {
		return 0, nil, err
	}
	parts, err = lineage{reader{s, ctx}}.stretches(h, int64(max(from, 0)), int64(to))
	return num, parts, err
}

// appendHistory appends the messages of a stretch of some session's history, as the session
// with a number shows them.
func (s *Store) appendHistory(ctx context.Context, out []store.SessionMessage, session int64, p stretch) ([]store.SessionMessage, error) {
	var found []messageBytes
	first := len(out)
	err := s.query(ctx, func(row pgx.Row) error {
		var m store.SessionMessage
		var b messageBytes
		var owner *int64
		var at int64
		var status string
		err := row.Scan(append([]any{&m.Position, into(&m.Run), &owner, &m.Round, &status, &at, &m.Tokens}, b.columns()...)...)
		if err != nil {
			return err
		}
		if owner == nil || *owner != session {
			m.Round = 0
		}
		m.At = time.UnixMilli(at)
		m.Status, err = parseStatus(status)
		out, found = append(out, m), append(found, b)
		return err
	}, `SELECT m.position, r.id, r.session, r.round, r.status, c.at, m.tokens, `+messageBytesColumns+`
		FROM message m JOIN run r ON r.num = m.run JOIN run_commit c ON c.run = m.run AND c.seq = m.seq
		WHERE m.context = $1 AND m.position >= $2 AND m.position < $3 ORDER BY m.position`, p.context, p.from, p.to)
	if err == nil {
		err = s.cutEncoded(ctx, found)
	}
	for i := 0; i < len(found) && err == nil; i++ {
		out[first+i].Message, err = store.DecodePayloadMessage(found[i].data)
	}
	return out, err
}
