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

// userFacts are all columns of a row of user_value.
type userFacts struct {
	ID      int64   `json:"id"`
	User    string  `json:"user"`
	Flow    string  `json:"flow"`
	Key     string  `json:"key"`
	Value   *string `json:"value"`
	Reducer string  `json:"reducer"`
	Version int64   `json:"version"`
	Run     int64   `json:"run"`
	Sender  string  `json:"sender"`
	At      int64   `json:"at"`
}

const userColumns = "u.id, u.user, u.flow, u.key, u.value, coalesce(u.reducer, ''), u.version, coalesce(u.run, 0), coalesce(u.sender, ''), u.at"

const selectUserFacts = "SELECT u.id, u.seal, " + userColumns + " FROM user_value u"

func (f *userFacts) columns() []any {
	return []any{&f.ID, &f.User, &f.Flow, &f.Key, &f.Value, &f.Reducer, &f.Version, &f.Run, &f.Sender, &f.At}
}

// UserState implements store.UserStateStore.
func (s *Store) UserState(ctx context.Context, user, flow string) ([]store.UserValue, error) {
	return s.userValues(ctx, " WHERE u.value IS NOT NULL AND u.user = ?1 AND u.flow = ?2 ORDER BY u.key", user, flow)
}

// UserStates implements store.UserStateStore.
func (s *Store) UserStates(ctx context.Context, user string) ([]store.UserValue, error) {
	return s.userValues(ctx, " WHERE u.value IS NOT NULL AND (?1 = '' OR u.user = ?1) ORDER BY u.user, u.flow, u.key", user)
}

func (s *Store) userValues(ctx context.Context, where string, args ...any) ([]store.UserValue, error) {
	out := []store.UserValue{}
	err := lineage{ctx, s.reader}.query(func(row scanner) error {
		var f userFacts
		var run string
		if err := row.Scan(append(f.columns(), &run)...); err != nil {
			return err
		}
		v := store.UserValue{
			User: f.User, Flow: f.Flow, Key: f.Key, Version: f.Version, Reducer: f.Reducer, Run: run, By: f.Sender, At: time.UnixMilli(f.At),
		}
		var err error
		if v.Value, err = engine.DecodeValue([]byte(*f.Value)); err != nil {
			return fmt.Errorf("user %s, flow %s, key %q: %w: %w", f.User, f.Flow, f.Key, store.ErrCorrupt, err)
		}
		out = append(out, v)
		return nil
	}, "SELECT "+userColumns+", coalesce(r.id, '') FROM user_value u LEFT JOIN run_row r ON r.num = u.run"+where, args...)
	return out, s.wrap("state of users", err)
}

// EditUserState implements store.UserStateStore.
func (s *Store) EditUserState(ctx context.Context, e store.UserStateEdit) error {
	return s.write(ctx, "set the state of user "+e.Write.User, func(ctx context.Context) error {
		w := writeTx{s: s, ctx: ctx}
		rows, refused, err := w.combineUserState(&e.Write, userFacts{Sender: e.By, At: e.At.UnixMilli()})
		if refused != nil || err != nil {
			return errors.Join(refused, err)
		}
		return w.keepUserValues(rows)
	})
}

// userChangesOf returns the rows of user_value as a commit leaves them. The commit is refused
// if an operation does not fit its value.
func (w *writeTx) userChangesOf(r *runState, a *store.Append) (rows []userFacts, refused, failed error) {
	write := engine.CompletedUserState(a.Commit.Events)
	if write == nil || w.restoring {
		return nil, nil, nil
	}
	return w.combineUserState(write, userFacts{Run: r.num, At: a.Commit.At})
}

