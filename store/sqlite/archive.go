package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Archive lists the contents of an export of a run, in the order in which the runs were
// created: its tree, the runs that share their history with it, and the rounds of its session
// up to its own. The error is store.ErrNotFound if there is no such run.
func (s *Store) Archive(ctx context.Context, run string) (runs []store.ArchivedRun, sessions []store.ArchivedSession, err error) {
	num, err := s.number(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	wanted, known := []int64{num}, map[int64]bool{}
	for len(wanted) > 0 && err == nil {
		n := wanted[0]
		if wanted = wanted[1:]; !known[n] {
			known[n] = true
			err = s.query(ctx, func(row scanner) error {
				var other int64
				err := row.Scan(&other)
				wanted = append(wanted, other)
				return err
			}, neededRuns, n)
		}
	}
	if err == nil {
		runs, err = s.archived(ctx, known)
	}
	if err == nil {
		sessions, err = s.archivedSessions(ctx, runs)
	}
	return runs, sessions, s.wrap("export run "+run, err)
}

// neededRuns are the runs without which one cannot be restored, and its children: its
// parent, its base, the round before it, and the rounds that its session's parent had
// had then.
const neededRuns = `SELECT p.num FROM run_row r JOIN run_row p ON p.id = r.parent WHERE r.num = ?1
	UNION SELECT c.num FROM run_row r JOIN run_row c ON c.parent = r.id WHERE r.num = ?1
	UNION SELECT base FROM run_row WHERE num = ?1 AND base IS NOT NULL
	UNION SELECT b.num FROM run_row r JOIN run_row b ON b.session = r.session AND b.round < r.round WHERE r.num = ?1
	UNION SELECT b.num FROM run_row r JOIN session s ON s.num = r.session JOIN run_row b ON b.session = s.parent AND b.round <= s.parent_round WHERE r.num = ?1`

func (s *Store) archived(ctx context.Context, nums map[int64]bool) (out []store.ArchivedRun, err error) {
	list := make([]int64, 0, len(nums))
	for n := range nums {
		list = append(list, n)
	}
	ids, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	err = s.query(ctx, func(row scanner) error {
		var a store.ArchivedRun
		var created int64
		var base store.Base
		err := row.Scan(&a.ID, &a.Number, &a.Flow, &a.Fingerprint, &a.User, &a.Parent, &a.Origin, &created, &base.Run, &base.Seq,
			&a.Session, &a.Round, &a.Secret, &a.Unchained, &a.Status, &a.Due, &a.Waiting, &a.Usage, &a.Failure)
		if a.Created = time.UnixMilli(created).UTC(); base.Run != "" {
			a.Base = &base
		}
		out = append(out, a)
		return err
	}, `SELECT r.id, r.num, r.flow, r.fingerprint, coalesce(r.user, ''), coalesce(r.parent, ''), coalesce(r.origin, ''), r.created,
			coalesce((SELECT id FROM run_row b WHERE b.num = r.base), ''), coalesce(r.base_seq, 0),
			coalesce(s.id, ''), coalesce(r.round, 0), coalesce(o.salt, t.salt), coalesce(w.unchained, 0),
			r.status, r.due, coalesce(r.waiting, ''), coalesce(r.usage, ''), coalesce(r.error, '')
		FROM run r JOIN run_row w ON w.num = r.num LEFT JOIN session s ON s.num = r.session
		LEFT JOIN run_row o ON o.num = r.root LEFT JOIN session t ON t.num = -r.root
		WHERE r.num IN (SELECT value FROM json_each(?)) ORDER BY r.num`, string(ids))
	return out, err
}

func (s *Store) archivedSessions(ctx context.Context, runs []store.ArchivedRun) (out []store.ArchivedSession, err error) {
	last := map[string]int{}
	for i := range runs {
		if id := runs[i].Session; id != "" {
			last[id] = max(last[id], runs[i].Round)
		}
	}
	for _, id := range sortedKeys(last) {
		x, err := s.Session(ctx, id)
		if err != nil {
			return nil, err
		}
		a := store.ArchivedSession{ID: x.ID, User: x.User, Flow: x.Flow, Thread: x.Thread, Created: x.Created.UTC(), Parent: x.Parent, ParentLength: x.ParentLength}
		if x.Rounds == last[id] {
			a.Carryover = x.Carryover
		}
		if a.State, err = s.archivedState(ctx, id, last[id], x.Rounds == last[id]); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// Restore creates the sessions and runs of an export in one transaction, all or nothing. The
// error is store.ErrExists if one of them exists.
func (s *Store) Restore(ctx context.Context, sessions []store.ArchivedSession, runs []store.RunToRestore) error {
	byID := make(map[string]*store.ArchivedSession, len(sessions))
	rest := make(map[string][]store.ArchivedState, len(sessions))
	for i := range sessions {
		byID[sessions[i].ID], rest[sessions[i].ID] = &sessions[i], sessions[i].State
	}
	err := s.write(ctx, "import", func(ctx context.Context) error {
		w := &writeTx{s: s, ctx: ctx}
		for i := range runs {
			if err := w.restoreRound(byID[runs[i].Session], rest, &runs[i]); err != nil {
				return err
			}
		}
		for i := range sessions {
			if _, err := s.conn.ExecContext(ctx, "UPDATE session SET main = coalesce(?, main) WHERE id = ?", sessions[i].Carryover, sessions[i].ID); err != nil {
				return err
			}
			if err := w.restoreState(rest, sessions[i].ID, maxNumber); err != nil {
				return err
			}
		}
		return nil
	})
	s.mu.Lock()
	s.runs = runCache{} // what is remembered may be of what was not kept
	s.mu.Unlock()
	return err
}

// restoreRound creates a run, and first the parts of its session that it needs. The session is
// nil for a run that is no round. rest are the state changes that have not been made yet.
func (w *writeTx) restoreRound(a *store.ArchivedSession, rest map[string][]store.ArchivedState, r *store.RunToRestore) error {
	if a != nil {
		if err := w.restoreSession(a, r.Secret); err != nil {
			return fmt.Errorf("session %s: %w", a.ID, err)
		}
		if err := w.restoreState(rest, a.ID, r.Round); err != nil {
			return err
		}
	}
	if err := w.restore(r); err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	return nil
}

// restoreSession creates a session unless it exists.
func (w *writeTx) restoreSession(a *store.ArchivedSession, secret []byte) error {
	var there bool
	if err := w.s.conn.QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM session WHERE id = ?)", a.ID).Scan(&there); err != nil {
		return err
	}
	if there {
		return w.resetSession(a.ID, secret)
	}
	err := w.createSession(store.NewSession{
		ID: a.ID, User: a.User, Flow: a.Flow, Thread: a.Thread, Parent: a.Parent, ParentLength: a.ParentLength, Now: a.Created,
	})
	if err != nil {
		return err
	}
	_, err = w.s.conn.ExecContext(w.ctx, "UPDATE session SET salt = ? WHERE id = ?", secret, a.ID)
	return err
}

// resetSession prepares a session without rounds, which an earlier copy may have brought, for its first round: it gets
// the secret of the rounds, and all changes of its state are made again. It does nothing to one with rounds.
func (w *writeTx) resetSession(id string, secret []byte) error {
	_, err := w.s.conn.ExecContext(w.ctx, `DELETE FROM session_change WHERE EXISTS (SELECT 1 FROM session s WHERE s.id = ? AND s.rounds = 0
		AND session_change.id > s.num << 32 AND session_change.id < (s.num + 1) << 32)`, id)
	if err == nil {
		_, err = w.s.conn.ExecContext(w.ctx, "UPDATE session SET salt = ?, changes = NULL WHERE id = ? AND rounds = 0", secret, id)
	}
	return err
}

// restoredFence is the fence that commits are restored under.
const restoredFence = 1

func (w *writeTx) restore(a *store.RunToRestore) error {
	base, err := w.lineage().findBase(a.Base)
	if err != nil {
		return err
	}
	var r roundInfo
	if a.Session != "" {
		x, err := w.session("id", a.Session)
		if err != nil {
			return err
		}
		if x.holder != 0 || x.rounds != int64(a.Round)-1 {
			return fmt.Errorf("it is round %d of session %s, which has had %d: %w", a.Round, a.Session, x.rounds, store.ErrSessionAdvanced)
		}
		r = roundInfo{session: x.num, number: x.rounds + 1, first: x.length}
	}
	num, err := w.lineage().insertRun(store.NewRun{
		ID: a.ID, Flow: a.Flow, Fingerprint: a.Fingerprint, User: a.User, Parent: a.Parent, Origin: a.Origin, At: a.Created,
	}, base, r)
	if err != nil {
		return err
	}
	if _, err := w.s.conn.ExecContext(w.ctx, "UPDATE run_row SET salt = iif(salt IS NULL, NULL, ?), fence = ? WHERE num = ?", a.Secret, restoredFence, num); err != nil {
		return err
	}
	if r.session != 0 {
		_, err := w.s.conn.ExecContext(w.ctx, "UPDATE session SET rounds = rounds + 1, fence = fence + 1, holder = ?, updated = ? WHERE num = ?",
			num, a.Created.UnixMilli(), r.session)
		if err != nil {
			return err
		}
		// The message that started it, as it was before a round took it.
		_, err = w.s.conn.ExecContext(w.ctx, "INSERT INTO queue (id, session, value, sender, at, run) VALUES (?, ?, 'null', ?, ?, ?)",
			a.ID, r.session, nullText(a.User), a.Created.UnixMilli(), num)
		if err != nil {
			return err
		}
	}
	return w.restoreCommits(a)
}

func (w *writeTx) restoreCommits(a *store.RunToRestore) error {
	head := store.Head{Due: a.Due, Waiting: []engine.Interrupt{}}
	var err error
	if head.Status, err = parseStatus(a.Status); err != nil {
		return err
	}
	for _, column := range []string{a.Waiting, a.Usage, a.Failure} {
		if err := head.AddEncoded([]byte(column)); err != nil {
			return err
		}
	}
	w.restoring = true
	for i := range a.Commits {
		x := store.Append{Commit: a.Commits[i], Fence: restoredFence, Head: store.Head{Status: engine.Running, Waiting: []engine.Interrupt{}}}
		if i == len(a.Commits)-1 {
			x.Head = head
		}
		refused, err := w.append(&x)
		if err == nil {
			err = refused
		}
		if err != nil {
			return fmt.Errorf("commit %d: %w", x.Commit.Seq, err)
		}
	}
	return nil
}
