package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// secretSize is the length of the secret of a tree of runs, in bytes.
const secretSize = 16

func newSecret() []byte {
	b := make([]byte, secretSize)
	_, _ = rand.Read(b) // never fails
	return b
}

// Create makes a run without commits of its own; see store.Journal.
func (s *Store) Create(ctx context.Context, n store.NewRun) error {
	return s.write(ctx, "create run "+n.ID, func(t *tx) error {
		t.queue(awaitDeletions)
		base, err := lineage{t}.findBase(n.Base)
		if err == nil {
			_, err = t.insertRun(&n, base, nil)
		}
		return err
	})
}

// startRun makes the run of a commit's Start.
func (w *commitWriter) startRun() (*runState, error) {
	n := w.a.Start
	if n.Message != "" {
		return w.startRound(n)
	}
	base, err := lineage{w.t}.findBase(n.Base)
	if err != nil {
		return nil, err
	}
	return w.t.insertRun(&n.NewRun, base, nil)
}

// isRefusal reports whether an error is about one run and not about the database.
func isRefusal(err error) bool {
	return errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrBusy) ||
		errors.Is(err, store.ErrRoundBase) || errors.Is(err, store.ErrSessionAdvanced)
}

// insertRun inserts the row of a run; store.ErrExists if the id is taken. x is the session of
// a round, which is locked.
func (t *tx) insertRun(n *store.NewRun, base sharedBase, x *sessionRow) (*runState, error) {
	return t.insertRestored(n, base, x, nil)
}

// insertRestored is insertRun for a tree of runs whose secret is known; nil makes one.
func (t *tx) insertRestored(n *store.NewRun, base sharedBase, x *sessionRow, secret []byte) (*runState, error) {
	r := &runState{id: n.ID, user: n.User, secret: secret, base: base, commits: base.seq, events: base.last, contexts: map[string]contextState{}, head: headRow{status: "pending"}}
	root, err := t.treeOf(r, n, x)
	if err != nil {
		return nil, err
	}
	r.tag = int32(store.FirstTag(store.Tag(base.tag), store.OriginHash(r.secret, n.ID)))
	at := n.At.UnixMilli()
	err = t.queryRow([]any{&r.num}, `WITH n AS (SELECT nextval(pg_get_serial_sequence('run', 'num')) AS num)
		INSERT INTO run (num, id, root, secret, flow, fingerprint, user_id, parent, origin, created, updated, base, base_seq, base_last,
			session, round, first, commits, events, tag)
		SELECT n.num, $1, coalesce($2, n.num), $3, $4, $5, $6, $7, $8, $9, $9, $10, $11, $12, $13, $14, $15, $11, $12, $16 FROM n
		ON CONFLICT (id) DO NOTHING RETURNING num`,
		text(n.ID), nullInt(root), r.secret, text(n.Flow), text(n.Fingerprint), text(n.User), text(n.Parent), text(n.Origin), at,
		nullInt(base.run), base.seq, base.last, nullInt(r.session), r.round, r.first, r.tag)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("run %s: %w", n.ID, store.ErrExists)
	}
	return r, err
}

// treeOf finds the tree of runs to which a new run belongs: that of its parent if the parent
// is in the store, that of its session if it is a round, else its own. The root is 0 for
// its own, and minus the number of a session for that of a session.
func (t *tx) treeOf(r *runState, n *store.NewRun, x *sessionRow) (root int64, err error) {
	if x != nil {
		r.session, r.round, r.first, r.secret, root = x.num, x.rounds+1, x.length, x.secret, -x.num
	}
	if n.Parent != "" {
		err = t.queryRow([]any{&root, &r.secret}, "SELECT root, secret FROM run WHERE id = $1", text(n.Parent))
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
	}
	if r.secret == nil {
		r.secret = newSecret()
	}
	return root, err
}
