package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/weir-run/weir/store"
)

// A link in a tombstone is flags, the number of events, the milliseconds since the
// link before, and, where the flags say so, tag and digest.
const (
	tombstoneTag    = 1 // it had a tag
	tombstoneDigest = 2 // it could be read
)

func appendTombstoneLink(b []byte, l *store.ChainLink, before int64) []byte {
	flags := byte(0)
	if l.HasTag {
		flags |= tombstoneTag
	}
	if l.Err == nil {
		flags |= tombstoneDigest
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(max(l.Count, 0)))
	b = binary.AppendVarint(b, l.At-before)
	if l.HasTag {
		b = binary.BigEndian.AppendUint32(b, uint32(l.Tag))
	}
	if l.Err == nil {
		b = append(b, l.Digest[:]...)
	}
	return b
}

var (
	errTombstone  = fmt.Errorf("%w: the tombstone cannot be read", store.ErrCorrupt)
	errUnreadable = errors.New("it could not be read when it was erased")
)

// cutTombstoneLink reads the link that b begins with; before is the one before.
func cutTombstoneLink(b []byte, before *store.ChainLink) (l store.ChainLink, rest []byte, err error) {
	if len(b) == 0 || b[0]&^(tombstoneTag|tombstoneDigest) != 0 {
		return l, nil, errTombstone
	}
	flags, b := b[0], b[1:]
	count, n := binary.Uvarint(b)
	if n <= 0 || count > maxNumber {
		return l, nil, errTombstone
	}
	b = b[n:]
	after, n := binary.Varint(b)
	if n <= 0 {
		return l, nil, errTombstone
	}
	b = b[n:]
	l.Header = store.Header{Seq: before.Seq + 1, First: before.First + before.Count, At: before.At + after}
	l.Count = int64(count)
	if l.HasTag = flags&tombstoneTag != 0; l.HasTag {
		if len(b) < 4 {
			return l, nil, errTombstone
		}
		l.Tag, b = store.Tag(binary.BigEndian.Uint32(b)), b[4:]
	}
	if flags&tombstoneDigest == 0 {
		l.Err = errUnreadable
		return l, b, nil
	}
	if len(b) < len(l.Digest) {
		return l, nil, errTombstone
	}
	return l, b[copy(l.Digest[:], b):], nil
}

// writeTombstones writes tombstones for the runs of trees that are about to be deleted.
func (x deleter) writeTombstones(s *Store, roots []int64) error {
	chains, err := s.chainsOf(x.ctx, roots)
	if err != nil {
		return err
	}
	for _, c := range chains {
		var links []byte
		at := int64(0)
		for l, err := range s.links(x.ctx, c, false) {
			if err != nil {
				return err
			}
			links, at = appendTombstoneLink(links, &l, at), l.At
		}
		seal, err := sealOf(&tombstoneFacts{c.Number, c.Origin[:], c.Base, c.BaseSeq, c.BaseEvents, c.Unchained, notNil(links)})
		if err != nil {
			return err
		}
		_, err = x.conn.ExecContext(x.ctx, `INSERT INTO tombstone (num, origin, base, base_seq, base_last, unchained, links, seal)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, c.Number, c.Origin[:], nullInt(c.Base), nullInt(c.BaseSeq), nullInt(c.BaseEvents),
			nullInt(c.Unchained), notNil(links), seal)
		if err != nil {
			return fmt.Errorf("tombstone: %w", err)
		}
	}
	return nil
}

// chainsOf returns the chains of the runs of trees.
func (s *Store) chainsOf(ctx context.Context, roots []int64) (out []store.Chain, err error) {
	list, err := json.Marshal(roots)
	if err != nil {
		return nil, err
	}
	err = s.query(ctx, func(row scanner) error {
		c, err := scanChain(row)
		out = append(out, c)
		return err
	}, selectChain+" WHERE r.root IN (SELECT value FROM json_each(?))", string(list))
	return out, err
}

// erasedLinks iterates over the links that a tombstone holds.
func (s *Store) erasedLinks(ctx context.Context, c store.Chain) iter.Seq2[store.ChainLink, error] {
	return func(yield func(store.ChainLink, error) bool) {
		var b []byte
		err := s.reader.QueryRowContext(ctx, "SELECT links FROM tombstone WHERE num = ?", c.Number).Scan(&b)
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

// RestoreErased keeps chains of runs that were erased in another store; see store.ArchiveStore.
func (s *Store) RestoreErased(ctx context.Context, chains []store.ErasedChain) (n int, err error) {
	err = s.write(ctx, "copy chains of erased runs", func(ctx context.Context) error {
		n = 0
		for i := range chains {
			made, err := s.restoreTombstone(ctx, &chains[i])
			if err != nil {
				return err
			}
			if made {
				n++
			}
		}
		return s.sealDeleted(ctx)
	})
	return n, err
}

func (s *Store) restoreTombstone(ctx context.Context, c *store.ErasedChain) (made bool, err error) {
	number := func(query string, arg any) (num int64, err error) {
		err = s.conn.QueryRowContext(ctx, query, arg).Scan(&num)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, nil
		}
		return num, err
	}
	if num, err := number("SELECT num FROM tombstone WHERE origin = ?", c.Origin[:]); err != nil || num > 0 {
		return false, err
	}
	f := tombstoneFacts{Origin: c.Origin[:], BaseSeq: c.BaseSeq, BaseLast: c.BaseEvents, Unchained: c.Unchained}
	if c.BaseRun != "" {
		f.Base, err = number("SELECT num FROM run_row WHERE id = ?", c.BaseRun)
	} else if c.BaseOrigin != (store.Hash{}) {
		f.Base, err = number("SELECT num FROM tombstone WHERE origin = ?", c.BaseOrigin[:])
	}
	if err == nil && f.Base == 0 && c.BaseSeq > 0 {
		err = fmt.Errorf("the run before an erased one: %w", store.ErrNotFound)
	}
	if err != nil {
		return false, err
	}
	at := int64(0)
	for i := range c.Links {
		f.Links, at = appendTombstoneLink(f.Links, &c.Links[i], at), c.Links[i].At
	}
	f.Links = notNil(f.Links)
	if f.Num, err = number(`SELECT 1 + max(coalesce((SELECT max(num) FROM run_row), 0), coalesce((SELECT num FROM gone WHERE name = ?), 0))`, "run"); err != nil {
		return false, err
	}
	seal, err := sealOf(&f)
	if err != nil {
		return false, err
	}
	if _, err = s.conn.ExecContext(ctx, `INSERT INTO tombstone (num, origin, base, base_seq, base_last, unchained, links, seal)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, f.Num, f.Origin, nullInt(f.Base), nullInt(f.BaseSeq), nullInt(f.BaseLast), nullInt(f.Unchained), f.Links, seal); err != nil {
		return false, err
	}
	_, err = s.conn.ExecContext(ctx, "INSERT OR REPLACE INTO gone (name, num) VALUES ('run', ?)", f.Num)
	return true, err
}
