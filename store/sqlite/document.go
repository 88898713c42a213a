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

const documentColumns = "kind, id, coalesce(user, ''), coalesce(run, ''), version, body, coalesce(due, 0), created, updated"

func scanDocument(row scanner) (d store.Document, err error) {
	var body string
	var due, created, updated int64
	err = row.Scan(&d.Kind, &d.ID, &d.User, &d.Run, &d.Version, &body, &due, &created, &updated)
	d.Body, d.Created, d.Updated = json.RawMessage(body), time.UnixMilli(created), time.UnixMilli(updated)
	if due != 0 {
		d.Due = time.UnixMilli(due)
	}
	return d, err
}

// PutDocument implements store.DocumentStore.
func (s *Store) PutDocument(ctx context.Context, d store.Document) (store.Document, error) {
	op := "keep " + d.Kind + " " + d.ID
	if !json.Valid(d.Body) {
		return d, fmt.Errorf("%s: the body is not JSON", op)
	}
	err := s.write(ctx, op, func(ctx context.Context) error {
		now := s.clock().Truncate(time.Millisecond)
		have, err := scanDocument(s.conn.QueryRowContext(ctx, "SELECT "+documentColumns+" FROM document WHERE kind = ? AND id = ?", d.Kind, d.ID))
		switch {
		case errors.Is(err, sql.ErrNoRows) && d.Version == 0:
			d.Version, d.Created, d.Updated = 1, now, now
			_, err = s.conn.ExecContext(ctx, `INSERT INTO document (kind, id, user, run, version, body, due, created, updated)
				VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?)`, d.Kind, d.ID, nullText(d.User), nullText(d.Run), string(d.Body), nullTime(d.Due), now.UnixMilli(), now.UnixMilli())
			return err
		case err != nil:
			return err
		case d.Version == 0:
			return store.ErrExists
		case have.Version != d.Version:
			return store.ErrChanged
		}
		d.Version, d.Created, d.Updated = d.Version+1, have.Created, now
		_, err = s.conn.ExecContext(ctx, "UPDATE document SET user = ?, run = ?, version = ?, body = ?, due = ?, updated = ? WHERE kind = ? AND id = ?",
			nullText(d.User), nullText(d.Run), d.Version, string(d.Body), nullTime(d.Due), now.UnixMilli(), d.Kind, d.ID)
		return err
	})
	return d, err
}

// Document implements store.DocumentStore.
func (s *Store) Document(ctx context.Context, kind, id string) (store.Document, error) {
	d, err := scanDocument(s.reader.QueryRowContext(ctx, "SELECT "+documentColumns+" FROM document WHERE kind = ? AND id = ?", kind, id))
	return d, s.wrap("read "+kind+" "+id, err)
}

// Documents implements store.DocumentStore.
func (s *Store) Documents(ctx context.Context, f store.DocumentFilter) ([]store.Document, error) {
	if f.Limit == 0 {
		f.Limit = 100
	}
	of := "?3 = ''"
	if f.Run != "" {
		of = "run = ?3" // which the index document_run finds
	}
	out := []store.Document{}
	err := s.query(ctx, func(row scanner) error {
		d, err := scanDocument(row)
		out = append(out, d)
		return err
	}, "SELECT "+documentColumns+` FROM document WHERE kind = ?1 AND (?2 = '' OR user = ?2) AND `+of+`
		AND substr(id, 1, length(?4)) = ?4 AND id > ?5 ORDER BY id LIMIT ?6`, f.Kind, f.User, f.Run, f.Prefix, f.After, f.Limit)
	if err != nil {
		return nil, s.wrap("list "+f.Kind, err)
	}
	return out, nil
}

// DocumentKinds implements store.DocumentStore.
func (s *Store) DocumentKinds(ctx context.Context) ([]string, error) {
	return s.queryTexts(ctx, "list kinds of documents", "SELECT DISTINCT kind FROM document ORDER BY kind")
}

// DeleteDocument implements store.DocumentStore.
func (s *Store) DeleteDocument(ctx context.Context, kind, id string, version int64) error {
	return s.write(ctx, "delete "+kind+" "+id, func(ctx context.Context) error {
		var have int64
		if err := s.conn.QueryRowContext(ctx, "SELECT version FROM document WHERE kind = ? AND id = ?", kind, id).Scan(&have); err != nil {
			return err
		}
		if version != 0 && have != version {
			return store.ErrChanged
		}
		_, err := s.conn.ExecContext(ctx, "DELETE FROM document WHERE kind = ? AND id = ?", kind, id)
		return err
	})
}

// TrimDocuments implements store.DocumentStore.
func (s *Store) TrimDocuments(ctx context.Context, kind string, keep int, after string) (int, error) {
	n, err := s.exec(ctx, "trim "+kind, `DELETE FROM document WHERE kind = ?1 AND id IN (SELECT id FROM document WHERE kind = ?1
		AND (id > ?2 OR id >= (SELECT id FROM document WHERE kind = ?1 ORDER BY id LIMIT 1 OFFSET ?3)) ORDER BY id DESC LIMIT ?4)`,
		kind, after, keep, store.MaxTrimmed)
	return int(n), err
}

