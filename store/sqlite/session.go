package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// CreateSession makes a session and, unless it has a parent, has it be the active
// one of its user and flow. A thread that is not given is the id. store.ErrExists
// where the id, the thread of that user and flow, or the id of the first message is
// taken; store.ErrNotFound if there is no such parent, or it has fewer than At
// messages.
func (s *Store) CreateSession(ctx context.Context, n store.NewSession) error {
	return s.write(ctx, "create session "+n.ID, func(ctx context.Context) error {
		w := writeTx{s: s, ctx: ctx}
		err := w.createSession(n, nil)
		if err == nil && n.Parent != "" {
			err = w.inheritState(n.ID, n.Parent, int64(n.ParentLength), n.Now)
		}
		if err != nil || n.FirstMessage == nil {
			return err
		}
		value, err := encodeValue(n.FirstMessage.Value)
		if err != nil {
			return err
		}
		_, err = findQueued(ctx, s.prepared(), n.FirstMessage.ID)
		if err == nil {
			return fmt.Errorf("message %s: %w", n.FirstMessage.ID, store.ErrExists)
		}
		if errors.Is(err, sql.ErrNoRows) {
			_, err = w.enqueue(n.FirstMessage, value)
		}
		return err
	})
}

// createSession makes a session. parentRound is how many rounds its parent had when it was forked, nil for those that it has.
func (w *writeTx) createSession(n store.NewSession, parentRound *int) error {
	parent, err := w.parentOf(n)
	if err != nil {
		return err
	}
	if parentRound != nil {
		parent.rounds = int64(*parentRound)
	}
	id, err := w.nextContext()
	if err != nil {
		return err
	}
	f := sessionFacts{
		ID: n.ID, User: n.User, Flow: n.Flow, Thread: cmp.Or(n.Thread, n.ID), Parent: parent.num, ParentRound: parent.rounds,
		Created: n.Now.UnixMilli(), Context: id, Start: int64(n.ParentLength), Source: parent.context,
	}
	if parent.num != 0 {
		f.Kind = fromRun
	}
	seal, err := sealOf(&f)
	if err != nil {
		return err
	}
	res, err := w.prepared().ExecContext(w.ctx, `
		INSERT INTO session (num, id, user, flow, thread, parent, parent_round, salt, context, created, updated, active, main, expires, seal)
		SELECT 1 + max(coalesce((SELECT max(num) FROM session), 0), coalesce((SELECT num FROM gone WHERE name = 'session'), 0)),
			?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9,
			iif(?5 IS NULL, 1 + coalesce((SELECT max(active) FROM session WHERE user = ?2 AND flow = ?3), 0), 0), ?10, ?11, ?12
		ON CONFLICT DO NOTHING`,
		f.ID, f.User, f.Flow, f.Thread, nullInt(f.Parent), f.ParentRound, newSalt(), id,
		f.Created, parent.carryover, nullTime(n.Expires), seal)
	if err != nil {
		return err
	}
	if made, err := res.RowsAffected(); err != nil || made == 0 {
		return firstError(err, store.ErrExists)
	}
	_, err = w.prepared().ExecContext(w.ctx, "INSERT INTO context (id, run, name, start, source, kind) VALUES (?, NULL, ?, ?, ?, ?)",
		id, "main", n.ParentLength, nullInt(f.Source), nullText(f.Kind))
	return err
}

func nullTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// parentSession is what a session begins with.
type parentSession struct {
	num, rounds, context int64
	carryover            []byte
}

func (w *writeTx) parentOf(n store.NewSession) (p parentSession, err error) {
	if n.Parent == "" {
		if n.ParentLength != 0 {
			err = fmt.Errorf("%d messages of no session: %w", n.ParentLength, store.ErrNotFound)
		}
		return p, err
	}
	x, err := w.session("id", n.Parent)
	if err != nil {
		return p, err
	}
	if n.ParentLength < 0 || int64(n.ParentLength) > x.length {
		return p, fmt.Errorf("%d messages of session %s, which has %d: %w", n.ParentLength, n.Parent, x.length, store.ErrNotFound)
	}
	p = parentSession{num: x.num, rounds: x.rounds, context: x.context}
	if int64(n.ParentLength) == x.length {
		err = w.prepared().QueryRowContext(w.ctx, "SELECT main FROM session WHERE num = ?", x.num).Scan(&p.carryover)
	}
	return p, err
}

// sessionState is what the writer needs of a session.
type sessionState struct {
	num, rounds, holder, context, length, fence int64
	parent, start                               int64 // start is the position of its first own message
	id, usage                                   string
}

// session reads a session by its id or num. The error is store.ErrNotFound if there is
// none.
func (w *writeTx) session(column string, value any) (x sessionState, err error) {
	err = w.prepared().QueryRowContext(w.ctx, `SELECT s.num, s.rounds, coalesce(s.holder, 0), s.context, c.start, s.id, coalesce(s.usage, ''), coalesce(s.parent, 0), s.fence
		FROM session s JOIN context c ON c.id = s.context WHERE s.`+column+" = ?", value,
	).Scan(&x.num, &x.rounds, &x.holder, &x.context, &x.start, &x.id, &x.usage, &x.parent, &x.fence)
	if err != nil {
		return x, wrap(fmt.Sprintf("session %v", value), err)
	}
	x.length, err = w.lineage().nextPosition(x.context, x.start)
	return x, err
}

