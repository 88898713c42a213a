package sqlite

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// restorer makes the sessions and runs of an export in one transaction.
type restorer struct {
	*writeTx
	sessions map[string]*store.ArchivedSession
	rest     map[string][]store.ArchivedState // changes of states that are still to be made
	ready    map[string]bool                  // sessions that are there with what they had
}

// Restore creates the sessions and runs of an export in one transaction, all or nothing. The
// error is store.ErrExists if one of the runs exists.
func (s *Store) Restore(ctx context.Context, sessions []store.ArchivedSession, runs []store.RunToRestore) error {
	err := s.write(ctx, "import", func(ctx context.Context) error {
		w := &restorer{&writeTx{s: s, ctx: ctx}, map[string]*store.ArchivedSession{}, map[string][]store.ArchivedState{}, map[string]bool{}}
		for i := range sessions {
			w.sessions[sessions[i].ID], w.rest[sessions[i].ID] = &sessions[i], sessions[i].State
		}
		for i := range runs {
			if err := w.restoreRound(&runs[i]); err != nil {
				return err
			}
		}
		for i := range sessions {
			if err := w.completeSession(&sessions[i]); err != nil {
				return fmt.Errorf("session %s: %w", sessions[i].ID, err)
			}
		}
		return nil
	})
	s.mu.Lock()
	s.runs = runCache{} // what is remembered may be of what was not kept
	s.mu.Unlock()
	return err
}

// restoreRound creates a run, and first the parts of its session that it needs.
func (w *restorer) restoreRound(r *store.RunToRestore) error {
	if a := w.sessions[r.Session]; a != nil {
		if err := w.restoreSession(a, r.Secret); err != nil {
			return fmt.Errorf("session %s: %w", a.ID, err)
		}
		if err := w.restoreState(a.ID, r.Round); err != nil {
			return err
		}
	}
	if err := w.restore(r); err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	return nil
}

// restoreSession creates a session, before it those that it was forked from. One that exists gets what it lacks for a
// round: secret is that of the rounds, nil if there is none.
func (w *restorer) restoreSession(a *store.ArchivedSession, secret []byte) error {
	if w.ready[a.ID] && secret == nil {
		return nil
	}
	var there bool
	if err := w.s.conn.QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM session WHERE id = ?)", a.ID).Scan(&there); err != nil {
		return err
	}
	if !there {
		if up := w.sessions[a.Parent]; up != nil {
			if err := w.restoreSession(up, nil); err != nil {
				return fmt.Errorf("session %s: %w", up.ID, err)
			}
		}
		err := w.createSession(store.NewSession{
			ID: a.ID, User: a.User, Flow: a.Flow, Thread: a.Thread, Parent: a.Parent, ParentLength: a.ParentLength, Now: a.Created,
		}, a.ParentRound)
		if err != nil {
			return err
		}
	}
	if err := w.resetSession(a.ID, secret); err != nil || w.ready[a.ID] {
		return err
	}
	w.ready[a.ID] = true
	return w.skipState(a.ID)
}

// resetSession gives a session without rounds, which an earlier copy may have brought, the secret of its first round. It
// does nothing to one with rounds.
func (w *restorer) resetSession(id string, secret []byte) error {
	if secret == nil {
		return nil
	}
	_, err := w.s.conn.ExecContext(w.ctx, "UPDATE session SET salt = ? WHERE id = ? AND rounds = 0", secret, id)
	return err
}

// skipState leaves out the changes of a session's state that it has already: its first ones that no round made.
func (w *restorer) skipState(id string) error {
	var have int
	err := w.s.conn.QueryRowContext(w.ctx, `SELECT count(*) FROM session s JOIN session_change c ON c.id > s.num << 32 AND c.id < (s.num + 1) << 32
		WHERE s.id = ? AND c.run IS NULL`, id).Scan(&have)
	w.rest[id] = w.rest[id][min(have, len(w.rest[id])):]
	return err
}

// completeSession makes a session that no run needed, and what comes after its last round.
func (w *restorer) completeSession(a *store.ArchivedSession) error {
	if err := w.restoreSession(a, nil); err != nil {
		return err
	}
	if _, err := w.s.conn.ExecContext(w.ctx, "UPDATE session SET main = coalesce(?, main) WHERE id = ?", a.Carryover, a.ID); err != nil {
		return err
	}
	return w.restoreState(a.ID, maxNumber)
}

// restoredFence is the fence that commits are restored under.
const restoredFence = 1

func (w *restorer) restore(a *store.RunToRestore) error {
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

func (w *restorer) restoreCommits(a *store.RunToRestore) error {
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

// restoreState makes the changes of an export that were made before a round, and removes them
// from the rest.
func (w *restorer) restoreState(id string, round int) error {
	var rows []changeFacts
	list := w.rest[id]
	for len(list) > 0 && list[0].Round < round {
		a := &list[0]
		list = list[1:]
		c := changeFacts{Key: a.Key, Reducer: a.Reducer, Round: int64(a.Round), Sender: a.By, At: a.At.UnixMilli()}
		if a.Value != "" {
			c.Value = &a.Value
		}
		rows = append(rows, c)
	}
	w.rest[id] = list
	if len(rows) == 0 {
		return nil
	}
	var num int64
	err := w.prepared().QueryRowContext(w.ctx, "SELECT num FROM session WHERE id = ?", id).Scan(&num)
	if err == nil {
		err = w.insertSessionChanges(num, rows)
	}
	if err != nil {
		return fmt.Errorf("state of session %s: %w", id, err)
	}
	return nil
}