// ClaimDocuments implements store.DocumentStore.
func (s *Store) ClaimDocuments(ctx context.Context, kind string, ttl time.Duration, limit int) ([]store.Document, error) {
	// Most calls find nothing: those do not write.
	var due bool
	err := s.reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM document WHERE kind = ? AND due <= ?)", kind, s.clock().UnixMilli()).Scan(&due)
	if err != nil || !due {
		return nil, s.wrap("claim "+kind, err)
	}
	var out []store.Document
	err = s.write(ctx, "claim "+kind, func(ctx context.Context) error {
		now := s.clock().Truncate(time.Millisecond)
		out = nil
		err := lineage{ctx, s.conn}.query(func(row scanner) error {
			d, err := scanDocument(row)
			out = append(out, d)
			return err
		}, "SELECT "+documentColumns+" FROM document WHERE kind = ? AND due <= ? ORDER BY due, id LIMIT ?", kind, now.UnixMilli(), limit)
		if err != nil {
			return err
		}
		for i := range out {
			d := &out[i]
			d.Version, d.Due, d.Updated = d.Version+1, now.Add(ttl).Truncate(time.Millisecond), now
			if _, err := s.conn.ExecContext(ctx, "UPDATE document SET version = ?, due = ?, updated = ? WHERE kind = ? AND id = ?",
				d.Version, d.Due.UnixMilli(), now.UnixMilli(), d.Kind, d.ID); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// insertNotice writes a notice if the head of a run changes in a way that is reported, and
// notices are requested.
const insertNotice = `INSERT INTO notice (run, seq, status, waiting, at)
SELECT num, ?1, ?2, ?3, ?4 FROM run_row WHERE num = ?5 AND (status IS NOT ?2 OR waiting IS NOT ?3)
AND EXISTS (SELECT 1 FROM document WHERE kind = '` + store.NoticeKind + `')`

// notify writes a notice about a head that is about to be written, if one is due.
func (w *writeTx) notify(r *runState, row *headRow, c *engine.Commit) error {
	same := r.head != nil && r.head.status == row.status && r.head.waiting == row.waiting
	if same || row.waiting == "" && !endedText(row.status) {
		return nil
	}
	_, err := w.prepared().ExecContext(w.ctx, insertNotice, c.Seq, row.status, nullText(row.waiting), c.At, r.num)
	return err
}

const insertNearNotice = `INSERT INTO notice (run, seq, status, budgets, at) SELECT ?1, ?2, ?3, ?4, ?5
WHERE EXISTS (SELECT 1 FROM document WHERE kind = '` + store.NoticeKind + `')`

// notifyNear writes a notice about budgets that are near their limits.
func (w *writeTx) notifyNear(r *runState, row *headRow, a *store.Append) error {
	if len(a.NearBudgets) == 0 {
		return nil
	}
	budgets, err := json.Marshal(a.NearBudgets)
	if err == nil {
		_, err = w.prepared().ExecContext(w.ctx, insertNearNotice, r.num, a.Commit.Seq, row.status, string(budgets), a.Commit.At)
	}
	return err
}

// endedText reports whether a status, as the table keeps it, is one of a run that has ended.
func endedText(status string) bool {
	return status == statusText(engine.Completed) || status == statusText(engine.Failed) || status == statusText(engine.Cancelled)
}

// Notices implements store.DocumentStore.
func (s *Store) Notices(ctx context.Context, limit int) ([]store.Notice, error) {
	var out []store.Notice
	err := s.query(ctx, func(row scanner) error {
		var n store.Notice
		var status, waiting, budgets string
		var at int64
		err := row.Scan(&n.ID, &n.Run, &n.Seq, &status, &waiting, &budgets, &at)
		if err != nil {
			return err
		}
		n.At = time.UnixMilli(at)
		if n.Status = engine.Completed; status != statusText(engine.Completed) {
			if n.Status, err = parseStatus(status); err != nil {
				return err
			}
		}
		var h store.Head
		if err := h.AddEncoded([]byte(waiting)); err != nil {
			return err
		}
		for i := range h.Waiting {
			n.Waiting = append(n.Waiting, h.Waiting[i].ID)
		}
		if budgets != "" {
			err = json.Unmarshal([]byte(budgets), &n.Budgets)
		}
		out = append(out, n)
		return err
	}, "SELECT n.id, r.id, n.seq, n.status, coalesce(n.waiting, ''), coalesce(n.budgets, ''), n.at FROM notice n JOIN run_row r ON r.num = n.run ORDER BY n.id LIMIT ?", limit)
	return out, s.wrap("read notices", err)
}

// RemoveNotices implements store.DocumentStore.
func (s *Store) RemoveNotices(ctx context.Context, ids []int64) error {
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, "remove notices", "DELETE FROM notice WHERE id IN (SELECT value FROM json_each(?))", string(list))
	return err
}
