package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/memory"
)

const itemColumns = `i.id, s.namespace, s.user_id, s.session, i.kind, i.key, i.created, i.version, i.text, i.tags, i.at, i.written,
	i.run_id, i.flow, i.session, i.round, i.author`

const fromItems = " FROM recall_item i JOIN recall_scope s ON s.num = i.scope"

func scanItem(row pgx.Row) (i memory.Item, err error) {
	var created int64
	i.Version, err = scanVersion(row, into(&i.ID), into(&i.Namespace), into(&i.User), into(&i.Session), (*text)(&i.Kind), into(&i.Key), &created)
	i.Created = time.UnixMilli(created)
	return i, err
}

// scanVersion reads a version behind other columns.
func scanVersion(row pgx.Row, before ...any) (v memory.Version, err error) {
	var tags string
	var at, written int64
	x := &v.Source
	err = row.Scan(append(before, &v.Number, into(&v.Text), into(&tags), &at, &written, into(&x.Run), into(&x.Flow), into(&x.Session), &x.Round, into(&x.By))...)
	v.At, v.Written = time.UnixMilli(at), time.UnixMilli(written)
	if err == nil && tags != "" {
		err = json.Unmarshal([]byte(tags), &v.Tags)
	}
	return v, err
}

// Recall finds items of one scope; see memory.Store.
func (s *Store) Recall(ctx context.Context, q memory.Query) (memory.QueryResult, error) {
	const op = "recall"
	out := memory.QueryResult{Items: []memory.Item{}}
	q, err := q.Normalized()
	if err != nil {
		return memory.QueryResult{}, fmt.Errorf("%s: %w", op, err)
	}
	var scope int64
	err = s.queryRow(ctx, []any{&scope}, selectScope, scopeArgs(q.Scope)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return out, nil
	case err != nil:
	case q.Text == "":
		err = s.newestItems(ctx, scope, &q, &out)
	case s.keys.codec.HasKeys():
		err = s.searchItems(ctx, scope, &q, &out)
	default:
		err = s.matchingItems(ctx, scope, &q, &out)
	}
	if err != nil {
		return memory.QueryResult{}, s.wrap(op, err)
	}
	return out, nil
}

// queryCondition is memory.Query.Matches in SQL.
const queryCondition = "i.scope = $1 AND ($2 = '' OR i.kind = $2) AND (NOT $3 OR i.key <> '') AND i.at >= $4"

func queryArgs(scope int64, q *memory.Query) []any {
	since := int64(math.MinInt64)
	if !q.Since.IsZero() {
		since = q.Since.UnixMilli()
		if q.Since.After(time.UnixMilli(since)) { // not on a millisecond
			since++
		}
	}
	return []any{scope, string(q.Kind), q.Keyed, since}
}

// newestItems lists items without a text.
func (s *Store) newestItems(ctx context.Context, scope int64, q *memory.Query, out *memory.QueryResult) (err error) {
	args := queryArgs(scope, q)
	if err := s.queryRow(ctx, []any{&out.Total}, "SELECT count(*) FROM recall_item i WHERE "+queryCondition, args...); err != nil {
		return err
	}
	out.Items, err = s.items(ctx, queryCondition+" ORDER BY i.at DESC, i.num DESC LIMIT $5", append(args, q.Limit)...)
	return err
}

func (s *Store) items(ctx context.Context, where string, args ...any) ([]memory.Item, error) {
	out := []memory.Item{}
	err := s.query(ctx, func(row pgx.Row) error {
		i, err := scanItem(row)
		out = append(out, i)
		return err
	}, "SELECT "+itemColumns+fromItems+" WHERE "+where, args...)
	return out, err
}

// fromMatching selects the items that hold a term, with the sum of the weights of their terms.
const fromMatching = ` FROM (SELECT m.item, sum(m.weight) AS weight FROM (
		SELECT DISTINCT t.item, u.n, u.weight FROM unnest($5::text[], $6::text[], $7::float8[]) WITH ORDINALITY AS u (low, high, weight, n)
		JOIN recall_term t ON t.scope = $1 AND t.term >= u.low COLLATE "C" AND t.term < u.high COLLATE "C") m GROUP BY m.item) f
	JOIN recall_item i ON i.num = f.item WHERE ` + queryCondition

