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

// changeFacts are all columns of a row of session_change.
type changeFacts struct {
	ID      int64   `json:"id"`
	Key     string  `json:"key"`
	Value   *string `json:"value"`
	Reducer string  `json:"reducer"`
	Round   int64   `json:"round"`
	Run     int64   `json:"run"`
	Sender  string  `json:"sender"`
	At      int64   `json:"at"`
}

const selectChangeFacts = `SELECT id, seal, id, key, value, coalesce(reducer, ''), round, coalesce(run, 0), coalesce(sender, ''), at FROM session_change`

func (f *changeFacts) columns() []any {
	return []any{&f.ID, &f.Key, &f.Value, &f.Reducer, &f.Round, &f.Run, &f.Sender, &f.At}
}

// currentState selects the newest change of each key of a session up to a round. It reads
// one entry of the index for each key, however long the history is.
const currentState = `WITH RECURSIVE k (key) AS (
		SELECT min(key) FROM session_change WHERE id >> 32 = ?1
		UNION ALL
		SELECT (SELECT min(key) FROM session_change WHERE id >> 32 = ?1 AND key > k.key) FROM k WHERE k.key IS NOT NULL
	)
	SELECT c.id, c.key, c.value, coalesce(c.reducer, ''), c.round, coalesce(c.run, 0), coalesce(c.sender, ''), c.at, coalesce(r.id, '')
	FROM k JOIN session_change c ON c.id = (SELECT max(id) FROM session_change WHERE id >> 32 = ?1 AND key = k.key AND round <= ?2)
	LEFT JOIN run_row r ON r.num = c.run
	WHERE k.key IS NOT NULL AND c.value IS NOT NULL ORDER BY c.key`

// storedValue is a value of a session's state with the id of the run that wrote it.
type storedValue struct {
	changeFacts
	run string
}

// sessionState returns the values of a session as of the end of a round.
func (l lineage) sessionState(num, round int64) (out []storedValue, err error) {
	err = l.query(func(row scanner) error {
		var v storedValue
		err := row.Scan(append(v.columns(), &v.run)...)
		out = append(out, v)
		return err
	}, currentState, num, round)
	return out, err
}

