package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-run/weir/memory"
)

// Recall finds items of one scope; see memory.Store.
func (s *Store) Recall(ctx context.Context, q memory.Query) (memory.QueryResult, error) {
	const op = "recall"
	q, err := q.Normalized()
	if err != nil {
		return memory.QueryResult{}, fmt.Errorf("%s: %w", op, err)
	}
	var scope int64
	err = s.reader.QueryRowContext(ctx, "SELECT num FROM recall_scope WHERE namespace = ? AND user = ? AND session = ?",
		q.Scope.Namespace, q.Scope.User, q.Scope.Session).Scan(&scope)
	if errors.Is(err, sql.ErrNoRows) {
		return memory.QueryResult{Items: []memory.Item{}}, nil
	}
	if err != nil {
		return memory.QueryResult{}, s.wrap(op, err)
	}
	var out memory.QueryResult
	if q.Text == "" {
		out, err = s.newestItems(ctx, scope, q)
	} else {
		out, err = s.matchingItems(ctx, scope, q)
	}
	return out, s.wrap(op, err)
}

// queryCondition is what Query.Fits says, in SQL; its arguments are those of fit.
const queryCondition = " i.scope = ?1 AND (?2 = '' OR i.kind = ?2) AND (NOT ?3 OR i.key IS NOT NULL) AND i.at >= ?4"

func queryArgs(scope int64, q memory.Query) []any {
	since := int64(-1 << 62)
	if !q.Since.IsZero() {
		since = q.Since.UnixMilli()
		if q.Since.After(time.UnixMilli(since)) { // not on a millisecond
			since++
		}
	}
	return []any{scope, string(q.Kind), q.Keyed, since}
}

// newestItems lists items without a text to search for.
func (s *Store) newestItems(ctx context.Context, scope int64, q memory.Query) (memory.QueryResult, error) {
	out := memory.QueryResult{Items: []memory.Item{}}
	args := queryArgs(scope, q)
	if err := s.reader.QueryRowContext(ctx, "SELECT count(*) FROM recall_item i WHERE"+queryCondition, args...).Scan(&out.Total); err != nil {
		return out, err
	}
	err := s.query(ctx, func(row scanner) error {
		i, err := scanItem(row)
		out.Items = append(out.Items, i)
		return err
	}, selectItem+" WHERE"+queryCondition+" ORDER BY i.at DESC, i.num DESC LIMIT ?5", append(args, q.Limit)...)
	return out, err
}

// fromMatching asks the index first: CROSS JOIN keeps SQLite from asking it for
// each item of the scope.
const fromMatching = " FROM recall_index CROSS JOIN recall_item i ON i.num = recall_index.rowid WHERE recall_index MATCH ?5 AND" + queryCondition

// matchingItems finds what holds a term of the text, and ranks it.
func (s *Store) matchingItems(ctx context.Context, scope int64, q memory.Query) (memory.QueryResult, error) {
	out := memory.QueryResult{Items: []memory.Item{}}
	terms := memory.SearchTerms(q.Text)
	if len(terms) == 0 {
		return out, nil
	}
	prefix := scopePrefix(scope)
	args := append(queryArgs(scope, q), matchAny(prefix, terms))
	if err := s.reader.QueryRowContext(ctx, "SELECT count(*)"+fromMatching, args...).Scan(&out.Total); err != nil || out.Total == 0 {
		return out, err
	}
	var list []memory.Candidate
	err := s.query(ctx, func(row scanner) error {
		c := memory.Candidate{}
		var at int64
		var words string
		if err := row.Scan(&c.Seq, &at, &words); err != nil {
			return err
		}
		c.At = time.UnixMilli(at)
		for w := range strings.FieldsSeq(words) {
			c.Terms = append(c.Terms, strings.TrimPrefix(w, prefix))
		}
		list = append(list, c)
		return nil
	}, "SELECT i.num, i.at, recall_index.terms"+fromMatching+" ORDER BY bm25(recall_index), i.at DESC, i.num DESC LIMIT ?6", append(args, memory.MaxCandidates)...)
	if err != nil {
		return out, err
	}
	stats, err := s.recallStats(ctx, scope, prefix, terms)
	if err != nil {
		return out, err
	}
	memory.Rank(terms, stats, list)
	for _, c := range list[:min(len(list), q.Limit)] {
		i, err := scanItem(s.reader.QueryRowContext(ctx, selectItem+" WHERE i.num = ?", c.Seq))
		if errors.Is(err, sql.ErrNoRows) {
			continue // forgotten meanwhile
		}
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, i)
	}
	return out, nil
}

// recallStats reads what ranking has to know of a scope.
func (s *Store) recallStats(ctx context.Context, scope int64, prefix string, terms []memory.Term) (st memory.Stats, err error) {
	if err := s.reader.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(words), 0) FROM recall_item WHERE scope = ?", scope).
		Scan(&st.Items, &st.Words); err != nil {
		return st, err
	}
	st.With = make([]int, len(terms))
	for i, t := range terms {
		if err := s.reader.QueryRowContext(ctx, "SELECT count(*) FROM recall_index WHERE recall_index MATCH ?", matchAny(prefix, []memory.Term{t})).
			Scan(&st.With[i]); err != nil {
			return st, err
		}
	}
	return st, nil
}

