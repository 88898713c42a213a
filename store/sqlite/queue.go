package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Enqueue keeps a message to a session until a round takes it. One whose ID is
// known is not kept again: the first comes back, with its Run, and without its
// value once its round has begun. store.ErrNotFound if there is no such
// session. The error is store.ErrExists if the ID is that of a message to another,
// store.ErrBusy where q.IfFree does not hold.
func (s *Store) Enqueue(ctx context.Context, q store.QueuedMessage) (store.QueuedMessage, error) {
	value, err := encodeValue(q.Value)
	if err != nil {
		return store.QueuedMessage{}, fmt.Errorf("message to session %s: %w", q.Session, err)
	}
	var out store.QueuedMessage
	err = s.write(ctx, "message to session "+q.Session, func(ctx context.Context) error {
		w := writeTx{s: s, ctx: ctx}
		out, err = w.enqueue(&q, value)
		return err
	})
	return out, err
}

// enqueue inserts a message unless it is known, and returns what is kept of it.
func (w *writeTx) enqueue(q *store.QueuedMessage, value string) (out store.QueuedMessage, err error) {
	res, err := w.prepared().ExecContext(w.ctx, `INSERT INTO queue (id, session, value, sender, at)
		SELECT ?1, s.num, ?2, ?3, ?4 FROM session s WHERE s.id = ?5
		AND NOT EXISTS (SELECT 1 FROM run_row WHERE id = ?1 AND folded & ?6)
		AND NOT (?7 AND (EXISTS (SELECT 1 FROM queue WHERE session = s.num AND run IS NULL)
			OR EXISTS (SELECT 1 FROM run_row r WHERE r.num = s.holder AND r.status IS NOT ?8)))
		ON CONFLICT DO NOTHING`,
		q.ID, value, nullText(q.By), q.At.UnixMilli(), q.Session, foldedMessage, q.OnlyIfIdle, engine.Paused.String())
	if err != nil {
		return out, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		out = *q
		out.At, out.OnlyIfIdle, out.TakenBy = time.UnixMilli(q.At.UnixMilli()), false, ""
		return out, err
	}
	out, err = findQueued(w.ctx, w.prepared(), q.ID)
	if q.OnlyIfIdle && errors.Is(err, sql.ErrNoRows) { // it was not kept: there is no such session, or it is busy
		if _, err = w.session("id", q.Session); err == nil {
			err = store.ErrBusy
		}
	}
	if err == nil && out.Session != q.Session {
		err = fmt.Errorf("%s: %w, to session %s", q.ID, store.ErrExists, out.Session)
	}
	return out, err
}

const queuedColumns = `q.id, s.id, coalesce(q.value, ''), coalesce(q.sender, ''), q.at,
	coalesce((SELECT id FROM run_row r WHERE r.num = q.run), '')`

const selectQueued = "SELECT " + queuedColumns + " FROM queue q JOIN session s ON s.num = q.session"

// A message lies in the queue, and is folded into the row of its round with that
// round's first commit (see foldMessage). Both places are read by one statement:
// between two, that commit would make a message that is there look like none. ?1 is
// the id of the message or of the run, ?2 is foldedMessage.
const (
	selectFoldedMessage = ` FROM (
		SELECT r.id AS id, s.id, '', s.user, r.created, r.id, 0 AS place
			FROM run_row r JOIN session s ON s.num = r.session WHERE r.id = ?1 AND r.folded & ?2
		UNION ALL SELECT ` + queuedColumns + `, q.num FROM queue q JOIN session s ON s.num = q.session WHERE `
	selectAnyMessage = "SELECT *" + selectFoldedMessage + "q.id = ?1) LIMIT 1"
	selectRoundOf    = "SELECT *" + selectFoldedMessage + "q.run = (SELECT num FROM run_row WHERE id = ?1)) ORDER BY place LIMIT 1"
)

// findQueued reads a message by its id.
func findQueued(ctx context.Context, c querier, id string) (store.QueuedMessage, error) {
	return scanQueued(dropLastColumn{c.QueryRowContext(ctx, selectAnyMessage, id, foldedMessage)})
}

// dropLastColumn is a row whose last column is not wanted.
type dropLastColumn struct{ row scanner }

// Scan implements scanner.
func (p dropLastColumn) Scan(into ...any) error {
	var place int64
	return p.row.Scan(append(into, &place)...)
}

func scanQueued(row scanner) (q store.QueuedMessage, err error) {
	var value string
	var at int64
	if err := row.Scan(&q.ID, &q.Session, &value, &q.By, &at, &q.TakenBy); err != nil {
		return store.QueuedMessage{}, err
	}
	q.At = time.UnixMilli(at)
	if value != "" {
		q.Value, err = engine.DecodeValue([]byte(value))
	}
	return q, err
}

