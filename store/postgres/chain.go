package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

const selectChain = `SELECT id, num, secret, coalesce(base, 0) AS base, base_seq, base_last FROM run`

// Chain returns the chain of a run; store.ErrNotFound.
func (s *Store) Chain(ctx context.Context, run string) (c store.Chain, err error) {
	found := false
	err = s.query(ctx, func(row pgx.Row) error {
		found = true
		c, err = scanChain(row)
		return err
	}, selectChain+" WHERE id = $1", text(run))
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return c, s.wrap("chain of run "+run, err)
}

// Chains lists the chains of all runs, erased ones included, in the order in which they were created, so that the
// base of a run is before it.
func (s *Store) Chains(ctx context.Context) ([]store.Chain, error) {
	out := []store.Chain{}
	err := s.query(ctx, func(row pgx.Row) error {
		c, err := scanChain(row)
		out = append(out, c)
		return err
	}, selectChain+" UNION ALL SELECT '', num, origin, coalesce(base, 0), base_seq, base_last FROM tombstone ORDER BY num")
	return out, s.wrap("list chains", err)
}

func scanChain(row pgx.Row) (c store.Chain, err error) {
	var secret []byte
	err = row.Scan(into(&c.Run), &c.Number, &secret, &c.Base, &c.BaseSeq, &c.BaseEvents)
	if c.Run == "" {
		copy(c.Origin[:], secret)
	} else {
		c.Origin = store.OriginHash(secret, c.Run)
	}
	return c, err
}

// Links iterates over the links of a chain. If one cannot be read, its Err says so, and the
// iteration continues.
func (s *Store) Links(ctx context.Context, c store.Chain) iter.Seq2[store.ChainLink, error] {
	if c.Run == "" {
		return s.erasedLinks(ctx, c)
	}
	return func(yield func(store.ChainLink, error) bool) {
		var secret []byte
		err := s.queryRow(ctx, []any{&secret}, "SELECT secret FROM run WHERE num = $1", c.Number)
		for seq := int64(0); err == nil; {
			var rows []commitRow
			if rows, err = s.commitRows(ctx, c.Number, seq, maxNumber); err != nil {
				break
			}
			for i := range rows {
				if !yield(rows[i].link(c.Run, secret), nil) {
					return
				}
				seq = rows[i].seq
			}
			if len(rows) < batchCommits {
				return
			}
		}
		yield(store.ChainLink{}, s.wrap("read the chain of run "+c.Run, err))
	}
}

// link returns a commit in its chain. The digest is that of the bytes that are stored.
func (c *commitRow) link(run string, secret []byte) store.ChainLink {
	l := store.ChainLink{
		Header: store.Header{Seq: c.seq, First: c.first, At: c.at}, Tag: store.Tag(c.tag), HasTag: true, Count: c.count,
	}
	commit, err := c.decode(run)
	if err != nil {
		l.Err = err
		return l
	}
	written, err := store.AppendPayload(nil, commit.Events)
	if err == nil && string(written) != string(c.payload) {
		err = fmt.Errorf("%w: the events are not written as Weir writes them", store.ErrCorrupt)
	}
	if l.Err = err; err == nil {
		l.Events, l.Digest = commit.Events, store.CommitDigest(secret, run, c.seq, c.payload)
	}
	return l
}
