package sqlite

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/weir-run/weir/store"
)

// saltSize is the length of the salt of a tree of runs, in bytes.
const saltSize = 16

func newSalt() []byte {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	return salt
}

// Create makes a run without commits of its own; store.ErrExists where the id
// is taken, store.ErrNotFound where there is no such base.
func (s *Store) Create(ctx context.Context, n store.NewRun) error {
	return s.write(ctx, "create run "+n.ID, func(ctx context.Context) error {
		l := lineage{ctx, s.conn}
		base, err := l.based(n.Base)
		if err != nil {
			return err
		}
		_, err = l.create(n, base, round{}, 0)
		return err
	})
}

// create inserts the row of a run, which is its only one. A round begins at
// position first of its session's history.
func (l lineage) create(n store.NewRun, base based, r round, first int64) (num int64, err error) {
	// A parent's root is the root; without one, or with one that is not kept here,
	// a round's is that of its session and any other run is its own.
	err = l.q.QueryRowContext(l.ctx, `
		INSERT INTO run (num, id, root, salt, flow, fingerprint, user, parent, origin, created,
			base, base_seq, base_last, session, round, first)
		SELECT x.num, ?1, coalesce(p.root, -?12, x.num), iif(p.root IS NULL AND ?12 IS NULL, ?2, NULL), ?3, ?4, ?5, ?6, ?7, ?8,
			?9, ?10, ?11, ?12, ?13, iif(?12 IS NULL, NULL, ?14)
		FROM (SELECT 1 + max(coalesce((SELECT max(num) FROM run), 0), coalesce((SELECT num FROM gone WHERE name = 'run'), 0)) AS num) x
			LEFT JOIN run p ON p.id = ?6
		WHERE NOT EXISTS (SELECT 1 FROM run WHERE id = ?1) RETURNING num`,
		n.ID, newSalt(), n.Flow, n.Fingerprint, nullText(n.User), nullText(n.Parent), nullText(n.Origin), n.At.UnixMilli(),
		nullInt(base.run), nullInt(base.seq), nullInt(base.last), nullInt(r.session), nullInt(r.number), first).Scan(&num)
	if kindOf(err) == store.ErrNotFound { //nolint:errorlint // kindOf returns sentinels
		err = fmt.Errorf("run %s: %w", n.ID, store.ErrExists)
	}
	return num, err
}