// combineUserState returns the rows after operations; origin says what all have in common.
func (w *writeTx) combineUserState(write *engine.UserStateWrite, origin userFacts) (rows []userFacts, refused, failed error) {
	for i := range write.Changes {
		c := &write.Changes[i]
		f := origin
		var reducer sql.NullString
		err := w.prepared().QueryRowContext(w.ctx, "SELECT id, value, reducer, version FROM user_value WHERE user = ? AND flow = ? AND key = ?",
			write.User, write.Flow, c.Key).Scan(&f.ID, &f.Value, &reducer, &f.Version)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, nil, err
		}
		var old engine.Value
		if f.Value != nil {
			if old, err = engine.DecodeValue([]byte(*f.Value)); err != nil {
				return nil, nil, fmt.Errorf("user %s, flow %s, key %q: %w: %w", write.User, write.Flow, c.Key, store.ErrCorrupt, err)
			}
		}
		v, there, err := engine.ApplyUserChange(old, f.Value != nil, reducer.String, c)
		if err != nil {
			return nil, fmt.Errorf("user %s, flow %s: %w: %w", write.User, write.Flow, store.ErrStateConflict, err), nil
		}
		f.User, f.Flow, f.Key, f.Reducer, f.Value = write.User, write.Flow, c.Key, c.Reducer, nil
		f.Version++
		if there {
			text, err := encodeValue(v)
			if err != nil {
				return nil, nil, fmt.Errorf("state key %q: %w", c.Key, err)
			}
			f.Value = &text
		}
		rows = append(rows, f)
	}
	return rows, nil, nil
}

// keepUserValues writes rows with their seals.
func (w *writeTx) keepUserValues(rows []userFacts) error {
	for i := range rows {
		f := &rows[i]
		if f.ID == 0 {
			if err := w.prepared().QueryRowContext(w.ctx, "SELECT coalesce(max(id), 0) + 1 FROM user_value").Scan(&f.ID); err != nil {
				return err
			}
		}
		seal, err := sealOf(f)
		if err != nil {
			return err
		}
		_, err = w.prepared().ExecContext(w.ctx, `INSERT OR REPLACE INTO user_value (id, user, flow, key, value, reducer, version, run, sender, at, seal)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			f.ID, f.User, f.Flow, f.Key, f.Value, nullText(f.Reducer), f.Version, nullInt(f.Run), nullText(f.Sender), f.At, seal)
		if err != nil {
			return err
		}
	}
	return nil
}

// countUserState counts the values of the user who is erased.
func (x deleter) countUserState() (n int, err error) {
	if x.user == "" {
		return 0, nil
	}
	err = x.q.QueryRowContext(x.ctx, "SELECT count(*) FROM user_value WHERE user = ? AND value IS NOT NULL", x.user).Scan(&n)
	return n, err
}

// deleteUserState deletes the values of the user who is erased.
func (x deleter) deleteUserState() (n int, err error) {
	if n, err = x.countUserState(); err != nil || x.user == "" {
		return n, err
	}
	res, err := x.conn.ExecContext(x.ctx, "DELETE FROM user_value WHERE user = ?", x.user)
	if err != nil {
		return n, err
	}
	if rows, err := res.RowsAffected(); err != nil || rows == 0 {
		return n, err
	}
	return n, memoryWriter{x.ctx, x.conn}.markTraces()
}

// unlinkUserState removes the references from values that stay to runs that are deleted.
func (x deleter) unlinkUserState() error {
	var rows []userFacts
	err := x.query(func(row scanner) error {
		var f userFacts
		err := row.Scan(f.columns()...)
		rows = append(rows, f)
		return err
	}, "SELECT "+userColumns+" FROM user_value u WHERE u.run IN (SELECT num FROM doomed_run)")
	for i := 0; i < len(rows) && err == nil; i++ {
		rows[i].Run = 0
		var seal int64
		if seal, err = sealOf(&rows[i]); err == nil {
			_, err = x.conn.ExecContext(x.ctx, "UPDATE user_value SET run = NULL, seal = ? WHERE id = ?", seal, rows[i].ID)
		}
	}
	return err
}
