package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Enqueue keeps a message to a session until a round takes it. One whose ID is
// known is not kept again: the first comes back, with its Run, and without its
// value once its round has begun. store.ErrNotFound where there is no such
// session, store.ErrExists where the ID is that of a message to another.
func (s *Store) Enqueue(ctx context.Context, q store.Queued) (store.Queued, error) {
	value, err := encodeValue(q.Value)
	if err != nil {
		return store.Queued{}, fmt.Errorf("message to session %s: %w", q.Session, err)
	}
	var out store.Queued
	err = s.write(ctx, "message to session "+q.Session, func(ctx context.Context) error {
		res, err := s.conn.ExecContext(ctx, `INSERT INTO queue (id, session, value, sender, at)
			SELECT ?1, num, ?2, ?3, ?4 FROM session WHERE id = ?5
			AND NOT EXISTS (SELECT 1 FROM run_row WHERE id = ?1 AND folded & ?6) ON CONFLICT DO NOTHING`,
			q.ID, value, nullText(q.By), q.At.UnixMilli(), q.Session, foldedMessage)
		if err != nil {
			return err
		}
		if _, err := res.RowsAffected(); err != nil {
			return err
		}
		if out, err = findQueued(ctx, s.conn, q.ID); err != nil {
			return err
		}
		if out.Session != q.Session {
			return fmt.Errorf("%s: %w, to session %s", q.ID, store.ErrExists, out.Session)
		}
		return nil
	})
	return out, err
}

const selectQueued = `SELECT q.id, s.id, coalesce(q.value, ''), coalesce(q.sender, ''), q.at,
	coalesce((SELECT id FROM run r WHERE r.num = q.run), '') FROM queue q JOIN session s ON s.num = q.session`

// selectFolded reads a message that is kept as the round which it began alone.
const selectFolded = "SELECT r.id, s.id, '', s.user, r.created, r.id FROM run_row r JOIN session s ON s.num = r.session WHERE r.id = ? AND r.folded & ?"

// findQueued reads a message by its id.
func findQueued(ctx context.Context, c querier, id string) (store.Queued, error) {
	q, err := scanQueued(c.QueryRowContext(ctx, selectQueued+" WHERE q.id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return scanQueued(c.QueryRowContext(ctx, selectFolded, id, foldedMessage))
	}
	return q, err
}

func scanQueued(row scanner) (q store.Queued, err error) {
	var value string
	var at int64
	if err := row.Scan(&q.ID, &q.Session, &value, &q.By, &at, &q.Run); err != nil {
		return store.Queued{}, err
	}
	q.At = time.UnixMilli(at)
	if value != "" {
		q.Value, err = engine.DecodeValue([]byte(value))
	}
	return q, err
}

// Queue lists the messages that wait for a round of a session, the next first.
func (s *Store) Queue(ctx context.Context, id string) ([]store.Queued, error) {
	var num int64
	if err := s.reader.QueryRowContext(ctx, "SELECT num FROM session WHERE id = ?", id).Scan(&num); err != nil {
		return nil, s.wrap("session "+id, err)
	}
	out := []store.Queued{}
	err := s.query(ctx, func(row scanner) error {
		q, err := scanQueued(row)
		out = append(out, q)
		return err
	}, selectQueued+" WHERE q.session = ? AND q.run IS NULL ORDER BY q.num", num)
	if err != nil {
		return nil, s.wrap("queue of session "+id, err)
	}
	return out, nil
}

// NextQueued returns the message that waits first; store.ErrNotFound where none
// waits.
func (s *Store) NextQueued(ctx context.Context, id string) (store.Queued, error) {
	q, err := scanQueued(s.reader.QueryRowContext(ctx,
		selectQueued+" WHERE s.id = ? AND q.run IS NULL ORDER BY q.num LIMIT 1", id))
	return q, s.wrap("queue of session "+id, err)
}

// Unqueue forgets a message that waits; store.ErrNotFound where it does not.
func (s *Store) Unqueue(ctx context.Context, id string) error {
	n, err := s.exec(ctx, "unqueue message "+id, "DELETE FROM queue WHERE id = ? AND run IS NULL", id)
	return found("message "+id+" in a queue", n, err)
}

// RoundMessage returns the message that began a round; its value is there until
// the round's first commit. store.ErrNotFound where the run is no round.
func (s *Store) RoundMessage(ctx context.Context, run string) (store.Queued, error) {
	q, err := scanQueued(s.reader.QueryRowContext(ctx, selectFolded, run, foldedMessage))
	if !errors.Is(err, sql.ErrNoRows) {
		return q, s.wrap("message of run "+run, err)
	}
	q, err = scanQueued(s.reader.QueryRowContext(ctx, selectQueued+" WHERE q.run = (SELECT num FROM run WHERE id = ?) ORDER BY q.num LIMIT 1", run))
	return q, s.wrap("message of run "+run, err)
}
