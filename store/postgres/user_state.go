package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// userValue is a row of user_value.
type userValue struct {
	key, reducer string
	value        []byte
	version      int64
}

// valueOrigin is what the values that one act changes have in common. run is 0 if they are set by hand.
type valueOrigin struct {
	run, at int64
	sender  string
}

// UserState implements store.UserStateStore.
func (s *Store) UserState(ctx context.Context, user, flow string) ([]store.UserValue, error) {
	return s.userValues(ctx, "u.user_id = $1 AND u.flow = $2 ORDER BY u.key", text(user), text(flow))
}

// UserStates implements store.UserStateStore.
func (s *Store) UserStates(ctx context.Context, user string) ([]store.UserValue, error) {
	return s.userValues(ctx, "($1 = '' OR u.user_id = $1) ORDER BY u.user_id, u.flow, u.key", text(user))
}

func (s *Store) userValues(ctx context.Context, where string, args ...any) ([]store.UserValue, error) {
	out := []store.UserValue{}
	err := s.query(ctx, func(row pgx.Row) error {
		var v store.UserValue
		var value []byte
		var at int64
		err := row.Scan(into(&v.User), into(&v.Flow), into(&v.Key), &value, into(&v.Reducer), &v.Version, into(&v.Run), into(&v.By), &at)
		if err != nil {
			return err
		}
		v.At = time.UnixMilli(at)
		if v.Value, err = engine.DecodeValue(value); err != nil {
			return fmt.Errorf("user %s, flow %s, key %q: %w: %w", v.User, v.Flow, v.Key, store.ErrCorrupt, err)
		}
		out = append(out, v)
		return nil
	}, `SELECT u.user_id, u.flow, u.key, u.value, u.reducer, u.version, coalesce(r.id, ''), u.sender, u.at
		FROM user_value u LEFT JOIN run r ON r.num = u.run WHERE u.value IS NOT NULL AND `+where, args...)
	return out, s.wrap("state of users", err)
}

// EditUserState implements store.UserStateStore.
func (s *Store) EditUserState(ctx context.Context, e store.UserStateEdit) error {
	return s.write(ctx, "set the state of user "+e.Write.User, func(t *tx) error {
		t.lockUserStates([]*engine.UserStateWrite{&e.Write})
		rows, refused, err := t.combineUserState(&e.Write)
		if refused != nil || err != nil {
			return errors.Join(refused, err)
		}
		key, err := t.dataKey(e.Write.User)
		if err != nil {
			return err
		}
		t.keepUserValues(&e.Write, rows, key, valueOrigin{at: e.At.UnixMilli(), sender: e.By})
		return nil
	})
}

// userStateLock is the first key of the advisory locks under which the values that a flow keeps for a user
// change. A row lock would not hold back a transaction that inserts a value.
const userStateLock = 0x77656975

// lockUserStates locks the values that writes change, in the order of all transactions.
func (t *tx) lockUserStates(writes []*engine.UserStateWrite) {
	if len(writes) == 0 {
		return
	}
	owners := make([]string, len(writes))
	for i, w := range writes {
		owners[i] = escapeText(w.User) + "\x02" + escapeText(w.Flow)
	}
	t.queue(`SELECT pg_advisory_xact_lock($1, h) FROM (SELECT DISTINCT hashtext(o) AS h FROM unnest($2::text[]) o ORDER BY h) l`, userStateLock, owners)
}

// userStateWrite returns the operations of a commit on the state of a user; nil for none.
func (g *group) userStateWrite(a *store.Append) *engine.UserStateWrite {
	if g.restores {
		return nil
	}
	return engine.CompletedUserState(a.Commit.Events)
}

// combineUserState returns the values of a locked user after operations. The commit is refused if one does not
// fit its value.
func (t *tx) combineUserState(w *engine.UserStateWrite) (rows []userValue, refused, failed error) {
	for i := range w.Changes {
		c := &w.Changes[i]
		v := userValue{key: c.Key, reducer: c.Reducer}
		var reducer string
		var was []byte
		err := t.queryRow([]any{&was, into(&reducer), &v.version}, "SELECT value, reducer, version FROM user_value WHERE user_id = $1 AND flow = $2 AND key = $3",
			text(w.User), text(w.Flow), text(c.Key))
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, nil, err
		}
		var old engine.Value
		if was != nil {
			if old, err = engine.DecodeValue(was); err != nil {
				return nil, nil, fmt.Errorf("user %s, flow %s, key %q: %w: %w", w.User, w.Flow, c.Key, store.ErrCorrupt, err)
			}
		}
		value, there, err := engine.ApplyUserChange(old, was != nil, reducer, c)
		if err != nil {
			return nil, fmt.Errorf("user %s, flow %s: %w: %w", w.User, w.Flow, store.ErrStateConflict, err), nil
		}
		v.version++
		if there {
			if v.value, err = encodeValue(value); err != nil {
				return nil, fmt.Errorf("state key %q: %w", c.Key, err), nil
			}
		}
		rows = append(rows, v)
	}
	return rows, nil, nil
}

// keepUserValues queues the values of a user.
func (t *tx) keepUserValues(w *engine.UserStateWrite, rows []userValue, key *codec.DataKey, o valueOrigin) {
	for i := range rows {
		v := &rows[i]
		t.queue(`INSERT INTO user_value (user_id, flow, key, value, reducer, version, run, sender, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (user_id, flow, key) DO UPDATE SET value = excluded.value, reducer = excluded.reducer, version = excluded.version,
				run = excluded.run, sender = excluded.sender, at = excluded.at`,
			text(w.User), text(w.Flow), text(v.key), t.s.encode(key, v.value), text(v.reducer), v.version, nullInt(o.run), text(o.sender), o.at)
	}
}
