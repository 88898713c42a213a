package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// restoredFence is the fence under which commits are restored.
const restoredFence = 1

// restorer makes the sessions and runs of an export in one transaction.
type restorer struct {
	t        *tx
	sessions map[string]*store.ArchivedSession
	rest     map[string][]store.ArchivedState // changes of states that are still to be made
	ready    map[string]bool                  // sessions that are there with what they had
}

// Restore makes sessions and runs of an export as they were, all or none; see
// store.ArchiveStore.
func (s *Store) Restore(ctx context.Context, sessions []store.ArchivedSession, runs []store.RunToRestore) error {
	return s.write(ctx, "import", func(t *tx) error {
		t.queue(awaitDeletions)
		w := restorer{t, map[string]*store.ArchivedSession{}, map[string][]store.ArchivedState{}, map[string]bool{}}
		for i := range sessions {
			w.sessions[sessions[i].ID], w.rest[sessions[i].ID] = &sessions[i], sessions[i].State
		}
		for i := range runs {
			if err := w.restoreRun(&runs[i]); err != nil {
				return fmt.Errorf("run %s: %w", runs[i].ID, err)
			}
		}
		for i := range sessions {
			if err := w.completeSession(&sessions[i]); err != nil {
				return fmt.Errorf("session %s: %w", sessions[i].ID, err)
			}
		}
		return nil
	})
}

// restoreRun makes a run with its commits, before it what it needs of its session.
func (w *restorer) restoreRun(a *store.RunToRestore) error {
	var x *sessionRow
	if a.Session != "" {
		var err error
		if x, err = w.sessionOf(a); err != nil {
			return err
		}
	}
	base, err := lineage{w.t}.findBase(a.Base)
	if err != nil {
		return err
	}
	r, err := w.t.insertRestored(&store.NewRun{
		ID: a.ID, Flow: a.Flow, Fingerprint: a.Fingerprint, User: a.User, Parent: a.Parent, Origin: a.Origin, At: a.Created,
	}, base, x, a.Secret)
	if err != nil {
		return err
	}
	r.fence = restoredFence
	if x != nil {
		x.rounds, x.fence, x.holder = x.rounds+1, x.fence+1, r.num
		w.t.queue("UPDATE session SET rounds = rounds + 1, fence = fence + 1, holder = $1, updated = $2 WHERE num = $3", r.num, a.Created.UnixMilli(), x.num)
		w.t.queue("INSERT INTO queue (id, session, sender, at, run) VALUES ($1, $2, $3, $4, $5)",
			text(a.ID), x.num, text(a.User), a.Created.UnixMilli(), r.num) // the message that started it
	}
	return w.restoreCommits(a, r, x)
}

// sessionOf locks the session of a round, and makes it if it is not there.
func (w *restorer) sessionOf(a *store.RunToRestore) (x *sessionRow, err error) {
	if archived := w.sessions[a.Session]; archived != nil {
		x, err = w.restoreSession(archived, a.Secret)
	} else {
		x, err = w.t.lockSession(a.Session)
	}
	if err == nil {
		err = w.restoreState(x, a.Round)
	}
	if err == nil && (x.holder != 0 || x.rounds != int64(a.Round)-1) {
		err = fmt.Errorf("it is round %d of session %s, which has had %d: %w", a.Round, a.Session, x.rounds, store.ErrSessionAdvanced)
	}
	return x, err
}

// restoreSession locks a session. It makes one that is not there, before it those that it was forked from. One without
// rounds, which an earlier copy may have brought, gets the secret of its first round, unless that is nil.
func (w *restorer) restoreSession(a *store.ArchivedSession, secret []byte) (*sessionRow, error) {
	x, err := w.t.lockSession(a.ID)
	if errors.Is(err, store.ErrNotFound) {
		if err = w.makeSession(a); err == nil {
			x, err = w.t.lockSession(a.ID)
		}
	}
	if err == nil && x.rounds == 0 && secret != nil {
		x.secret = secret
		w.t.queue("UPDATE session SET secret = $2 WHERE num = $1", x.num, secret)
	}
	if err != nil || w.ready[a.ID] {
		return x, err
	}
	w.ready[a.ID] = true
	return x, w.skipState(x)
}

