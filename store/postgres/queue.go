package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Enqueue keeps a message until a round takes it; see store.SessionStore.
func (s *Store) Enqueue(ctx context.Context, q store.QueuedMessage) (out store.QueuedMessage, err error) {
	value, err := encodeValue(q.Value)
	if err != nil {
		return out, fmt.Errorf("message to session %s: %w", q.Session, err)
	}
	err = s.write(ctx, "message to session "+q.Session, func(t *tx) error {
		out, err = t.enqueue(&q, value)
		return err
	})
	return out, err
}

func (t *tx) enqueue(q *store.QueuedMessage, value []byte) (out store.QueuedMessage, err error) {
	x, err := t.lockSession(q.Session)
	if err != nil {
		return out, err
	}
	out, err = findQueued(t, q.ID)
	if err == nil && out.Session != q.Session {
		err = fmt.Errorf("%s: %w, to session %s", q.ID, store.ErrExists, out.Session)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return out, err
	}
	if q.OnlyIfIdle {
		idle := false
		err := t.queryRow([]any{&idle}, `SELECT NOT EXISTS (SELECT 1 FROM queue WHERE session = $1 AND run IS NULL)
			AND NOT EXISTS (SELECT 1 FROM run WHERE num = $2 AND status <> 'paused')`, x.num, x.holder)
		if err == nil && !idle {
			err = store.ErrBusy
		}
		if err != nil {
			return out, err
		}
	}
	n, err := t.insertQueued(x, q, value)
	if err == nil && n == 0 { // another transaction has sent the same id to another session meanwhile
		err = fmt.Errorf("%s: %w", q.ID, store.ErrExists)
	}
	out = *q
	out.At, out.OnlyIfIdle, out.TakenBy = time.UnixMilli(q.At.UnixMilli()), false, ""
	return out, err
}

// insertQueued inserts a message to a session; no row if its id is known.
func (t *tx) insertQueued(x *sessionRow, q *store.QueuedMessage, value []byte) (int64, error) {
	key, err := t.dataKey(x.user)
	if err != nil {
		return 0, err
	}
	return t.exec("INSERT INTO queue (id, session, value, sender, at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
		text(q.ID), x.num, t.s.encode(key, value), text(q.By), q.At.UnixMilli())
}

const selectQueued = `SELECT q.id, s.id, q.value, q.sender, q.at, coalesce((SELECT id FROM run r WHERE r.num = q.run), '')
	FROM queue q JOIN session s ON s.num = q.session`

// findQueued reads a message by its id; pgx.ErrNoRows.
func findQueued(from rowSource, id string) (store.QueuedMessage, error) {
	return oneQueued(from, "q.id = $1", text(id))
}

func oneQueued(from rowSource, where string, arg any) (q store.QueuedMessage, err error) {
	var value []byte
	var at int64
	err = from.queryRow([]any{into(&q.ID), into(&q.Session), &value, into(&q.By), &at, into(&q.TakenBy)}, selectQueued+" WHERE "+where, arg)
	if err != nil {
		return store.QueuedMessage{}, err
	}
	q.At = time.UnixMilli(at)
	if value != nil {
		q.Value, err = engine.DecodeValue(value)
	}
	return q, err
}

// Queue returns the messages that wait, in order; store.ErrNotFound.
func (s *Store) Queue(ctx context.Context, id string) ([]store.QueuedMessage, error) {
	var num int64
	if err := s.queryRow(ctx, []any{&num}, "SELECT num FROM session WHERE id = $1", text(id)); err != nil {
		return nil, s.wrap("session "+id, err)
	}
	out := []store.QueuedMessage{}
	err := s.query(ctx, func(row pgx.Row) error {
		var q store.QueuedMessage
		var value []byte
		var at int64
		err := row.Scan(into(&q.ID), into(&q.Session), &value, into(&q.By), &at, into(&q.TakenBy))
		if err == nil && value != nil {
			q.Value, err = engine.DecodeValue(value)
		}
		q.At = time.UnixMilli(at)
		out = append(out, q)
		return err
	}, selectQueued+" WHERE q.session = $1 AND q.run IS NULL ORDER BY q.num", num)
	if err != nil {
		return nil, s.wrap("queue of session "+id, err)
	}
	return out, nil
}

// NextQueued returns the first message that waits; store.ErrNotFound.
func (s *Store) NextQueued(ctx context.Context, id string) (store.QueuedMessage, error) {
	q, err := oneQueued(reader{s, ctx}, "s.id = $1 AND q.run IS NULL ORDER BY q.num LIMIT 1", text(id))
	return q, s.wrap("queue of session "+id, err)
}

// FindQueued returns a message that waits or was taken; store.ErrNotFound.
func (s *Store) FindQueued(ctx context.Context, id string) (store.QueuedMessage, error) {
	q, err := findQueued(reader{s, ctx}, id)
	return q, s.wrap("message "+id, err)
}

// NotQueued returns those of the ids whose messages do not wait.
func (s *Store) NotQueued(ctx context.Context, ids []string) ([]string, error) {
	return s.queryTexts(ctx, "look for messages that wait", `SELECT u.id FROM unnest($1::text[]) WITH ORDINALITY AS u (id, n)
		WHERE NOT EXISTS (SELECT 1 FROM queue q WHERE q.id = u.id COLLATE "C" AND q.run IS NULL) ORDER BY u.n`, escapeTexts(ids))
}

// RemoveQueued deletes a message that waits; store.ErrNotFound.
func (s *Store) RemoveQueued(ctx context.Context, id string) error {
	n, err := s.exec(ctx, "remove message "+id, "DELETE FROM queue WHERE id = $1 AND run IS NULL", text(id))
	return requireRow("message "+id+" in a queue", n, err)
}

// RefuseQueued deletes a message that waits if the session is as the caller read it; see
// store.SessionStore.
func (s *Store) RefuseQueued(ctx context.Context, id, holder string, commits int64) error {
	return s.write(ctx, "refuse message "+id, func(t *tx) error {
		q, err := findQueued(t, id)
		if err == nil {
			_, err = t.lockSession(q.Session)
		}
		if err == nil {
			q, err = findQueued(t, id)
		}
		if err == nil && q.TakenBy != "" || errors.Is(err, pgx.ErrNoRows) {
			return store.ErrNotQueued
		}
		if err != nil {
			return err
		}
		var same bool
		err = t.queryRow([]any{&same}, "SELECT EXISTS (SELECT 1 FROM session s JOIN run r ON r.num = s.holder WHERE s.id = $1 AND r.id = $2 AND r.commits = $3)",
			text(q.Session), text(holder), commits)
		if err == nil && !same {
			err = store.ErrSessionAdvanced
		}
		t.queue("DELETE FROM queue WHERE id = $1", text(id))
		return err
	})
}

// RoundMessage returns the message that started a round; see store.SessionStore.
func (s *Store) RoundMessage(ctx context.Context, run string) (store.QueuedMessage, error) {
	q, err := oneQueued(reader{s, ctx}, "q.run = (SELECT num FROM run WHERE id = $1) ORDER BY q.num LIMIT 1", text(run))
	return q, s.wrap("message of run "+run, err)
}