// ActivateSession has a session be the one that FindSession gives where no
// thread is named.
func (s *Store) ActivateSession(ctx context.Context, id string) error {
	n, err := s.exec(ctx, "activate session "+id, `UPDATE session SET active = 1 +
		(SELECT max(o.active) FROM session o WHERE o.user = session.user AND o.flow = session.flow) WHERE id = ?`, id)
	return requireRow("session "+id, n, err)
}

// ExpireSession sets when PruneSessions may delete a session; zero is never.
func (s *Store) ExpireSession(ctx context.Context, id string, at time.Time) error {
	n, err := s.exec(ctx, "expire session "+id, "UPDATE session SET expires = ? WHERE id = ?", nullTime(at), id)
	return requireRow("session "+id, n, err)
}

// requireRow makes a write that met no row an error.
func requireRow(what string, rows int64, err error) error {
	if err == nil && rows == 0 {
		return fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return err
}

// lastSaid is when a session's newest round committed last.
const lastSaid = `max(s.updated, coalesce((SELECT r.created + c.at FROM run_row r CROSS JOIN run_commit c
	ON c.id = (SELECT max(id) FROM run_commit WHERE id > r.num << 32 AND id < (r.num + 1) << 32)
	WHERE r.session = s.num ORDER BY r.first DESC, r.num DESC LIMIT 1), 0))`

const selectSession = `SELECT s.id, s.user, s.flow, s.thread, coalesce((SELECT id FROM session p WHERE p.num = s.parent), ''),
	s.parent_round, c.start, s.created, ` + lastSaid + `, s.rounds,
	coalesce((SELECT max(m.id) & 0xffffffff FROM message m WHERE m.id >= s.context << 32 AND m.id < (s.context + 1) << 32) + 1, c.start),
	s.fence, coalesce((SELECT id FROM run_row r WHERE r.num = s.holder), ''),
	(SELECT count(*) FROM queue q WHERE q.session = s.num AND q.run IS NULL), coalesce(s.usage, ''), s.main, coalesce(s.expires, 0), coalesce(s.changes, 0)
	FROM session s JOIN context c ON c.id = s.context`

// Session returns a session; store.ErrNotFound if there is none.
func (s *Store) Session(ctx context.Context, id string) (store.Session, error) {
	x, err := scanSession(s.reader.QueryRowContext(ctx, selectSession+" WHERE s.id = ?", id))
	return x, s.wrap("session "+id, err)
}

// FindSession returns the session of a thread, or, with no thread, the active
// one of user and flow: that which was made or activated last. store.ErrNotFound
// if there is none.
func (s *Store) FindSession(ctx context.Context, user, flow, thread string) (store.Session, error) {
	query, args := selectSession+" WHERE s.user = ? AND s.flow = ?", []any{user, flow}
	if thread != "" {
		query, args = query+" AND s.thread = ?", append(args, thread)
	}
	x, err := scanSession(s.reader.QueryRowContext(ctx, query+" ORDER BY s.active DESC LIMIT 1", args...))
	return x, s.wrap(fmt.Sprintf("session of user %q and flow %q, thread %q", user, flow, thread), err)
}

// Sessions lists sessions, newest first.
func (s *Store) Sessions(ctx context.Context, f store.SessionFilter) ([]store.Session, error) {
	where := []string{"TRUE"}
	var args []any
	for _, c := range []struct{ column, value string }{{"s.flow", f.Flow}, {"s.user", f.User}} {
		if c.value != "" {
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	if f.Prefix != "" {
		where, args = append(where, "s.id >= ? AND substr(s.id, 1, length(?)) = ?"), append(args, f.Prefix, f.Prefix, f.Prefix)
	}
	if f.Before != "" {
		var num int64
		if err := s.reader.QueryRowContext(ctx, "SELECT num FROM session WHERE id = ?", f.Before).Scan(&num); err != nil {
			return nil, s.wrap("list sessions before: session "+f.Before, err)
		}
		where, args = append(where, "s.num < ?"), append(args, num)
	}
	out := []store.Session{}
	err := s.query(ctx, func(row scanner) error {
		x, err := scanSession(row)
		out = append(out, x)
		return err
	}, selectSession+" WHERE "+strings.Join(where, " AND ")+" ORDER BY s.num DESC LIMIT ?", append(args, cmp.Or(f.Limit, 100))...)
	if err != nil {
		return nil, s.wrap("list sessions", err)
	}
	return out, nil
}

func scanSession(row scanner) (store.Session, error) {
	var x store.Session
	var created, updated, expires int64
	var usage string
	err := row.Scan(&x.ID, &x.User, &x.Flow, &x.Thread, &x.Parent, &x.ParentRound, &x.ParentLength, &created, &updated,
		&x.Rounds, &x.Length, &x.Fence, &x.Holder, &x.Queued, &usage, &x.Carryover, &expires, &x.StateChanges)
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

// readUsage reads what encodeUsage wrote.
func readUsage(column string) (engine.Usage, error) {
	var h store.Head
	err := h.AddEncoded([]byte(column))
	return h.Usage, err
}

func encodeUsage(u engine.Usage) (string, error) {
	if u == (engine.Usage{}) {
		return "", nil
	}
	return encodeHeadPart(&engine.EffectCompleted{Usage: &u})
}