// SessionState returns the values that a session keeps between rounds, sorted by key;
// store.ErrNotFound if there is no such session.
func (s *Store) SessionState(ctx context.Context, id string) ([]store.StateValue, error) {
	var num int64
	err := s.reader.QueryRowContext(ctx, "SELECT num FROM session WHERE id = ?", id).Scan(&num)
	if err != nil {
		return nil, s.wrap("session "+id, err)
	}
	rows, err := lineage{ctx, s.reader}.sessionState(num, maxNumber)
	if err != nil {
		return nil, s.wrap("state of session "+id, err)
	}
	out := make([]store.StateValue, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		v := store.StateValue{Key: r.Key, Reducer: r.Reducer, Round: int(r.Round), Run: r.run, By: r.Sender, At: time.UnixMilli(r.At)}
		if v.Value, err = engine.DecodeValue([]byte(*r.Value)); err != nil {
			return nil, fmt.Errorf("state of session %s: key %q: %w: %w", id, r.Key, store.ErrCorrupt, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// SetSessionState changes the values that a session keeps, all or none. The error is
// store.ErrNotFound if there is no such session, and store.ErrBusy if a round of it has not
// ended.
func (s *Store) SetSessionState(ctx context.Context, e store.StateEdit) error {
	return s.write(ctx, "set the state of session "+e.Session, func(ctx context.Context) error {
		w := writeTx{s: s, ctx: ctx}
		x, err := w.session("id", e.Session)
		if err != nil {
			return err
		}
		if x.holder != 0 {
			return fmt.Errorf("session %s has a round that has not ended: %w", e.Session, store.ErrBusy)
		}
		return w.changeSessionState(x.num, changeFacts{Round: x.rounds, Sender: e.By, At: e.At.UnixMilli()}, e.Changes)
	})
}

// changeSessionState adds changes to the state of a session; origin says what all of them
// have in common.
func (w *writeTx) changeSessionState(session int64, origin changeFacts, changes []engine.SessionChange) error {
	rows := make([]changeFacts, 0, len(changes))
	for i := range changes {
		c := origin
		c.Key, c.Reducer = changes[i].Key, changes[i].Reducer
		if !changes[i].Delete {
			value, err := encodeValue(changes[i].Value)
			if err != nil {
				return fmt.Errorf("state key %q: %w", c.Key, err)
			}
			c.Value = &value
		}
		rows = append(rows, c)
	}
	return w.insertSessionChanges(session, rows)
}

// insertSessionChanges numbers changes and keeps them.
func (w *writeTx) insertSessionChanges(session int64, rows []changeFacts) error {
	if len(rows) == 0 {
		return nil
	}
	var last int64
	if err := w.prepared().QueryRowContext(w.ctx, "SELECT coalesce(changes, 0) FROM session WHERE num = ?", session).Scan(&last); err != nil {
		return err
	}
	for i := range rows {
		last++
		c := &rows[i]
		c.ID = session*rowsPerParent + last
		seal, err := sealOf(c)
		if err != nil {
			return err
		}
		if _, err := w.prepared().ExecContext(w.ctx,
			"INSERT INTO session_change (id, key, value, reducer, round, run, sender, at, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			c.ID, c.Key, c.Value, nullText(c.Reducer), c.Round, nullInt(c.Run), nullText(c.Sender), c.At, seal); err != nil {
			return err
		}
	}
	_, err := w.prepared().ExecContext(w.ctx, "UPDATE session SET changes = ? WHERE num = ?", last, session)
	return err
}

// inheritState gives a new session the state that its parent had at the last end of a round
// that is not behind a position.
func (w *writeTx) inheritState(id, parent string, at int64, now time.Time) error {
	x, err := w.session("id", parent)
	if err != nil {
		return err
	}
	num, round, err := w.roundBoundary(&x, at)
	if err != nil {
		return err
	}
	values, err := w.lineage().sessionState(num, round)
	if err != nil || len(values) == 0 {
		return err
	}
	var session int64
	if err := w.prepared().QueryRowContext(w.ctx, "SELECT num FROM session WHERE id = ?", id).Scan(&session); err != nil {
		return err
	}
	rows := make([]changeFacts, len(values))
	for i := range values {
		rows[i] = changeFacts{Key: values[i].Key, Value: values[i].Value, Reducer: values[i].Reducer, Sender: values[i].Sender, At: now.UnixMilli()}
	}
	return w.insertSessionChanges(session, rows)
}

// roundBoundary returns the session and the number of the last round that had ended at a
// position of the history of x. The session is one that x was forked from, directly or not,
// if the position is before the first of its own.
func (w *writeTx) roundBoundary(x *sessionState, at int64) (session, round int64, err error) {
	for at < x.start && x.parent != 0 {
		up, err := w.session("num", x.parent)
		if err != nil {
			return 0, 0, err
		}
		x = &up
	}
	if at >= x.length {
		return x.num, x.rounds, nil
	}
	err = w.prepared().QueryRowContext(w.ctx, "SELECT coalesce(max(round) - 1, 0) FROM run_row WHERE session = ? AND first <= ?", x.num, at).Scan(&round)
	return x.num, round, err
}

// wasSetSince reports whether the state of a session was changed by hand after a round of it
// had ended.
func (w *writeTx) wasSetSince(session, round int64) (bool, error) {
	var last int64
	var by sql.NullInt64
	err := w.prepared().QueryRowContext(w.ctx, "SELECT round, run FROM session_change WHERE id > ?1 << 32 AND id < (?1 + 1) << 32 ORDER BY id DESC LIMIT 1", session).Scan(&last, &by)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return last >= round && !by.Valid, err
}

// archivedState returns the changes of the state of a session that no round of it made: those
// before a round, or all of them.
func (s *Store) archivedState(ctx context.Context, id string, round int, all bool) (out []store.ArchivedState, err error) {
	err = s.query(ctx, func(row scanner) error {
		var a store.ArchivedState
		var at int64
		err := row.Scan(&a.Round, &a.Key, &a.Value, &a.Reducer, &a.By, &at)
		a.At = time.UnixMilli(at).UTC()
		out = append(out, a)
		return err
	}, `SELECT c.round, c.key, coalesce(c.value, ''), coalesce(c.reducer, ''), coalesce(c.sender, ''), c.at
		FROM session s JOIN session_change c ON c.id > s.num << 32 AND c.id < (s.num + 1) << 32
		WHERE s.id = ? AND c.run IS NULL AND (c.round < ? OR ?) ORDER BY c.id`, id, round, all)
	return out, err
}
