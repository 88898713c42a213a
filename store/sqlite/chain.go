package sqlite

import (
	"database/sql"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// chainState is the cached end of a run's chain.
type chainState struct {
	known bool
	seq   int64 // of the last commit
	tag   store.Tag
}

// nextTag returns the tag of the next commit; refused is an event that cannot be stored.
func (w *writeTx) nextTag(r *runState, c *engine.Commit) (tag store.Tag, refused, failed error) {
	if !r.chain.known || r.chain.seq != c.Seq-1 {
		if r.chain.tag, failed = w.lastTag(r, c.Run, c.Seq-1); failed != nil {
			return 0, nil, failed
		}
		r.chain.known = true
	}
	room, _ := w.s.payload.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	defer w.s.payload.Put(room)
	payload, err := store.AppendPayload((*room)[:0], c.Events)
	if err != nil {
		return 0, err, nil
	}
	*room = payload
	r.chain.seq = c.Seq
	r.chain.tag = r.chain.tag.Next(store.HeaderOf(c), store.CommitDigest(r.salt, c.Run, c.Seq, payload))
	return r.chain.tag, nil, nil
}

// lastTag returns the tag that a run's next commit follows.
func (w *writeTx) lastTag(r *runState, run string, seq int64) (store.Tag, error) {
	l := w.lineage()
	if seq > r.base.seq {
		tag, ok, err := l.tag(r.num, seq)
		if ok || err != nil {
			return tag, err
		}
		// A commit from before there were chains.
		return store.FirstTag(0, store.OriginHash(r.salt, run)), nil
	}
	base, err := l.baseTag(r.base)
	return store.FirstTag(base, store.OriginHash(r.salt, run)), err
}

// baseTag returns the tag of the last commit that a run shares with its base, 0 for none.
func (l lineage) baseTag(b sharedBase) (store.Tag, error) {
	if b.run == 0 || b.seq == 0 {
		return 0, nil
	}
	levels, err := l.sharedRanges(b.run, b.seq)
	if err != nil || len(levels) == 0 {
		return 0, err
	}
	tag, _, err := l.tag(levels[len(levels)-1].num, b.seq)
	return tag, err
}

// tag is that of a commit; ok is false where it has none.
func (l lineage) tag(num, seq int64) (_ store.Tag, ok bool, err error) {
	var tag sql.NullInt64
	err = l.q.QueryRowContext(l.ctx, "SELECT tag FROM run_commit WHERE id = ?", num*rowsPerParent+seq).Scan(&tag)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return store.Tag(tag.Int64), tag.Valid, err
}
