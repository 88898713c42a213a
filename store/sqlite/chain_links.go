package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

const selectChain = `SELECT r.id, r.num, coalesce(o.salt, s.salt), coalesce(r.base, 0), coalesce(r.base_seq, 0),
	coalesce(r.base_last, 0), coalesce(r.unchained, 0)
	FROM run_row r LEFT JOIN run_row o ON o.num = r.root LEFT JOIN session s ON s.num = -r.root`

// Chain returns the chain of a run; store.ErrNotFound if there is no such run.
func (s *Store) Chain(ctx context.Context, run string) (store.Chain, error) {
	c, err := scanChain(s.reader.QueryRowContext(ctx, selectChain+" WHERE r.id = ?", run))
	return c, s.wrap("chain of run "+run, err)
}

// Chains lists the chains of all runs, those that were erased too, in the order
// that the runs were made in; so a run's base is before it.
func (s *Store) Chains(ctx context.Context) ([]store.Chain, error) {
	out := []store.Chain{}
	err := s.query(ctx, func(row scanner) error {
		c, err := scanChain(row)
		out = append(out, c)
		return err
	}, "SELECT * FROM ("+selectChain+` UNION ALL SELECT '', num, origin, coalesce(base, 0), coalesce(base_seq, 0),
		coalesce(base_last, 0), coalesce(unchained, 0) FROM tombstone)
		ORDER BY 2`)
	return out, s.wrap("list chains", err)
}

func scanChain(row scanner) (store.Chain, error) {
	var c store.Chain
	var secret []byte
	err := row.Scan(&c.Run, &c.Number, &secret, &c.Base, &c.BaseSeq, &c.BaseEvents, &c.Unchained)
	if c.Run == "" {
		copy(c.Origin[:], secret)
	} else {
		c.Origin = store.OriginHash(secret, c.Run)
	}
	return c, err
}

// secret is that of a run's chain.
func (s *Store) secret(ctx context.Context, num int64) (secret []byte, err error) {
	err = s.reader.QueryRowContext(ctx, `SELECT coalesce(o.salt, s.salt)
		FROM run_row r LEFT JOIN run_row o ON o.num = r.root LEFT JOIN session s ON s.num = -r.root WHERE r.num = ?`, num).Scan(&secret)
	return secret, err
}

// Links iterates over the links of a chain. What cannot be read of one is its Err,
// and the iteration continues.
func (s *Store) Links(ctx context.Context, c store.Chain) iter.Seq2[store.ChainLink, error] {
	return s.links(ctx, c, true)
}

// links iterates over the links of a chain. With strict, a link that is not encoded exactly as
// Weir encodes it counts as unreadable.
func (s *Store) links(ctx context.Context, c store.Chain, strict bool) iter.Seq2[store.ChainLink, error] {
	if c.Run == "" {
		return s.erasedLinks(ctx, c)
	}
	return func(yield func(store.ChainLink, error) bool) {
		secret, err := s.secret(ctx, c.Number)
		r := linkReader{s: s, chain: c, secret: secret, strict: strict}
		var links []store.ChainLink
		for err == nil {
			if r.done {
				return
			}
			if links, err = r.batch(ctx); err != nil {
				break
			}
			for _, l := range links {
				if !yield(l, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(store.ChainLink{}, s.wrap("read the chain of run "+c.Run, err))
		}
	}
}

// linkReader reads the commits of one run, each as far as it can be read.
type linkReader struct {
	s      *Store
	chain  store.Chain
	secret []byte
	strict bool

	done    bool  // there are no more links
	seq     int64 // of the last link
	events  int64 // up to there
	payload []byte
}

// commitStub is the row of a commit without its events.
type commitStub struct {
	seq, at, last int64
	tag           sql.NullInt64
}

func (r *linkReader) batch(ctx context.Context) ([]store.ChainLink, error) {
	if r.seq == 0 {
		r.events = r.chain.BaseEvents
	}
	var stubs []commitStub
	err := r.s.query(ctx, func(row scanner) error {
		var b commitStub
		err := row.Scan(&b.seq, &b.at, &b.last, &b.tag)
		stubs = append(stubs, b)
		return err
	}, `SELECT c.id & 0xffffffff, c.at + r.created, c.last, c.tag FROM run_commit c JOIN run_row r ON r.num = ?1
		WHERE c.id > (?1 << 32) + ?2 AND c.id < (?1 + 1) << 32 ORDER BY c.id LIMIT ?3`, r.chain.Number, r.seq, batchCommits)
	if err != nil {
		return nil, err
	}
	r.done = len(stubs) < batchCommits
	links := make([]store.ChainLink, 0, len(stubs))
	var read map[int64]engine.Commit
	for _, b := range stubs {
		c, ok := read[b.seq]
		var unread error
		if !ok {
			if read, unread = r.read(ctx, b.seq, stubs[len(stubs)-1].seq); ctx.Err() != nil {
				return nil, ctx.Err()
			}
			c, ok = read[b.seq]
		}
		l := store.ChainLink{Header: store.Header{Seq: b.seq, First: r.events + 1, At: b.at}, Tag: store.Tag(b.tag.Int64), HasTag: b.tag.Valid}
		if l.Count = b.last - r.events; ok {
			unread = r.fill(&l, &c)
		} else if unread == nil {
			unread = fmt.Errorf("%w: it is not there", store.ErrCorrupt)
		}
		l.Err = unread
		links = append(links, l)
		r.seq, r.events = b.seq, b.last
	}
	return links, nil
}

// fill takes over what a commit says.
func (r *linkReader) fill(l *store.ChainLink, c *engine.Commit) (err error) {
	l.First, l.Count, l.Events = c.First, int64(len(c.Events)), c.Events
	if r.payload, err = store.AppendPayload(r.payload[:0], c.Events); err != nil {
		return err
	}
	l.Digest = store.CommitDigest(r.secret, r.chain.Run, l.Seq, r.payload)
	return nil
}

// read reads as many commits as can be read together, from one on; if they cannot, it reads
// this one alone, and the error is the reason why it cannot be read.
func (r *linkReader) read(ctx context.Context, from, upto int64) (map[int64]engine.Commit, error) {
	var list []engine.Commit
	var err error
	for _, last := range []int64{upto, from} {
		c := commitReader{s: r.s, run: r.chain.Run, num: r.chain.Number, upto: last, bases: map[int64]*tokenizedText{}, strict: r.strict, after: r.chain.Unchained}
		if list, err = c.batch(ctx, from-1); len(list) > 0 {
			break
		}
	}
	out := make(map[int64]engine.Commit, len(list))
	for i := range list {
		out[list[i].Seq] = list[i]
	}
	if len(list) > 0 || errors.Is(err, context.Canceled) {
		return out, nil
	}
	return out, err
}
