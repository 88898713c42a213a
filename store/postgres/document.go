package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

const documentColumns = "kind, id, user_id, run_id, version, body, coalesce(due, 0), created, updated"

func scanDocument(row pgx.Row) (d store.Document, err error) {
	var body []byte
	var due, created, updated int64
	err = row.Scan(into(&d.Kind), into(&d.ID), into(&d.User), into(&d.Run), &d.Version, &body, &due, &created, &updated)
	d.Body, d.Created, d.Updated = json.RawMessage(body), time.UnixMilli(created), time.UnixMilli(updated)
	if due != 0 {
		d.Due = time.UnixMilli(due)
	}
	return d, err
}

// PutDocument implements store.DocumentStore.
func (s *Store) PutDocument(ctx context.Context, d store.Document) (out store.Document, err error) {
	op := "keep " + d.Kind + " " + d.ID
	if !json.Valid(d.Body) {
		return d, fmt.Errorf("%s: the body is not JSON", op)
	}
	err = s.write(ctx, op, func(t *tx) error {
		if err := t.flush(); err != nil { // t.now is read
			return err
		}
		body, err := t.encodeDocument(&d)
		if err != nil {
			return err
		}
		if out = d; d.Version == 0 {
			return t.insertDocument(&out, body)
		}
		return t.replaceDocument(&out, body)
	})
	return out, err
}

// encodeDocument returns the stored form of a body: the contents are those of the user, or of the user of the run.
func (t *tx) encodeDocument(d *store.Document) ([]byte, error) {
	find := func() (*codec.DataKey, error) { return t.dataKey(d.User) }
	if d.User == "" && d.Run != "" {
		find = func() (*codec.DataKey, error) { return t.dataKeyOfRun(d.Run) }
	}
	key, err := find()
	return t.s.encode(key, d.Body), err
}

func (t *tx) insertDocument(d *store.Document, body []byte) error {
	n, err := t.exec(`INSERT INTO document (kind, id, user_id, run_id, version, body, due, created, updated)
		VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $7) ON CONFLICT DO NOTHING`,
		text(d.Kind), text(d.ID), text(d.User), text(d.Run), body, nullTime(d.Due), t.now)
	if err == nil && n == 0 {
		err = store.ErrExists
	}
	d.Version, d.Created, d.Updated = 1, time.UnixMilli(t.now), time.UnixMilli(t.now)
	return err
}

func (t *tx) replaceDocument(d *store.Document, body []byte) error {
	var version, created int64
	err := t.queryRow([]any{&version, &created}, "SELECT version, created FROM document WHERE kind = $1 AND id = $2 FOR UPDATE", text(d.Kind), text(d.ID))
	if err == nil && version != d.Version {
		err = store.ErrChanged
	}
	if err != nil {
		return err
	}
	d.Version, d.Created, d.Updated = d.Version+1, time.UnixMilli(created), time.UnixMilli(t.now)
	t.queue("UPDATE document SET user_id = $3, run_id = $4, version = $5, body = $6, due = $7, updated = $8 WHERE kind = $1 AND id = $2",
		text(d.Kind), text(d.ID), text(d.User), text(d.Run), d.Version, body, nullTime(d.Due), t.now)
	return nil
}

// Document implements store.DocumentStore.
func (s *Store) Document(ctx context.Context, kind, id string) (store.Document, error) {
	list, err := s.documents(ctx, "kind = $1 AND id = $2", text(kind), text(id))
	if err == nil && len(list) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Document{}, s.wrap("read "+kind+" "+id, err)
	}
	return list[0], nil
}

// Documents implements store.DocumentStore.
func (s *Store) Documents(ctx context.Context, f store.DocumentFilter) ([]store.Document, error) {
	of := "$3 = ''"
	if f.Run != "" {
		of = "run_id = $3 AND run_id <> ''" // which the index document_run finds
	}
	list, err := s.documents(ctx, `kind = $1 AND ($2 = '' OR user_id = $2) AND `+of+`
		AND id LIKE $4 AND id > $5 ORDER BY id LIMIT $6`, text(f.Kind), text(f.User), text(f.Run), likePrefix(f.Prefix), text(f.After), cmp.Or(f.Limit, 100))
	if err != nil {
		return nil, s.wrap("list "+f.Kind, err)
	}
	return list, nil
}

func (s *Store) documents(ctx context.Context, where string, args ...any) ([]store.Document, error) {
	out := []store.Document{}
	err := s.query(ctx, func(row pgx.Row) error {
		d, err := scanDocument(row)
		out = append(out, d)
		return err
	}, "SELECT "+documentColumns+" FROM document WHERE "+where, args...)
	return out, err
}

// DocumentKinds implements store.DocumentStore.
func (s *Store) DocumentKinds(ctx context.Context) (out []string, err error) {
	err = s.query(ctx, func(row pgx.Row) error {
		var kind string
		err := row.Scan(into(&kind))
		out = append(out, kind)
		return err
	}, "SELECT DISTINCT kind FROM document ORDER BY kind")
	return out, s.wrap("list kinds of documents", err)
}

// DeleteDocument implements store.DocumentStore.
func (s *Store) DeleteDocument(ctx context.Context, kind, id string, version int64) error {
	return s.write(ctx, "delete "+kind+" "+id, func(t *tx) error {
		var have int64
		err := t.queryRow([]any{&have}, "SELECT version FROM document WHERE kind = $1 AND id = $2 FOR UPDATE", text(kind), text(id))
		if err == nil && version != 0 && have != version {
			err = store.ErrChanged
		}
		t.queue("DELETE FROM document WHERE kind = $1 AND id = $2", text(kind), text(id))
		return err
	})
}

