package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// messageBytes are the bytes of a message, and where the payload of its commit has them. data is nil if the payload is
// encoded, until cutEncoded has decoded it.
type messageBytes struct {
	data          []byte
	run, seq      int64
	start, length int
}

// messageBytesColumns reads a range of a payload that is not encoded without reading the rest; see codec.Magic.
const messageBytesColumns = `CASE WHEN substring(c.payload FROM 1 FOR 8) <> '\x0177656972000001'::bytea
	THEN substring(c.payload FROM m.start + 1 FOR m.length) END, m.run, m.seq, m.start, m.length`

func (m *messageBytes) columns() []any { return []any{&m.data, &m.run, &m.seq, &m.start, &m.length} }

// commitKey is the key of a commit.
type commitKey struct{ run, seq int64 }

// cutEncoded reads encoded payloads, and cuts the messages out of them.
func (s *Store) cutEncoded(ctx context.Context, list []messageBytes) error {
	wanted := map[commitKey][]*messageBytes{}
	for i := range list {
		m := &list[i]
		if m.data != nil {
			continue
		}
		c := commitKey{m.run, m.seq}
		wanted[c] = append(wanted[c], m)
		if len(wanted) == batchCommits {
			if err := s.cutFrom(ctx, wanted); err != nil {
				return err
			}
			clear(wanted)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return s.cutFrom(ctx, wanted)
}

// cutFrom reads the payloads of commits, each once, and cuts messages out of them.
func (s *Store) cutFrom(ctx context.Context, wanted map[commitKey][]*messageBytes) error {
	var runs, seqs []int64
	for c := range wanted { // order: rows come in any
		runs, seqs = append(runs, c.run), append(seqs, c.seq)
	}
	return s.query(ctx, func(row pgx.Row) error {
		var c commitKey
		var payload []byte
		if err := row.Scan(&c.run, &c.seq, &payload); err != nil {
			return err
		}
		for _, m := range wanted[c] {
			if m.start < 0 || m.length < 0 || m.start+m.length > len(payload) {
				return fmt.Errorf("%w: a message is outside of commit %d", store.ErrCorrupt, c.seq)
			}
			m.data = payload[m.start : m.start+m.length]
		}
		return nil
	}, `SELECT c.run, c.seq, c.payload FROM unnest($1::bigint[], $2::bigint[]) AS u (run, seq) JOIN run_commit c ON c.run = u.run AND c.seq = u.seq`, runs, seqs)
}

// storedTerms returns the terms that are kept for the search. There are none of an encrypted text, which they would
// reveal.
func storedTerms(key *codec.DataKey, item *memory.Item) []string {
	if key != nil {
		return []string{}
	}
	return append([]string{}, item.Terms()...) // not nil
}

// findEncodedItem finds the item of a scope that has the text of a write without a key. It reads all of the kind,
// because the database cannot compare encrypted texts.
func (t *tx) findEncodedItem(scope int64, w *memory.Write) (num int64, was memory.Item, err error) {
	err = t.query(func(row pgx.Row) error {
		var n int64
		item, err := scanItem(rowPrefix{&n}.of(row))
		if err == nil && num == 0 && item.Text == w.Text && (w.Kind != memory.Episode || item.At.UnixMilli() == w.At.UnixMilli()) {
			num, was = n, item
		}
		return err
	}, "SELECT i.num, "+itemColumns+fromItems+" WHERE i.scope = $1 AND i.kind = $2 AND i.key = '' ORDER BY i.num", scope, string(w.Kind))
	return num, was, err
}

// searchItems is matchingItems for a database with encrypted texts: it reads all items of the scope.
func (s *Store) searchItems(ctx context.Context, scope int64, q *memory.Query, out *memory.QueryResult) error {
	terms := memory.SearchTerms(q.Text)
	stats := memory.Stats{With: make([]int, len(terms))}
	items := map[int64]memory.Item{}
	var list []memory.Candidate
	err := s.query(ctx, func(row pgx.Row) error {
		var num int64
		item, err := scanItem(rowPrefix{&num}.of(row))
		if err != nil {
			return err
		}
		words := item.Terms()
		stats.Items, stats.Words = stats.Items+1, stats.Words+len(words)
		fits := false
		for i, t := range terms {
			if t.MatchesAny(words) {
				stats.With[i]++
				fits = true
			}
		}
		if fits && q.Matches(&item) {
			items[num] = item
			list = append(list, memory.Candidate{Terms: words, At: item.At, Seq: num})
		}
		return nil
	}, "SELECT i.num, "+itemColumns+fromItems+" WHERE i.scope = $1", scope)
	if err != nil {
		return err
	}
	memory.Rank(terms, stats, list)
	out.Total = len(list)
	for _, c := range list[:min(len(list), q.Limit)] {
		out.Items = append(out.Items, items[c.Seq])
	}
	return nil
}