// skipState leaves out the changes of a session's state that it has already: its first ones that no round made.
func (w *restorer) skipState(x *sessionRow) error {
	var have int
	err := w.t.queryRow([]any{&have}, "SELECT count(*) FROM session_change WHERE session = $1 AND run IS NULL", x.num)
	w.rest[x.id] = w.rest[x.id][min(have, len(w.rest[x.id])):]
	return err
}

// completeSession makes a session that no run needed, and what comes after its last round.
func (w *restorer) completeSession(a *store.ArchivedSession) error {
	x, err := w.restoreSession(a, nil)
	if err != nil {
		return err
	}
	key, err := w.t.dataKey(x.user)
	if err != nil {
		return err
	}
	w.t.queue("UPDATE session SET carryover = coalesce($2, carryover) WHERE num = $1", x.num, w.t.s.encode(key, a.Carryover))
	return w.restoreState(x, maxNumber)
}

// makeSession makes a session, before it those that it was forked from.
func (w *restorer) makeSession(a *store.ArchivedSession) error {
	if up := w.sessions[a.Parent]; up != nil {
		if _, err := w.restoreSession(up, nil); err != nil {
			return err
		}
	}
	n := store.NewSession{
		ID: a.ID, User: a.User, Flow: a.Flow, Thread: a.Thread, Parent: a.Parent, ParentLength: a.ParentLength, Now: a.Created,
	}
	parent, err := w.t.parentOf(&n)
	if err == nil && a.ParentRound != nil {
		parent.rounds = int64(*a.ParentRound)
	}
	if err == nil {
		_, err = w.t.insertSession(&n, parent)
	}
	if err != nil {
		return fmt.Errorf("session %s: %w", a.ID, err)
	}
	return nil
}

// restoreState makes the changes of a session's state that were made before a round.
func (w *restorer) restoreState(x *sessionRow, round int) error {
	list := w.rest[x.id]
	for len(list) > 0 && list[0].Round < round {
		a := &list[0]
		v := storedValue{key: a.Key, reducer: a.Reducer}
		if a.Value != "" {
			v.value = []byte(a.Value)
		}
		if err := w.t.insertChanges(x, stateOrigin{round: int64(a.Round), sender: a.By, at: a.At.UnixMilli()}, []storedValue{v}); err != nil {
			return err
		}
		list = list[1:]
	}
	w.rest[x.id] = list
	return nil
}

// restoreCommits appends the commits of a run; the last one has its head.
func (w *restorer) restoreCommits(a *store.RunToRestore, r *runState, x *sessionRow) error {
	last, err := archivedHead(&a.ArchivedRun)
	if err != nil {
		return err
	}
	g := &group{s: w.t.s, sessions: map[int64]*sessionRow{}, restores: true}
	if x != nil {
		g.sessions[x.num] = x
	}
	w.t.queue("UPDATE run SET fence = $2 WHERE num = $1", r.num, r.fence)
	for i := range a.Commits {
		in := store.Append{Commit: a.Commits[i], Fence: restoredFence, Head: store.Head{Status: engine.Running, Waiting: []engine.Interrupt{}}}
		if i == len(a.Commits)-1 {
			in.Head = last
		}
		var e encodedCommit
		if e.payload, e.messages, err = store.LocatePayload(in.Commit.Events); err != nil {
			return err
		}
		c := commitWriter{t: w.t, g: g, a: &in, encoded: &e, r: r}
		refused, err := c.writeNext()
		if err = cmp.Or(err, refused); err != nil {
			return fmt.Errorf("commit %d: %w", in.Commit.Seq, err)
		}
	}
	return nil
}

// archivedHead returns the row of a listing that an export has.
func archivedHead(a *store.ArchivedRun) (h store.Head, err error) {
	h = store.Head{Due: a.Due, Waiting: []engine.Interrupt{}}
	if h.Status, err = parseStatus(a.Status); err != nil {
		return h, err
	}
	for _, column := range []string{a.Waiting, a.Usage, a.Failure} {
		if err := h.AddEncoded([]byte(column)); err != nil {
			return h, err
		}
	}
	return h, nil
}