// matchingItems finds the items that hold a term of the text, and ranks them. If there are more than
// memory.MaxCandidates, it ranks those with the rarest terms.
func (s *Store) matchingItems(ctx context.Context, scope int64, q *memory.Query, out *memory.QueryResult) error {
	terms := memory.SearchTerms(q.Text)
	if len(terms) == 0 {
		return nil
	}
	stats, err := s.recallStats(ctx, scope, terms)
	if err != nil {
		return err
	}
	weights := make([]float64, len(terms))
	for i, n := range stats.With {
		weights[i] = math.Log(1 + (float64(stats.Items)-float64(n)+0.5)/(float64(n)+0.5))
	}
	from, to := termRanges(terms)
	args := append(queryArgs(scope, q), from, to, weights)
	if err := s.queryRow(ctx, []any{&out.Total}, "SELECT count(*)"+fromMatching, args...); err != nil || out.Total == 0 {
		return err
	}
	var list []memory.Candidate
	err = s.query(ctx, func(row pgx.Row) error {
		var c memory.Candidate
		var at int64
		err := row.Scan(&c.Seq, &at, &c.Terms)
		c.At = time.UnixMilli(at)
		list = append(list, c)
		return err
	}, "SELECT i.num, i.at, i.terms"+fromMatching+" ORDER BY f.weight DESC, i.at DESC, i.num DESC LIMIT $8", append(args, memory.MaxCandidates)...)
	if err != nil {
		return err
	}
	memory.Rank(terms, stats, list)
	for _, c := range list[:min(len(list), q.Limit)] {
		found, err := s.items(ctx, "i.num = $1", c.Seq)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, found...) // none if it was forgotten meanwhile
	}
	return nil
}

// recallStats reads the statistics of a scope that ranking needs.
func (s *Store) recallStats(ctx context.Context, scope int64, terms []memory.Term) (st memory.Stats, err error) {
	err = s.queryRow(ctx, []any{&st.Items, &st.Words}, "SELECT count(*), coalesce(sum(cardinality(terms)), 0) FROM recall_item WHERE scope = $1", scope)
	if err != nil {
		return st, err
	}
	from, to := termRanges(terms)
	err = s.query(ctx, func(row pgx.Row) error {
		var n int
		err := row.Scan(&n)
		st.With = append(st.With, n)
		return err
	}, `SELECT (SELECT count(DISTINCT t.item) FROM recall_term t WHERE t.scope = $1 AND t.term >= u.low COLLATE "C" AND t.term < u.high COLLATE "C")
		FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS u (low, high, n) ORDER BY u.n`, scope, from, to)
	return st, err
}

// termRanges returns the ranges of the terms that search terms match: those from low on and below high.
func termRanges(list []memory.Term) (low, high []string) {
	for _, t := range list {
		end := t.Text + "\x01" // terms have no control characters
		if t.Prefix {
			end = t.Text + "\U0010ffff"
		}
		low, high = append(low, t.Text), append(high, end)
	}
	return low, high
}

// Memories implements store.MemoryStore.
func (s *Store) Memories(ctx context.Context, f memory.Filter) ([]memory.Item, error) {
	where, args := itemCondition(f)
	var limit *int
	if f.Limit > 0 {
		limit = &f.Limit
	}
	behind := int64(math.MaxInt64)
	if !f.Behind.IsStart() {
		behind = f.Behind.Written.UnixMilli()
	}
	out, err := s.items(ctx, where+` AND (i.written < $9 OR i.written = $9 AND i.num < coalesce((SELECT x.num FROM recall_item x WHERE x.id = $10), $11))
		ORDER BY i.written DESC, i.num DESC LIMIT $8`, append(args, limit, behind, text(f.Behind.ID), int64(math.MaxInt64))...)
	return out, s.wrap("list memories", err)
}

// MemoryOwners implements store.MemoryStore.
func (s *Store) MemoryOwners(ctx context.Context, f memory.Filter) ([]memory.Owner, error) {
	where, args := itemCondition(f)
	out := []memory.Owner{}
	err := s.query(ctx, func(row pgx.Row) error {
		var o memory.Owner
		var newest int64
		err := row.Scan(into(&o.Namespace), into(&o.User), into(&o.Session), &o.Items, &newest)
		o.Newest = time.UnixMilli(newest)
		out = append(out, o)
		return err
	}, "SELECT s.namespace, s.user_id, s.session, count(*), max(i.written)"+fromItems+" WHERE "+where+
		" GROUP BY s.num, s.namespace, s.user_id, s.session ORDER BY s.namespace, s.user_id, s.session", args...)
	return out, s.wrap("list memories", err)
}

// MemoryVersions implements store.MemoryStore.
func (s *Store) MemoryVersions(ctx context.Context, id string) ([]memory.Version, error) {
	out := []memory.Version{}
	err := s.query(ctx, func(row pgx.Row) error {
		v, err := scanVersion(row)
		out = append(out, v)
		return err
	}, `SELECT `+versionColumns+` FROM recall_item WHERE id = $1
		UNION ALL SELECT p.version, p.text, p.tags, p.at, p.written, p.run_id, p.flow, p.session, p.round, p.author
		FROM recall_past p JOIN recall_item i ON i.num = p.item WHERE i.id = $1 ORDER BY version`, text(id))
	if err == nil && len(out) == 0 {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return nil, s.wrap("memory "+id, err)
	}
	return out, nil
}