// TrimDocuments implements store.DocumentStore.
func (s *Store) TrimDocuments(ctx context.Context, kind string, keep int, after string) (int, error) {
	n, err := s.exec(ctx, "trim "+kind, `DELETE FROM document WHERE kind = $1 AND id IN (SELECT id FROM document WHERE kind = $1
		AND (id > $2 OR id >= (SELECT id FROM document WHERE kind = $1 ORDER BY id LIMIT 1 OFFSET $3)) ORDER BY id DESC LIMIT $4)`,
		text(kind), text(after), keep, store.MaxTrimmed)
	return int(n), err
}

// ClaimDocuments implements store.DocumentStore. Callers in other processes pass over what one of them
// is claiming.
func (s *Store) ClaimDocuments(ctx context.Context, kind string, ttl time.Duration, limit int) ([]store.Document, error) {
	// Most calls find nothing: those do not write.
	var due bool
	err := s.queryRow(ctx, []any{&due}, "SELECT EXISTS (SELECT 1 FROM document WHERE kind = $1 AND due <= coalesce($2::bigint, weir_now()))", text(kind), s.nowArg())
	if err != nil || !due {
		return nil, s.wrap("claim "+kind, err)
	}
	var out []store.Document
	err = s.write(ctx, "claim "+kind, func(t *tx) error {
		out = nil
		if err := t.flush(); err != nil { // t.now is read
			return err
		}
		return t.query(func(row pgx.Row) error {
			d, err := scanDocument(row)
			out = append(out, d)
			return err
		}, `WITH due AS (SELECT d.kind, d.id, d.due FROM document d WHERE d.kind = $1 AND d.due <= $2 ORDER BY d.due, d.id LIMIT $3 FOR UPDATE SKIP LOCKED),
			claimed AS (UPDATE document d SET version = d.version + 1, due = $4, updated = $2 FROM due WHERE d.kind = due.kind AND d.id = due.id
				RETURNING d.*, due.due AS earlier)
			SELECT `+documentColumns+` FROM claimed ORDER BY earlier, id`, text(kind), t.now, limit, t.now+ttl.Milliseconds())
	})
	return out, err
}

// insertNotice writes a notice if notices are requested.
const insertNotice = `INSERT INTO notice (run, seq, status, waiting, at) SELECT $1::bigint, $2::bigint, $3::text, $4::bytea, $5::bigint
	WHERE EXISTS (SELECT 1 FROM document WHERE kind = '` + store.NoticeKind + `')`

const insertNearNotice = `INSERT INTO notice (run, seq, status, budgets, at) SELECT $1::bigint, $2::bigint, $3::text, $4::bytea, $5::bigint
	WHERE EXISTS (SELECT 1 FROM document WHERE kind = '` + store.NoticeKind + `')`

// notifyNear queues a notice about budgets that are near their limits.
func (w *commitWriter) notifyNear(head *headRow) error {
	if len(w.a.NearBudgets) == 0 {
		return nil
	}
	budgets, err := json.Marshal(w.a.NearBudgets)
	if err == nil {
		w.t.queue(insertNearNotice, w.r.num, w.a.Commit.Seq, head.status, w.encode(budgets), w.a.Commit.At)
	}
	return err
}

// notify queues a notice if the commit ends the run, or changes the questions that it waits for.
func (w *commitWriter) notify(head *headRow) {
	was := &w.r.head
	same := was.status == head.status && string(was.waiting) == string(head.waiting)
	if same || len(head.waiting) == 0 && !w.a.Head.Status.Ended() {
		return
	}
	w.t.queue(insertNotice, w.r.num, w.a.Commit.Seq, head.status, w.encode(head.waiting), w.a.Commit.At)
}

// Notices implements store.DocumentStore.
func (s *Store) Notices(ctx context.Context, limit int) ([]store.Notice, error) {
	var out []store.Notice
	err := s.query(ctx, func(row pgx.Row) error {
		var n store.Notice
		var status string
		var waiting, budgets []byte
		var at int64
		err := row.Scan(&n.ID, into(&n.Run), &n.Seq, &status, &waiting, &budgets, &at)
		if err != nil {
			return err
		}
		n.At = time.UnixMilli(at)
		n.Status, err = parseStatus(status)
		var h store.Head
		if err = errors.Join(err, h.AddEncoded(waiting)); err != nil {
			return err
		}
		n.Waiting = questionIDs(h.Waiting)
		if budgets != nil {
			err = json.Unmarshal(budgets, &n.Budgets)
		}
		out = append(out, n)
		return err
	}, "SELECT n.id, r.id, n.seq, n.status, n.waiting, n.budgets, n.at FROM notice n JOIN run r ON r.num = n.run ORDER BY n.id LIMIT $1", limit)
	return out, s.wrap("read notices", err)
}

func questionIDs(list []engine.Interrupt) (ids []string) {
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// RemoveNotices implements store.DocumentStore.
func (s *Store) RemoveNotices(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return s.check(ctx)
	}
	_, err := s.exec(ctx, "remove notices", "DELETE FROM notice WHERE id = ANY($1)", ids)
	return err
}
