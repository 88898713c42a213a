package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-run/weir/memory"
)

// Remember stores an item, or a new version of one; see memory.Store.
func (s *Store) Remember(ctx context.Context, w memory.Write) (memory.WriteResult, error) {
	const op = "remember"
	w, err := w.Normalized()
	if err != nil {
		return memory.WriteResult{}, fmt.Errorf("%s: %w", op, err)
	}
	var out memory.WriteResult
	err = s.write(ctx, op, func(ctx context.Context) (err error) {
		r := memoryWriter{ctx, s.conn}
		scope, err := r.scopeNumber(w.Scope)
		if err != nil {
			return err
		}
		if known, err := r.findCall(w.Call, &out); known || err != nil {
			return err
		}
		if out, err = r.writeItem(scope, &w); err != nil {
			return err
		}
		return r.recordCall(w.Call, scope, out.ID, out.Version, out.Known)
	})
	return out, err
}

// Forget deletes an item of a scope with its versions; see memory.Store. The
// texts are overwritten in the file; words of them may be left in its log, and in
// the index of terms, until the next ForgetMemories or deletion.
func (s *Store) Forget(ctx context.Context, scope memory.Scope, id, call string) (bool, error) {
	if err := scope.Check(); err != nil {
		return false, fmt.Errorf("forget %s: %w", id, err)
	}
	done := false
	err := s.secureWrite(ctx, "forget "+id, func(ctx context.Context) error {
		r := memoryWriter{ctx, s.conn}
		var num, item int64
		err := s.conn.QueryRowContext(ctx, "SELECT num FROM recall_scope WHERE namespace = ? AND user = ? AND session = ?",
			scope.Namespace, scope.User, scope.Session).Scan(&num)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // nothing was ever remembered
		}
		var was memory.WriteResult
		if err == nil {
			var known bool
			if known, err = r.findCall(call, &was); known {
				done = !was.Known
				return nil
			}
		}
		if err == nil {
			err = s.conn.QueryRowContext(ctx, "SELECT num FROM recall_item WHERE id = ? AND scope = ?", id, num).Scan(&item)
		}
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		default:
			done = true
			if err := r.deleteItem(item); err != nil {
				return err
			}
			if err := r.markTraces(); err != nil {
				return err
			}
		}
		return r.recordCall(call, num, id, 0, !done)
	})
	return done, err
}

// secureWrite is write where what is deleted is overwritten.
func (s *Store) secureWrite(ctx context.Context, op string, fn func(ctx context.Context) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.pragmas(ctx, "secure_delete = ON"); err != nil {
		return s.wrap(op, err)
	}
	err := s.beginTx(ctx)
	if err == nil {
		err = s.endTx(fn(context.WithoutCancel(ctx)))
	}
	return s.wrap(op, errors.Join(err, s.pragmas(context.WithoutCancel(ctx), "secure_delete = OFF")))
}

// memoryWriter writes to the memory in a transaction.
type memoryWriter struct {
	ctx  context.Context
	conn *sql.Conn
}

func (r memoryWriter) exec(query string, args ...any) error {
	_, err := r.conn.ExecContext(r.ctx, query, args...)
	return err
}

// markTraces records that the file may contain deleted data, until Compact.
func (r memoryWriter) markTraces() error {
	return r.exec("INSERT OR REPLACE INTO gone (name, num) VALUES ('traces', 1)")
}

// scopeNumber returns the number of a scope, which is made if there is none.
func (r memoryWriter) scopeNumber(s memory.Scope) (num int64, err error) {
	if err := r.exec("INSERT INTO recall_scope (namespace, user, session) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
		s.Namespace, s.User, s.Session); err != nil {
		return 0, err
	}
	err = r.conn.QueryRowContext(r.ctx, "SELECT num FROM recall_scope WHERE namespace = ? AND user = ? AND session = ?",
		s.Namespace, s.User, s.Session).Scan(&num)
	return num, err
}

