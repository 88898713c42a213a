package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// sessionRow is what a transaction reads of a session that it has locked.
type sessionRow struct {
	num, parent, context, start, length     int64
	rounds, fence, holder, changes, created int64
	id, user, flow                          string
	secret, usage, carryover                []byte
}

const sessionColumns = `s.num, coalesce(s.parent, 0), s.context, s.start, s.length, s.rounds, s.fence, coalesce(s.holder, 0), s.changes, s.created,
	s.id, s.user_id, s.flow, s.secret, s.usage, s.carryover`

func (x *sessionRow) scan(row pgx.Row) error {
	return row.Scan(&x.num, &x.parent, &x.context, &x.start, &x.length, &x.rounds, &x.fence, &x.holder, &x.changes, &x.created,
		into(&x.id), into(&x.user), into(&x.flow), &x.secret, &x.usage, &x.carryover)
}

// lockSession locks a session by its id; store.ErrNotFound.
func (t *tx) lockSession(id string) (*sessionRow, error) {
	return t.readSession("s.id = $1 FOR UPDATE", text(id))
}

func (t *tx) readSession(where string, arg any) (*sessionRow, error) {
	x := &sessionRow{}
	err := t.query(func(row pgx.Row) error { return x.scan(row) }, "SELECT "+sessionColumns+" FROM session s WHERE "+where, arg)
	if err == nil && x.num == 0 {
		err = fmt.Errorf("session %v: %w", arg, store.ErrNotFound)
	}
	return x, err
}

// CreateSession makes a session; see store.SessionStore.
func (s *Store) CreateSession(ctx context.Context, n store.NewSession) error {
	return s.write(ctx, "create session "+n.ID, func(t *tx) error {
		parent, err := t.parentOf(&n)
		if err != nil {
			return err
		}
		x, err := t.insertSession(&n, parent)
		if err == nil && n.Parent != "" {
			err = t.inheritState(x, parent, int64(n.ParentLength), n.Now)
		}
		if err != nil || n.FirstMessage == nil {
			return err
		}
		value, err := encodeValue(n.FirstMessage.Value)
		if err != nil {
			return err
		}
		rows, err := t.insertQueued(x, n.FirstMessage, value)
		if err == nil && rows == 0 {
			err = fmt.Errorf("message %s: %w", n.FirstMessage.ID, store.ErrExists)
		}
		return err
	})
}

// parentOf locks the session that a new one continues; nil if it continues none.
func (t *tx) parentOf(n *store.NewSession) (*sessionRow, error) {
	if n.Parent == "" {
		if n.ParentLength != 0 {
			return nil, fmt.Errorf("%d messages of no session: %w", n.ParentLength, store.ErrNotFound)
		}
		return nil, nil
	}
	x, err := t.lockSession(n.Parent)
	if err == nil && (n.ParentLength < 0 || int64(n.ParentLength) > x.length) {
		err = fmt.Errorf("%d messages of session %s, which has %d: %w", n.ParentLength, n.Parent, x.length, store.ErrNotFound)
	}
	return x, err
}

// activeLock is the first key of the advisory locks under which a session becomes the
// active one of its user and flow.
const activeLock = 0x77656973

const nextActive = `(SELECT 1 + coalesce(max(o.active), 0) FROM session o WHERE o.user_id = $1 AND o.flow = $2)`

func (t *tx) insertSession(n *store.NewSession, parent *sessionRow) (x *sessionRow, err error) {
	x = &sessionRow{id: n.ID, user: n.User, start: int64(n.ParentLength)}
	if x.context, err = t.s.contexts.next(t); err != nil {
		return nil, err
	}
	kind, up := "", &sessionRow{}
	if parent != nil {
		kind, up = fromRun, parent
		if x.start == up.length {
			x.carryover = up.carryover
		}
	} else {
		t.queue("SELECT pg_advisory_xact_lock($1, hashtext($2 || chr(1) || $3))", activeLock, text(n.User), text(n.Flow))
	}
	var expires *int64
	if !n.Expires.IsZero() {
		expires = new(n.Expires.UnixMilli())
	}
	key, err := t.dataKey(n.User)
	if err != nil {
		return nil, err
	}
	err = t.queryRow([]any{&x.num}, `INSERT INTO session (user_id, flow, id, thread, parent, parent_round, secret, context, start, length,
			created, updated, active, carryover, expires)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $10, CASE WHEN $5::bigint IS NULL THEN `+nextActive+` ELSE 0 END, $11, $12)
		ON CONFLICT DO NOTHING RETURNING num`,
		text(n.User), text(n.Flow), text(n.ID), text(cmp.Or(n.Thread, n.ID)), nullInt(up.num), up.rounds, newSecret(), x.context, x.start,
		n.Now.UnixMilli(), t.s.encode(key, x.carryover), expires)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, store.ErrExists
	}
	t.queue("INSERT INTO context (id, run, name, start, source, kind) VALUES ($1, NULL, 'main', $2, $3, $4)", x.context, x.start, nullInt(up.context), kind)
	return x, err
}