// Queue lists the messages that wait for a round of a session, the next first.
func (s *Store) Queue(ctx context.Context, id string) ([]store.QueuedMessage, error) {
	var num int64
	if err := s.reader.QueryRowContext(ctx, "SELECT num FROM session WHERE id = ?", id).Scan(&num); err != nil {
		return nil, s.wrap("session "+id, err)
	}
	out := []store.QueuedMessage{}
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

// NextQueued returns the message that waits first. The error is store.ErrNotFound if none
// waits.
func (s *Store) NextQueued(ctx context.Context, id string) (store.QueuedMessage, error) {
	q, err := scanQueued(s.reader.QueryRowContext(ctx,
		selectQueued+" WHERE s.id = ? AND q.run IS NULL ORDER BY q.num LIMIT 1", id))
	return q, s.wrap("queue of session "+id, err)
}

// RemoveQueued forgets a message that waits. The error is store.ErrNotFound if it does not.
func (s *Store) RemoveQueued(ctx context.Context, id string) error {
	n, err := s.exec(ctx, "unqueue message "+id, "DELETE FROM queue WHERE id = ? AND run IS NULL", id)
	return requireRow("message "+id+" in a queue", n, err)
}

// RefuseQueued takes a message back that waits and that the session, as its round stands,
// cannot take: holder, with so many commits, holds the session. store.ErrMoved where
// that has changed, so that the message may fit now. The error is store.ErrTaken if it does not
// wait.
func (s *Store) RefuseQueued(ctx context.Context, id, holder string, commits int64) error {
	return s.write(ctx, "refuse message "+id, func(ctx context.Context) error {
		q, err := findQueued(ctx, s.prepared(), id)
		if err == nil && q.TakenBy != "" || errors.Is(err, sql.ErrNoRows) {
			return store.ErrNotQueued
		}
		if err != nil {
			return err
		}
		var same bool
		err = s.prepared().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM session s JOIN run_row r ON r.num = s.holder
			WHERE s.id = ?1 AND r.id = ?2 AND ?3 = coalesce(
				(SELECT max(id) & 0xffffffff FROM run_commit WHERE id > r.num << 32 AND id < (r.num + 1) << 32), 0))`,
			q.Session, holder, commits).Scan(&same)
		if err == nil && !same {
			err = store.ErrSessionAdvanced
		}
		if err == nil {
			_, err = s.prepared().ExecContext(ctx, "DELETE FROM queue WHERE id = ?", id)
		}
		return err
	})
}

// NotQueued returns those of some messages that do not wait: rounds have taken them,
// or their senders have taken them back.
func (s *Store) NotQueued(ctx context.Context, ids []string) ([]string, error) {
	list, err := json.Marshal(ids)
	if err != nil || len(ids) == 0 {
		return []string{}, err
	}
	return s.queryTexts(ctx, "look for messages that wait",
		"SELECT j.value FROM json_each(?) j WHERE NOT EXISTS (SELECT 1 FROM queue q WHERE q.id = j.value AND q.run IS NULL)", string(list))
}

// firstNotQueued returns the first of some messages that does not wait, "" if all do.
func (w *writeTx) firstNotQueued(messages []string) (string, error) {
	for _, id := range messages {
		var waits bool
		err := w.prepared().QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM queue WHERE id = ? AND run IS NULL)", id).Scan(&waits)
		if err != nil || !waits {
			return id, err
		}
	}
	return "", nil
}

// removeConsumed takes the messages out of the queue and the inbox that a commit acts on.
// The values are in the journal.
func (w *writeTx) removeConsumed(a *store.Append) error {
	for _, id := range a.ConsumedMessages {
		_, err := w.prepared().ExecContext(w.ctx, `UPDATE queue SET value = NULL,
			run = (SELECT holder FROM session WHERE num = queue.session) WHERE id = ?`, id)
		if err != nil {
			return err
		}
	}
	if len(a.ConsumedPosts) == 0 {
		return nil
	}
	list, err := json.Marshal(a.ConsumedPosts)
	if err == nil {
		_, err = w.prepared().ExecContext(w.ctx, "DELETE FROM inbox WHERE id IN (SELECT value FROM json_each(?))", string(list))
	}
	return err
}

// RoundMessage returns the message that began a round; its value is there until
// the round's first commit. The error is store.ErrNotFound if the run is no round.
func (s *Store) RoundMessage(ctx context.Context, run string) (store.QueuedMessage, error) {
	q, err := scanQueued(dropLastColumn{s.reader.QueryRowContext(ctx, selectRoundOf, run, foldedMessage)})
	return q, s.wrap("message of run "+run, err)
}