// findCall reports whether a call is known, and its result.
func (r memoryWriter) findCall(call string, was *memory.WriteResult) (bool, error) {
	if call == "" {
		return false, nil
	}
	digest := memory.CallDigest(call)
	err := r.conn.QueryRowContext(r.ctx, "SELECT item, version, known FROM recall_call WHERE digest = ?", digest[:]).
		Scan(&was.ID, &was.Version, &was.Known)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// recordCall stores the result of a call.
func (r memoryWriter) recordCall(call string, scope int64, item string, version int, known bool) error {
	if call == "" {
		return nil
	}
	digest := memory.CallDigest(call)
	return r.exec("INSERT INTO recall_call (digest, scope, item, version, known) VALUES (?, ?, ?, ?, ?)", digest[:], scope, item, version, known)
}

// writeItem finds what a write is a new version of, and writes.
func (r memoryWriter) writeItem(scope int64, w *memory.Write) (memory.WriteResult, error) {
	var num int64
	var err error
	if w.Key != "" {
		err = r.conn.QueryRowContext(r.ctx, "SELECT num FROM recall_item WHERE scope = ? AND kind = ? AND key = ?", scope, w.Kind, w.Key).Scan(&num)
	} else {
		err = r.conn.QueryRowContext(r.ctx, `SELECT num FROM recall_item WHERE scope = ? AND kind = ? AND length(text) = length(?3)
			AND text = ?3 AND key IS NULL AND (kind <> 'episode' OR at = ?4) LIMIT 1`, scope, w.Kind, w.Text, w.At.UnixMilli()).Scan(&num)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return r.insertItem(scope, w)
	}
	if err != nil {
		return memory.WriteResult{}, err
	}
	was, err := scanItem(r.conn.QueryRowContext(r.ctx, selectItem+" WHERE i.num = ?", num))
	if err != nil {
		return memory.WriteResult{}, err
	}
	if w.SameContent(&was) {
		return memory.WriteResult{ID: was.ID, Version: was.Number, Known: true}, nil
	}
	item := w.Item(was.Number + 1)
	return memory.WriteResult{ID: was.ID, Version: item.Number}, r.insertVersion(scope, num, &item)
}

// insertItem writes a new item.
func (r memoryWriter) insertItem(scope int64, w *memory.Write) (memory.WriteResult, error) {
	if w.MaxItems > 0 {
		var n int
		if err := r.conn.QueryRowContext(r.ctx, "SELECT count(*) FROM recall_item WHERE scope = ?", scope).Scan(&n); err != nil {
			return memory.WriteResult{}, err
		}
		if n >= w.MaxItems {
			return memory.WriteResult{}, fmt.Errorf("%w: it holds %d items, and may hold %d", memory.ErrFull, n, w.MaxItems)
		}
	}
	item := w.Item(1)
	tags, err := tagsText(item.Tags)
	if err != nil {
		return memory.WriteResult{}, err
	}
	terms, words := indexEntry(scope, &item)
	x := &item.Source
	res, err := r.conn.ExecContext(r.ctx, `INSERT INTO recall_item
		(id, scope, kind, key, created, words, version, text, tags, at, written, run, flow, session, round, author)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		item.ID, scope, item.Kind, nullText(item.Key), item.Created.UnixMilli(), words, item.Number, item.Text, tags, item.At.UnixMilli(),
		item.Written.UnixMilli(), nullText(x.Run), nullText(x.Flow), nullText(x.Session), x.Round, nullText(x.By))
	if err != nil {
		return memory.WriteResult{}, err
	}
	num, err := res.LastInsertId()
	if err == nil {
		err = r.exec("INSERT INTO recall_index (rowid, terms) VALUES (?, ?)", num, terms)
	}
	return memory.WriteResult{ID: item.ID, Version: 1}, err
}

// insertVersion writes the next version of an item.
func (r memoryWriter) insertVersion(scope, num int64, item *memory.Item) error {
	tags, err := tagsText(item.Tags)
	if err != nil {
		return err
	}
	terms, words := indexEntry(scope, item)
	x := &item.Source
	if err := r.exec(`INSERT INTO recall_past (item, version, text, tags, at, written, run, flow, session, round, author)
		SELECT num, version, text, tags, at, written, run, flow, session, round, author FROM recall_item WHERE num = ?`, num); err != nil {
		return err
	}
	if err := r.exec("DELETE FROM recall_past WHERE item = ? AND version <= ?", num, item.Number-memory.MaxVersions); err != nil {
		return err
	}
	if err := r.exec(`UPDATE recall_item SET words = ?, version = ?, text = ?, tags = ?, at = ?, written = ?,
		run = ?, flow = ?, session = ?, round = ?, author = ? WHERE num = ?`,
		words, item.Number, item.Text, tags, item.At.UnixMilli(), item.Written.UnixMilli(),
		nullText(x.Run), nullText(x.Flow), nullText(x.Session), x.Round, nullText(x.By), num); err != nil {
		return err
	}
	return r.exec("UPDATE recall_index SET terms = ? WHERE rowid = ?", terms, num)
}

// deleteItem deletes an item.
func (r memoryWriter) deleteItem(num int64) error {
	for _, q := range []string{
		"DELETE FROM recall_index WHERE rowid = ?",
		"DELETE FROM recall_past WHERE item = ?",
		"DELETE FROM recall_item WHERE num = ?",
	} {
		if err := r.exec(q, num); err != nil {
			return err
		}
	}
	return nil
}

// indexEntry returns what the index has of an item, and how many terms that is.
func indexEntry(scope int64, item *memory.Item) (string, int) {
	prefix, terms := scopePrefix(scope), item.Terms()
	var b strings.Builder
	for i, t := range terms {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(prefix)
		b.WriteString(t)
	}
	return b.String(), len(terms)
}

// scopePrefix returns what the terms of a scope begin with. It ends in a character that
// no term holds, and that the index takes for a letter.
func scopePrefix(scope int64) string { return strconv.FormatInt(scope, 36) + "·" }

func tagsText(tags []string) (any, error) {
	if len(tags) == 0 {
		return nil, nil //nolint:nilnil // NULL
	}
	b, err := json.Marshal(tags)
	return string(b), err
}
