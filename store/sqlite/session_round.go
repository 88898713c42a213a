package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// startRound makes a run the next round of the session that a message waits in, if the
// session has this fence.
func (w *writeTx) startRound(q *store.QueuedMessage, n store.NewRun, fence int64) error {
	if q.TakenBy != "" {
		return fmt.Errorf("run %s took message %s: %w", q.TakenBy, q.ID, store.ErrExists)
	}
	x, err := w.session("id", q.Session)
	if err != nil {
		return err
	}
	if x.holder != 0 {
		return fmt.Errorf("session %s has a round that has not ended: %w", q.Session, store.ErrBusy)
	}
	if err := w.checkStateRead(&x, n.StateChanges); err != nil {
		return err
	}
	if fence != x.fence {
		return fmt.Errorf("session %s has changed: %w", q.Session, store.ErrBusy)
	}
	var head string
	err = w.prepared().QueryRowContext(w.ctx, "SELECT id FROM queue WHERE session = ? AND run IS NULL ORDER BY num LIMIT 1", x.num).Scan(&head)
	if err == nil && head != q.ID {
		err = fmt.Errorf("message %s waits before it in session %s: %w", head, q.Session, store.ErrBusy)
	}
	if err != nil {
		return err
	}
	num, err := w.lineage().insertRun(n, sharedBase{}, roundInfo{session: x.num, number: x.rounds + 1, first: x.length})
	if err != nil {
		return err
	}
	if _, err := w.prepared().ExecContext(w.ctx, "UPDATE queue SET run = ? WHERE id = ?", num, q.ID); err != nil {
		return err
	}
	q.TakenBy = n.ID
	_, err = w.prepared().ExecContext(w.ctx,
		"UPDATE session SET rounds = rounds + 1, fence = fence + 1, holder = ?, updated = ? WHERE num = ?",
		num, n.At.UnixMilli(), x.num)
	return err
}

// checkStateRead checks that the state of a session is as the starter of a round has read it.
func (w *writeTx) checkStateRead(x *sessionState, read *int64) error {
	if read == nil {
		return nil
	}
	var changes int64
	err := w.prepared().QueryRowContext(w.ctx, "SELECT coalesce(changes, 0) FROM session WHERE num = ?", x.num).Scan(&changes)
	if err == nil && changes != *read {
		err = fmt.Errorf("the state of session %s has had %d changes, not %d: %w", x.id, changes, *read, store.ErrSessionAdvanced)
	}
	return err
}

// checkHoldsSession checks that a run that is a round may append: it holds its session, or
// takes it back because it has ended and no other round has started. Then again is what it
// had cost when it ended.
func (w *writeTx) checkHoldsSession(r *runState) (again *engine.Usage, refused, failed error) {
	var x sessionState
	err := w.prepared().QueryRowContext(w.ctx, "SELECT id, rounds, coalesce(holder, 0) FROM session WHERE num = ?", r.round.session).Scan(&x.id, &x.rounds, &x.holder)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, store.ErrNotFound, nil
	}
	if err != nil || x.holder == r.num {
		return nil, nil, err
	}
	if x.rounds != r.round.number { // so that another holds it, or held it
		return nil, fmt.Errorf("round %d of session %s, which has had %d: %w", r.round.number, x.id, x.rounds, store.ErrSessionAdvanced), nil
	}
	switch set, err := w.wasSetSince(r.round.session, r.round.number); {
	case err != nil:
		return nil, nil, err
	case set:
		return nil, fmt.Errorf("the state of session %s was set after round %d had ended: %w", x.id, r.round.number, store.ErrSessionAdvanced), nil
	}
	var before string
	if err := w.prepared().QueryRowContext(w.ctx, "SELECT coalesce(usage, '') FROM run WHERE num = ?", r.num).Scan(&before); err != nil {
		return nil, nil, err
	}
	was, err := readUsage(before)
	return &was, nil, err
}