// ActivateSession makes a session the active one of its user and flow; store.ErrNotFound.
func (s *Store) ActivateSession(ctx context.Context, id string) error {
	return s.write(ctx, "activate session "+id, func(t *tx) error {
		x, err := t.lockSession(id)
		if err != nil {
			return err
		}
		t.queue("SELECT pg_advisory_xact_lock($1, hashtext($2 || chr(1) || $3))", activeLock, text(x.user), text(x.flow))
		t.queue("UPDATE session SET active = "+nextActive+" WHERE num = $3", text(x.user), text(x.flow), x.num)
		return nil
	})
}

// ExpireSession sets when PruneSessions may delete a session; zero is never.
func (s *Store) ExpireSession(ctx context.Context, id string, at time.Time) error {
	var expires *int64
	if !at.IsZero() {
		expires = new(at.UnixMilli())
	}
	n, err := s.exec(ctx, "expire session "+id, "UPDATE session SET expires = $2 WHERE id = $1", text(id), expires)
	return requireRow("session "+id, n, err)
}

// lastMessageAt is when the newest round of a session committed last, or when the session changed last.
const lastMessageAt = `greatest(s.updated, (SELECT r.updated FROM run r WHERE r.session = s.num AND r.commits > 0 ORDER BY r.first DESC, r.num DESC LIMIT 1))`

const selectSession = `SELECT s.id, s.user_id, s.flow, s.thread, coalesce((SELECT id FROM session p WHERE p.num = s.parent), ''),
	s.parent_round, s.start, s.created, ` + lastMessageAt + `, s.rounds, s.length, s.fence, coalesce((SELECT id FROM run r WHERE r.num = s.holder), ''),
	(SELECT count(*) FROM queue q WHERE q.session = s.num AND q.run IS NULL), s.usage, s.carryover, coalesce(s.expires, 0), s.changes FROM session s`

func scanSession(row pgx.Row) (x store.Session, err error) {
	var created, updated, expires int64
	var usage []byte
	err = row.Scan(into(&x.ID), into(&x.User), into(&x.Flow), into(&x.Thread), into(&x.Parent), &x.ParentRound, &x.ParentLength, &created, &updated,
		&x.Rounds, &x.Length, &x.Fence, into(&x.Holder), &x.Queued, &usage, &x.Carryover, &expires, &x.StateChanges)
	if err != nil {
		return store.Session{}, err
	}
	x.Created, x.Updated = time.UnixMilli(created), time.UnixMilli(updated)
	if expires != 0 {
		x.Expires = time.UnixMilli(expires)
	}
	x.Usage, err = readUsage(usage)
	return x, err
}

// oneSession reads one session.
func oneSession(q rowSource, where string, args ...any) (x store.Session, err error) {
	found := false
	err = q.query(func(row pgx.Row) error {
		found = true
		x, err = scanSession(row)
		return err
	}, selectSession+" WHERE "+where, args...)
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return x, err
}

// Session returns a session; store.ErrNotFound.
func (s *Store) Session(ctx context.Context, id string) (store.Session, error) {
	x, err := oneSession(reader{s, ctx}, "s.id = $1", text(id))
	return x, s.wrap("session "+id, err)
}

// FindSession returns the session of a thread, or the active one; see store.SessionStore.
func (s *Store) FindSession(ctx context.Context, user, flow, thread string) (store.Session, error) {
	x, err := oneSession(reader{s, ctx}, "s.user_id = $1 AND s.flow = $2 AND ($3 = '' OR s.thread = $3) ORDER BY s.active DESC LIMIT 1",
		text(user), text(flow), text(thread))
	return x, s.wrap(fmt.Sprintf("session of user %q and flow %q, thread %q", user, flow, thread), err)
}

// Sessions lists sessions, newest first.
func (s *Store) Sessions(ctx context.Context, f store.SessionFilter) ([]store.Session, error) {
	var c conditions
	c.add("TRUE")
	if f.Flow != "" {
		c.add("s.flow = ?", text(f.Flow))
	}
	if f.User != "" {
		c.add("s.user_id = ?", text(f.User))
	}
	if f.Prefix != "" {
		c.add("s.id LIKE ?", likePrefix(f.Prefix))
	}
	if f.Before != "" {
		var num int64
		if err := s.queryRow(ctx, []any{&num}, "SELECT num FROM session WHERE id = $1", text(f.Before)); err != nil {
			return nil, s.wrap("list sessions before: session "+f.Before, err)
		}
		c.add("s.num < ?", num)
	}
	c.add("TRUE ORDER BY s.num DESC LIMIT ?", cmp.Or(f.Limit, 100))
	out := []store.Session{}
	err := s.query(ctx, func(row pgx.Row) error {
		x, err := scanSession(row)
		out = append(out, x)
		return err
	}, selectSession+" WHERE "+strings.Join(c.where, " AND "), c.args...)
	if err != nil {
		return nil, s.wrap("list sessions", err)
	}
	return out, nil
}

// PendingSessions returns sessions in which a message waits or whose round has no commit
// yet; see store.SessionStore.
func (s *Store) PendingSessions(ctx context.Context, after string, limit int) ([]string, error) {
	return s.queryTexts(ctx, "list sessions with messages", `SELECT id FROM session WHERE num IN (
			SELECT session FROM queue WHERE run IS NULL
			UNION SELECT session FROM run WHERE status = 'pending' AND activity < 2 AND session IS NOT NULL)
		AND id > $1 ORDER BY id LIMIT $2`, text(after), limit)
}
