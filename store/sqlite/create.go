package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
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

// Create creates a run without commits of its own. The error is store.ErrExists if the id is in
// use, and store.ErrNotFound if the base does not exist.
func (s *Store) Create(ctx context.Context, n store.NewRun) error {
	return s.write(ctx, "create run "+n.ID, func(ctx context.Context) error {
		l := lineage{ctx, s.prepared()}
		base, err := l.findBase(n.Base)
		if err != nil {
			return err
		}
		_, err = l.insertRun(n, base, roundInfo{})
		return err
	})
}

// appendFirst creates a run with its first commit. If the commit is refused, the run is not
// created.
func (w *writeTx) appendFirst(a *store.Append) (refused, failed error) {
	c := w.prepared()
	if _, err := c.ExecContext(w.ctx, "SAVEPOINT first"); err != nil {
		return nil, err
	}
	err := w.startRun(a.Start)
	if isRefusal(err) {
		refused = err
	} else if failed = err; err == nil {
		refused, failed = w.appendNext(a)
	}
	if failed != nil { // the transaction is rolled back
		return nil, failed
	}
	if refused != nil {
		w.idsLoaded = false
		if _, err := c.ExecContext(w.ctx, "ROLLBACK TO first"); err != nil {
			return nil, err
		}
	}
	_, failed = c.ExecContext(w.ctx, "RELEASE first")
	return refused, failed
}

// startRun creates a run whose first commit follows.
func (w *writeTx) startRun(n *store.RunStart) error {
	if n.Message == "" {
		l := w.lineage()
		base, err := l.findBase(n.Base)
		if err == nil {
			_, err = l.insertRun(n.NewRun, base, roundInfo{})
		}
		return err
	}
	if n.Base != nil {
		return store.ErrRoundBase
	}
	q, err := findQueued(w.ctx, w.prepared(), n.Message)
	if err != nil {
		return wrap("message "+n.Message, err)
	}
	return w.startRound(&q, n.NewRun, n.SessionFence)
}

// isRefusal reports whether an error is about the one run and not about the database.
func isRefusal(err error) bool {
	return errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrBusy) ||
		errors.Is(err, store.ErrRoundBase) || errors.Is(err, store.ErrSessionAdvanced)
}

// insertRun inserts the row of a run.
func (l lineage) insertRun(n store.NewRun, base sharedBase, r roundInfo) (num int64, err error) {
	program, err := l.programNumber(n.Flow, n.Fingerprint)
	if err != nil {
		return 0, err
	}
	seal, err := sealOf(runFactsOf(&n, base, r))
	if err != nil {
		return 0, err
	}
	// A parent's root is the root; without one, or with one that is not kept here,
	// a round's is that of its session and any other run is its own. Of a round it is
	// left out what its session has.
	err = l.q.QueryRowContext(l.ctx, `
		INSERT INTO run_row (num, id, root, salt, flow, fingerprint, program, user, parent, origin, created,
			base, base_seq, base_last, session, round, first, seal)
		SELECT x.num, ?1, coalesce(p.root, -?12, x.num), iif(p.root IS NULL AND ?12 IS NULL, ?2, NULL), '', '', ?3,
			iif(s.num IS NULL, nullif(?4, ''), nullif(?4, s.user)), ?6,
			iif(s.num IS NULL, nullif(?7, ''), nullif(?7, 'session:' || s.id)), ?8,
			?9, ?10, ?11, ?12, ?13, iif(?12 IS NULL, NULL, ?5), ?14
		FROM (SELECT 1 + max(coalesce((SELECT max(num) FROM run), 0), coalesce((SELECT num FROM gone WHERE name = 'run'), 0)) AS num) x
			LEFT JOIN run_row p ON p.id = ?6 LEFT JOIN session s ON s.num = ?12
		WHERE NOT EXISTS (SELECT 1 FROM run_row WHERE id = ?1) RETURNING num`,
		n.ID, newSalt(), program, n.User, r.first, nullText(n.Parent), n.Origin, n.At.UnixMilli(),
		nullInt(base.run), nullInt(base.seq), nullInt(base.last), nullInt(r.session), nullInt(r.number), seal).Scan(&num)
	if storeErrorOf(err) == store.ErrNotFound { //nolint:errorlint // kindOf returns sentinels
		err = fmt.Errorf("run %s: %w", n.ID, store.ErrExists)
	}
	return num, err
}

// programNumber returns the number of what runs of one flow and fingerprint have alike.
func (l lineage) programNumber(flow, fingerprint string) (num int64, err error) {
	err = l.q.QueryRowContext(l.ctx, "SELECT num FROM program WHERE fingerprint = ? AND flow = ?", fingerprint, flow).Scan(&num)
	if errors.Is(err, sql.ErrNoRows) {
		err = l.q.QueryRowContext(l.ctx, "INSERT INTO program (flow, fingerprint) VALUES (?, ?) RETURNING num", flow, fingerprint).Scan(&num)
	}
	return num, err
}
