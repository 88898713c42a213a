package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// A link in a tombstone is the number of its events, the milliseconds since the link before, its tag and its digest.

func appendTombstoneLink(b []byte, l *store.ChainLink, before int64) []byte {
	b = binary.AppendUvarint(b, uint64(max(l.Count, 0)))
	b = binary.AppendVarint(b, l.At-before)
	b = binary.BigEndian.AppendUint32(b, uint32(l.Tag))
	return append(b, l.Digest[:]...)
}

var errTombstone = fmt.Errorf("%w: the tombstone cannot be read", store.ErrCorrupt)

// cutTombstoneLink reads the link that b begins with; before is the one before it.
func cutTombstoneLink(b []byte, before *store.ChainLink) (l store.ChainLink, rest []byte, err error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > maxNumber {
		return l, nil, errTombstone
	}
	b = b[n:]
	after, n := binary.Varint(b)
	if n <= 0 || len(b)-n < 4+len(l.Digest) {
		return l, nil, errTombstone
	}
	b = b[n:]
	l.Header = store.Header{Seq: before.Seq + 1, First: before.First + before.Count, At: before.At + after}
	l.Count, l.HasTag, l.Tag = int64(count), true, store.Tag(binary.BigEndian.Uint32(b))
	return l, b[4+copy(l.Digest[:], b[4:]):], nil
}

// tombstones are the links of runs that were read so far, by number. A transaction that is repeated reads only what
// was committed since.
type tombstones map[int64]*tombstone

type tombstone struct {
	links   []byte
	seq, at int64 // of the last link
}

// writeTombstones queues tombstones of runs that are about to be deleted.
func (x *deleter) writeTombstones(runs []int64) error {
	type row struct {
		chain  store.Chain
		secret []byte
	}
	var rows []row
	err := x.query(func(pr pgx.Row) (err error) {
		var r row
		r.chain, err = scanChain(rowPrefix{&r.secret}.of(pr))
		rows = append(rows, r)
		return err
	}, "SELECT secret, * FROM ("+selectChain+" WHERE num = ANY($1)) c ORDER BY num", runs)
	if err != nil {
		return err
	}
	for i := range rows {
		c := &rows[i].chain
		d := x.drafts[c.Number]
		if d == nil {
			d = &tombstone{links: []byte{}}
			x.drafts[c.Number] = d
		}
		if err := x.extend(d, c, rows[i].secret); err != nil {
			return err
		}
		x.queue("INSERT INTO tombstone (num, origin, base, base_seq, base_last, links) VALUES ($1, $2, $3, $4, $5, $6)",
			c.Number, c.Origin[:], nullInt(c.Base), c.BaseSeq, c.BaseEvents, slices.Clone(d.links))
	}
	return nil
}

// extend adds the links of the commits that a tombstone lacks.
func (x *deleter) extend(d *tombstone, c *store.Chain, secret []byte) error {
	for {
		rows, err := commitRowsOf(x.tx, c.Number, d.seq, maxNumber)
		for i := range rows {
			r := &rows[i]
			l := store.ChainLink{
				Header: store.Header{Seq: r.seq, First: r.first, At: r.at}, Count: r.count, Tag: store.Tag(r.tag),
				Digest: store.CommitDigest(secret, c.Run, r.seq, r.payload),
			}
			d.links, d.at = appendTombstoneLink(d.links, &l, d.at), l.At
			d.seq = r.seq
		}
		if err != nil || len(rows) < batchCommits {
			return err
		}
	}
}

// erasedLinks iterates over the links of a tombstone.
func (s *Store) erasedLinks(ctx context.Context, c store.Chain) iter.Seq2[store.ChainLink, error] {
	return func(yield func(store.ChainLink, error) bool) {
		var b []byte
		err := s.queryRow(ctx, []any{&b}, "SELECT links FROM tombstone WHERE num = $1", c.Number)
		before := store.ChainLink{Header: store.Header{Seq: c.BaseSeq, First: c.BaseEvents + 1}}
		for err == nil && len(b) > 0 {
			var l store.ChainLink
			if l, b, err = cutTombstoneLink(b, &before); err == nil && !yield(l, nil) {
				return
			}
			before = l
		}
		if err != nil {
			yield(store.ChainLink{}, s.wrap(fmt.Sprintf("tombstone of run %d", c.Number), err))
		}
	}
}

// markDeletion queues the note that tables may have the space of deleted rows.
func (t *tx) markDeletion() {
	if !t.deletes {
		t.deletes = true
		t.queue("INSERT INTO deletion (at) VALUES (coalesce($1::bigint, weir_now()))", t.s.nowArg())
	}
}

// remains says where deleted data may remain.
const remains = "the unused space and the log of the server's files, and its standbys and backups, may contain parts of it until they are overwritten"