// matchAny returns an expression of the index for any of the terms. Terms hold no
// quotes, so that each stands for itself.
func matchAny(prefix string, terms []memory.Term) string {
	var b strings.Builder
	for i, t := range terms {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString(`"` + prefix + t.Text + `"`)
		if t.Prefix {
			b.WriteString(" *")
		}
	}
	return b.String()
}

// versionColumns are those of a version, selectItem reads items, and selectEarlierVersions the
// earlier versions of one.
const (
	versionColumns = `i.version, i.text, coalesce(i.tags, ''), i.at, i.written,
		coalesce(i.run, ''), coalesce(i.flow, ''), coalesce(i.session, ''), coalesce(i.round, 0), coalesce(i.author, '')`
	selectItem = "SELECT i.id, s.namespace, s.user, s.session, i.kind, coalesce(i.key, ''), i.created, " + versionColumns +
		" FROM recall_item i JOIN recall_scope s ON s.num = i.scope"
	selectEarlierVersions = "SELECT " + versionColumns + " FROM recall_past i WHERE i.item = ? ORDER BY i.version"
)

func scanItem(row scanner) (i memory.Item, err error) {
	var created int64
	i.Version, err = scanVersion(row, &i.ID, &i.Namespace, &i.User, &i.Session, &i.Kind, &i.Key, &created)
	i.Created = time.UnixMilli(created)
	return i, err
}

// scanVersion reads a version behind other columns.
func scanVersion(row scanner, before ...any) (v memory.Version, err error) {
	var tags string
	var at, written int64
	x := &v.Source
	if err := row.Scan(append(before, &v.Number, &v.Text, &tags, &at, &written, &x.Run, &x.Flow, &x.Session, &x.Round, &x.By)...); err != nil {
		return v, err
	}
	v.At, v.Written = time.UnixMilli(at), time.UnixMilli(written)
	if tags != "" {
		err = json.Unmarshal([]byte(tags), &v.Tags)
	}
	return v, err
}

// scopeCondition and filtering are what memory.Filter says of scopes and of items, in SQL;
// their arguments are those of filter.
const (
	scopeCondition = " (?1 = '' OR s.namespace = ?1) AND (?2 = '' OR s.user = ?2) AND (?3 = '' OR s.session = ?3)"
	itemCondition  = scopeCondition + ` AND (?4 = '' OR i.kind = ?4) AND (?5 = '' OR i.id = ?5)
		AND substr(i.id, 1, length(?6)) = ?6 AND (?7 = '' OR i.run = ?7 OR i.session = ?7)`
)

// behindCondition selects what a list has behind an item. Of an item that was forgotten, only the time is known.
const behindCondition = " AND (i.written < ?9 OR i.written = ?9 AND i.num < coalesce((SELECT x.num FROM recall_item x WHERE x.id = ?10), 1 << 62))"

func filterArgs(f memory.Filter) []any {
	return []any{f.Namespace, f.User, f.Session, string(f.Kind), f.ID, f.Prefix, f.From}
}

// Memories lists items of all scopes, what was written last first.
func (s *Store) Memories(ctx context.Context, f memory.Filter) ([]memory.Item, error) {
	out := []memory.Item{}
	limit, behind := f.Limit, int64(math.MaxInt64)
	if limit <= 0 {
		limit = -1
	}
	if !f.Behind.IsStart() {
		behind = f.Behind.Written.UnixMilli()
	}
	err := s.query(ctx, func(row scanner) error {
		i, err := scanItem(row)
		out = append(out, i)
		return err
	}, selectItem+" WHERE"+itemCondition+behindCondition+" ORDER BY i.written DESC, i.num DESC LIMIT ?8", append(filterArgs(f), limit, behind, f.Behind.ID)...)
	return out, s.wrap("list memories", err)
}

// MemoryOwners lists the scopes with items that match the filter, by name, with the amounts of
// stored data. The Limit and Behind of the filter are ignored.
func (s *Store) MemoryOwners(ctx context.Context, f memory.Filter) ([]memory.Owner, error) {
	out := []memory.Owner{}
	err := s.query(ctx, func(row scanner) error {
		var o memory.Owner
		var newest int64
		err := row.Scan(&o.Namespace, &o.User, &o.Session, &o.Items, &newest)
		o.Newest = time.UnixMilli(newest)
		out = append(out, o)
		return err
	}, `SELECT s.namespace, s.user, s.session, count(*), max(i.written) FROM recall_item i JOIN recall_scope s ON s.num = i.scope
		WHERE`+itemCondition+" GROUP BY s.num ORDER BY s.namespace, s.user, s.session", filterArgs(f)...)
	return out, s.wrap("list memories", err)
}

// MemoryVersions returns all versions of an item, oldest first. The error is store.ErrNotFound
// if there is no such item.
func (s *Store) MemoryVersions(ctx context.Context, id string) ([]memory.Version, error) {
	op := "memory " + id
	var num int64
	if err := s.reader.QueryRowContext(ctx, "SELECT num FROM recall_item WHERE id = ?", id).Scan(&num); err != nil {
		return nil, s.wrap(op, err)
	}
	var out []memory.Version
	err := s.query(ctx, func(row scanner) error {
		v, err := scanVersion(row)
		out = append(out, v)
		return err
	}, selectEarlierVersions, num)
	if err != nil {
		return nil, s.wrap(op, err)
	}
	now, err := scanItem(s.reader.QueryRowContext(ctx, selectItem+" WHERE i.num = ?", num))
	return append(out, now.Version), s.wrap(op, err)
}
