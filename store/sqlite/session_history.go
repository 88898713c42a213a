package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/store"
)

// SessionMessages returns the messages of a session's history at positions from
// up to to, to not included. What it costs follows from how many these are.
func (s *Store) SessionMessages(ctx context.Context, id string, from, to int) ([]store.SessionMessage, error) {
	out := []store.SessionMessage{}
	num, parts, err := s.sessionStretches(ctx, id, from, to)
	if err == nil && len(parts) > 0 {
		out, err = s.readHistory(ctx, num, parts)
	}
	if err != nil {
		return nil, s.wrap("messages of session "+id, err)
	}
	return out, nil
}

// SessionHistory is SessionMessages without who said them when, which takes half
// the time.
func (s *Store) SessionHistory(ctx context.Context, id string, from, to int) ([]convo.Message, error) {
	out := []convo.Message{}
	_, parts, err := s.sessionStretches(ctx, id, from, to)
	if err == nil && len(parts) > 0 {
		out, err = s.messages(ctx, parts)
	}
	if err != nil {
		return nil, s.wrap("history of session "+id, err)
	}
	return out, nil
}

// sessionStretches finds a session's number and where its messages lie, the last
// first.
func (s *Store) sessionStretches(ctx context.Context, id string, from, to int) (num int64, parts []stretch, err error) {
	h := contextRef{length: maxNumber}
	err = s.reader.QueryRowContext(ctx, `SELECT s.num, c.id, c.start, coalesce(c.source, 0), coalesce(c.kind, '')
		FROM session s JOIN context c ON c.id = s.context WHERE s.id = ?`, id).Scan(&num, &h.id, &h.start, &h.source, &h.kind)
	if err != nil {
		return 0, nil, err
	}
	l := lineage{ctx, s.reader}
	if h.length, err = l.endPosition(h); err != nil {
		return 0, nil, err
	}
	parts, err = l.stretches(h, int64(max(from, 0)), int64(min(to, maxNumber)))
	return num, parts, err
}

// readHistory reads stretches of the history of the session of that number.
func (s *Store) readHistory(ctx context.Context, num int64, parts []stretch) (out []store.SessionMessage, err error) {
	messages, err := s.messages(ctx, parts)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Backward(parts) {
		if out, err = s.appendHistoryRows(ctx, out, num, p); err != nil {
			return nil, err
		}
	}
	for i := range out {
		out[i].Message = messages[i]
	}
	return out, nil
}

// appendHistoryRows appends a message without its content for each position of a stretch of
// some session's history, as the session of that number shows it.
func (s *Store) appendHistoryRows(ctx context.Context, out []store.SessionMessage, session int64, p stretch) ([]store.SessionMessage, error) {
	err := s.query(ctx, func(row scanner) error {
		var m store.SessionMessage
		var owner, at int64
		var status string
		err := row.Scan(&m.Position, &m.Run, &owner, &m.Round, &status, &at, &m.Tokens)
		if err != nil {
			return err
		}
		if owner != session {
			m.Round = 0
		}
		m.At = time.UnixMilli(at)
		m.Status, err = parseStatus(status)
		out = append(out, m)
		return err
	}, `SELECT m.id & 0xffffffff, r.id, r.session, r.round, r.status, r.created + c.at, coalesce(m.tokens, 0)
		FROM message m JOIN run r ON r.num = (SELECT n.num FROM run n WHERE n.session = (SELECT num FROM session WHERE context = ?1)
			AND n.first <= m.id & 0xffffffff ORDER BY n.first DESC, n.num DESC LIMIT 1)
		JOIN run_commit c ON c.id = (r.num << 32) + m.seq
		WHERE m.id >= ?2 AND m.id < ?3 ORDER BY m.id`, p.context, messageID(p.context, p.from), messageID(p.context, p.to))
	return out, err
}
