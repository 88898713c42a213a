package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// stateOrigin is what the changes of a session's state have in common. run is 0 if no round
// made them.
type stateOrigin struct {
	round, run, at int64
	sender         string
}

// storedValue is a value of a session's state.
type storedValue struct {
	key, reducer, run, sender string
	value                     []byte
	round, at                 int64
}

// stateAt reads the values of a session as of the end of a round, sorted by key.
func stateAt(q rowSource, session, round int64) (out []storedValue, err error) {
	err = q.query(func(row pgx.Row) error {
		var v storedValue
		err := row.Scan(into(&v.key), &v.value, into(&v.reducer), &v.round, into(&v.run), into(&v.sender), &v.at)
		out = append(out, v)
		return err
	}, `SELECT c.key, c.value, c.reducer, c.round, coalesce(r.id, ''), c.sender, c.at FROM (
			SELECT DISTINCT ON (key) * FROM session_change WHERE session = $1 AND round <= $2 ORDER BY key, num DESC) c
		LEFT JOIN run r ON r.num = c.run WHERE c.value IS NOT NULL ORDER BY c.key`, session, round)
	return out, err
}

// SessionState returns the values that a session keeps between rounds; see
// store.SessionStore.
func (s *Store) SessionState(ctx context.Context, id string) ([]store.StateValue, error) {
	var num int64
	if err := s.queryRow(ctx, []any{&num}, "SELECT num FROM session WHERE id = $1", text(id)); err != nil {
		return nil, s.wrap("session "+id, err)
	}
	rows, err := stateAt(reader{s, ctx}, num, maxNumber)
	if err != nil {
		return nil, s.wrap("state of session "+id, err)
	}
	out := make([]store.StateValue, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		v := store.StateValue{Key: r.key, Reducer: r.reducer, Round: int(r.round), Run: r.run, By: r.sender, At: time.UnixMilli(r.at)}
		if v.Value, err = engine.DecodeValue(r.value); err != nil {
			return nil, fmt.Errorf("state of session %s: key %q: %w: %w", id, r.key, store.ErrCorrupt, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// SetSessionState changes the values that a session keeps, all or none; see
// store.SessionStore.
func (s *Store) SetSessionState(ctx context.Context, e store.StateEdit) error {
	return s.write(ctx, "set the state of session "+e.Session, func(t *tx) error {
		x, err := t.lockSession(e.Session)
		if err != nil {
			return err
		}
		if x.holder != 0 {
			return fmt.Errorf("session %s has a round that has not ended: %w", e.Session, store.ErrBusy)
		}
		return t.changeState(x, stateOrigin{round: x.rounds, sender: e.By, at: e.At.UnixMilli()}, e.Changes)
	})
}

// changeState queues changes to the state of a locked session.
func (t *tx) changeState(x *sessionRow, o stateOrigin, changes []engine.SessionChange) error {
	rows := make([]storedValue, 0, len(changes))
	for i := range changes {
		v := storedValue{key: changes[i].Key, reducer: changes[i].Reducer}
		if !changes[i].Delete {
			var err error
			if v.value, err = encodeValue(changes[i].Value); err != nil {
				return fmt.Errorf("state key %q: %w", v.key, err)
			}
		}
		rows = append(rows, v)
	}
	return t.insertChanges(x, o, rows)
}

// insertChanges numbers changes and queues their rows.
func (t *tx) insertChanges(x *sessionRow, o stateOrigin, rows []storedValue) error {
	if len(rows) == 0 {
		return nil
	}
	key, err := t.dataKey(x.user)
	if err != nil {
		return err
	}
	for i := range rows {
		x.changes++
		t.queue("INSERT INTO session_change (session, num, key, value, reducer, round, run, sender, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
			x.num, x.changes, text(rows[i].key), t.s.encode(key, rows[i].value), text(rows[i].reducer), o.round, nullInt(o.run), text(o.sender), o.at)
	}
	t.queue("UPDATE session SET changes = $2 WHERE num = $1", x.num, x.changes)
	return nil
}

// inheritState gives a new session the state that its parent had at the last end of a round
// that is not behind a position.
func (t *tx) inheritState(x, parent *sessionRow, at int64, now time.Time) error {
	num, round, err := t.roundBoundary(parent, at)
	if err != nil {
		return err
	}
	values, err := stateAt(t, num, round)
	if err != nil {
		return err
	}
	for i := range values {
		v := &values[i]
		if err := t.insertChanges(x, stateOrigin{sender: v.sender, at: now.UnixMilli()}, []storedValue{*v}); err != nil {
			return err
		}
	}
	return nil
}

// roundBoundary returns the session and the number of the last round that had ended at a
// position of the history of x. The session is one that x was forked from, directly or not,
// if the position is before the first of its own.
func (t *tx) roundBoundary(x *sessionRow, at int64) (session, round int64, err error) {
	for at < x.start && x.parent != 0 {
		if x, err = t.readSession("s.num = $1", x.parent); err != nil {
			return 0, 0, err
		}
	}
	if at >= x.length {
		return x.num, x.rounds, nil
	}
	err = t.queryRow([]any{&round}, "SELECT coalesce(max(round) - 1, 0) FROM run WHERE session = $1 AND first <= $2", x.num, at)
	return x.num, round, err
}