// updateSession returns the changes that a commit of a round makes to its session: the start of
// the next round, and its release if the commit is the last of the round. again is the usage
// that the round had added before it was reopened.
func (w *writeTx) updateSession(r *runState, a *store.Append, again *engine.Usage) error {
	c := w.prepared()
	if a.Commit.Seq == 1 {
		if err := w.foldMessage(r); err != nil {
			return err
		}
	}
	if a.Carryover != nil {
		if _, err := c.ExecContext(w.ctx, "UPDATE session SET main = ? WHERE num = ?", a.Carryover, r.round.session); err != nil {
			return err
		}
	}
	if changes := engine.CompletedSessionState(a.Commit.Events); len(changes) > 0 {
		origin := changeFacts{Round: r.round.number, Run: r.num, At: a.Commit.At}
		if err := w.changeSessionState(r.round.session, origin, changes); err != nil {
			return err
		}
	}
	ended := a.Head.Status.Ended()
	if again == nil && !ended {
		return nil
	}
	var delta engine.Usage
	if again != nil {
		delta = negateUsage(*again)
	}
	holder := r.num
	if ended {
		delta, holder = delta.Add(a.Head.Usage), 0
	}
	var reclaimed int64 // a process that has read the session since then has read an outdated state
	if again != nil {
		reclaimed = 1
	}
	if err := w.queueRepeat(r, a); err != nil {
		return err
	}
	return w.addSessionUsage(r, delta, holder, reclaimed)
}

// queueRepeat puts the repetition of a round first into the queue. Numbers below zero are those of
// repetitions.
func (w *writeTx) queueRepeat(r *runState, a *store.Append) error {
	again := engine.QueuedRepeat(a.Commit.Events)
	if again == nil || w.restoring {
		return nil
	}
	value, err := encodeValue(again.Value())
	if err != nil {
		return err
	}
	_, err = w.prepared().ExecContext(w.ctx, `INSERT INTO queue (num, id, session, value, sender, at)
		SELECT min(0, coalesce((SELECT min(num) FROM queue), 0)) - 1, ?1, ?2, ?3,
			CASE WHEN EXISTS (SELECT 1 FROM queue WHERE run = ?4) THEN (SELECT sender FROM queue WHERE run = ?4 ORDER BY num LIMIT 1)
				ELSE (SELECT nullif(user, '') FROM session WHERE num = ?2) END, ?5
		ON CONFLICT DO NOTHING`, again.Message, r.round.session, value, r.num, a.Commit.At)
	return err
}

// foldMessage deletes the stored message that started a round, since the journal has it from
// then on. No row remains if the run's row contains the rest.
func (w *writeTx) foldMessage(r *runState) error {
	res, err := w.prepared().ExecContext(w.ctx, `DELETE FROM queue WHERE run = ?1 AND id = (SELECT id FROM run_row WHERE num = ?1)
		AND coalesce(sender, '') = (SELECT user FROM session WHERE num = ?2)`, r.num, r.round.session)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	switch {
	case err != nil:
		return err
	case n == 0:
		_, err = w.prepared().ExecContext(w.ctx, "UPDATE queue SET value = NULL WHERE run = ?", r.num)
	default:
		err = w.setFolded(r, foldedMessage)
	}
	return err
}

// setFolded records in the run's row that a separate row does not exist.
func (w *writeTx) setFolded(r *runState, what int64) error {
	r.round.folded |= what
	_, err := w.prepared().ExecContext(w.ctx, "UPDATE run_row SET folded = coalesce(folded, 0) | ? WHERE num = ?", what, r.num)
	return err
}

// addSessionUsage adds usage to that of the run's session and says who holds it. Its fence
// grows by reclaimed.
func (w *writeTx) addSessionUsage(r *runState, u engine.Usage, holder, reclaimed int64) error {
	x, err := w.session("num", r.round.session)
	if err != nil {
		return err
	}
	sum, err := readUsage(x.usage)
	if err != nil {
		return err
	}
	total, err := encodeUsage(sum.Add(u))
	if err != nil {
		return err
	}
	_, err = w.prepared().ExecContext(w.ctx, "UPDATE session SET usage = ?, holder = ?, fence = fence + ? WHERE num = ?",
		nullText(total), nullInt(holder), reclaimed, r.round.session)
	return err
}

func negateUsage(u engine.Usage) engine.Usage {
	return engine.Usage{
		Calls: -u.Calls, Input: -u.Input, Cached: -u.Cached, Output: -u.Output, Reasoning: -u.Reasoning, CostMicros: -u.CostMicros, Estimated: -u.Estimated,
	}
}