// remainsEncrypted adds to it what the destruction of a data key achieves.
const remainsEncrypted = `; what was encrypted cannot be read from them, because its data key was destroyed, except from copies that have the wrapped key too: ` +
	`these become unreadable when the master key that wrapped it is destroyed`

// afterDeletion completes the result of a deletion, and frees the space of what was deleted unless that is deferred.
func (s *Store) afterDeletion(ctx context.Context, out store.DeleteResult, err error, deferred bool) (store.DeleteResult, error) {
	if err != nil {
		return out, err
	}
	if out.Runs+out.Sessions+out.Trajectories+out.Memories+out.Learned+out.UserValues > 0 {
		out.Remains = remains
	}
	if deferred {
		err = s.queryRow(ctx, []any{&out.Traces}, "SELECT EXISTS (SELECT 1 FROM deletion)")
	} else {
		_, err = s.Compact(ctx)
	}
	return out, err
}

// Compact has the server free the space of deleted rows (VACUUM), so that new rows overwrite them, and reports
// whether there were any. It stops neither readers nor writers.
func (s *Store) Compact(ctx context.Context) (bool, error) {
	var last *int64
	err := s.queryRow(ctx, []any{&last}, "SELECT max(num) FROM deletion")
	if err != nil || last == nil {
		return false, s.wrap("look for deleted rows", err)
	}
	if s.opts.ReadOnly {
		return false, s.wrap("free the space of deleted rows", store.ErrReadOnly)
	}
	if err := s.vacuum(ctx); err != nil {
		return false, s.wrap("free the space of deleted rows", err)
	}
	_, err = s.exec(ctx, "free the space of deleted rows", "DELETE FROM deletion WHERE num <= $1", *last)
	return err == nil, err
}

func (s *Store) vacuum(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SET statement_timeout = 0"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "VACUUM "+vacuumedTables)
	_, reset := conn.Exec(context.WithoutCancel(ctx), "RESET statement_timeout")
	return errors.Join(err, reset)
}

// vacuumedTables are the tables from which deletions remove rows.
const vacuumedTables = `message, run_commit, context, checkpoint, inbox, live_text, live_reader, notice, document, user_value, queue, session_change, run, session,
	cache, data_key, recall_item, recall_past, recall_term, recall_scope, recall_call, access_token, access_request, trajectory_round, trajectory_edge,
	trajectory_query, trajectory_state, trajectory_action, trajectory_knowledge, trajectory_tool, trajectory_table, trajectory_column,
	trajectory_file, trajectory_script, trajectory_skill`

// RestoreErased keeps chains of runs that were erased in another store; see store.ArchiveStore. Every link needs a tag and
// a digest.
func (s *Store) RestoreErased(ctx context.Context, chains []store.ErasedChain) (n int, err error) {
	err = s.write(ctx, "copy chains of erased runs", func(t *tx) error {
		n = 0
		t.queue(awaitDeletions)
		for i := range chains {
			made, err := t.restoreTombstone(&chains[i])
			if err != nil {
				return err
			}
			if made {
				n++
			}
		}
		return t.flush()
	})
	return n, err
}

func (t *tx) restoreTombstone(c *store.ErasedChain) (made bool, err error) {
	number := func(query string, arg any) (num int64, err error) {
		err = t.queryRow([]any{&num}, query, arg)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, nil
		}
		return num, err
	}
	if num, err := number("SELECT num FROM tombstone WHERE origin = $1", c.Origin[:]); err != nil || num > 0 {
		return false, err
	}
	var base int64
	if c.BaseRun != "" {
		base, err = number("SELECT num FROM run WHERE id = $1", text(c.BaseRun))
	} else if c.BaseOrigin != (store.Hash{}) {
		base, err = number("SELECT num FROM tombstone WHERE origin = $1", c.BaseOrigin[:])
	}
	if err == nil && base == 0 && c.BaseSeq > 0 {
		err = fmt.Errorf("the run before an erased one: %w", store.ErrNotFound)
	}
	if err == nil && c.Unchained > 0 {
		err = store.ErrUnchained
	}
	links, at := []byte{}, int64(0)
	for i := range c.Links {
		if l := &c.Links[i]; l.Err != nil || !l.HasTag {
			return false, store.ErrUnchained
		}
		links, at = appendTombstoneLink(links, &c.Links[i], at), c.Links[i].At
	}
	if err != nil {
		return false, err
	}
	t.queue(`INSERT INTO tombstone (num, origin, base, base_seq, base_last, links)
		VALUES (nextval(pg_get_serial_sequence('run', 'num')), $1, $2, $3, $4, $5)`, c.Origin[:], nullInt(base), c.BaseSeq, c.BaseEvents, links)
	return true, nil
}
