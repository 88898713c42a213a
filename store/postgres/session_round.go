package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// lockSessions locks the sessions of which the runs are rounds, and those to which the
// messages were sent.
func (g *group) lockSessions(t *tx, runs, messages []string) error {
	return t.query(func(row pgx.Row) error {
		x := &sessionRow{}
		err := x.scan(row)
		g.sessions[x.num] = x
		return err
	}, "SELECT "+sessionColumns+` FROM session s WHERE s.num IN (
			SELECT session FROM run WHERE id = ANY($1) AND session IS NOT NULL
			UNION SELECT session FROM queue WHERE id = ANY($2))
		ORDER BY s.num FOR UPDATE`, escapeTexts(runs), escapeTexts(messages))
}

// startRound makes the run of a commit the next round of its session.
func (w *commitWriter) startRound(n *store.RunStart) (*runState, error) {
	if n.Base != nil {
		return nil, store.ErrRoundBase
	}
	q, err := findQueued(w.t, n.Message)
	if err != nil {
		return nil, wrap("message "+n.Message, err)
	}
	x, err := w.lockedSession(q.Session)
	if err != nil {
		return nil, err
	}
	return w.t.startRound(x, &q, &n.NewRun, n.SessionFence)
}

// lockedSession returns a session that the group has locked.
func (w *commitWriter) lockedSession(id string) (*sessionRow, error) {
	for _, x := range w.g.sessions { // order: at most one has the id
		if x.id == id {
			return x, nil
		}
	}
	return nil, fmt.Errorf("session %s: %w", id, store.ErrNotFound)
}

// startRound makes a run the next round of a locked session, if the session has this fence.
func (t *tx) startRound(x *sessionRow, q *store.QueuedMessage, n *store.NewRun, fence int64) (*runState, error) {
	switch {
	case q.TakenBy != "":
		return nil, fmt.Errorf("run %s took message %s: %w", q.TakenBy, q.ID, store.ErrExists)
	case x.holder != 0:
		return nil, fmt.Errorf("session %s has a round that has not ended: %w", x.id, store.ErrBusy)
	case n.StateChanges != nil && *n.StateChanges != x.changes:
		return nil, fmt.Errorf("the state of session %s has had %d changes, not %d: %w", x.id, x.changes, *n.StateChanges, store.ErrSessionAdvanced)
	case fence != x.fence:
		return nil, fmt.Errorf("session %s has changed: %w", x.id, store.ErrBusy)
	}
	var next string
	err := t.queryRow([]any{into(&next)}, "SELECT id FROM queue WHERE session = $1 AND run IS NULL ORDER BY num LIMIT 1", x.num)
	if err == nil && next != q.ID {
		err = fmt.Errorf("message %s waits before it in session %s: %w", next, x.id, store.ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	r, err := t.insertRun(n, sharedBase{}, x)
	if err != nil {
		return nil, err
	}
	t.queue("UPDATE queue SET run = $1 WHERE id = $2", r.num, text(q.ID))
	t.queue("UPDATE session SET rounds = rounds + 1, fence = fence + 1, holder = $1, updated = $2 WHERE num = $3", r.num, n.At.UnixMilli(), x.num)
	q.TakenBy = n.ID
	return r, nil
}

// checkSession checks what a commit needs of its session and of the messages that it answers
// with.
func (w *commitWriter) checkSession() (refused, failed error) {
	if w.r.session != 0 {
		if w.session = w.g.sessions[w.r.session]; w.session == nil {
			return store.ErrNotFound, nil
		}
		if w.a.Start == nil {
			if refused, failed = w.checkHolds(); refused != nil || failed != nil {
				return refused, failed
			}
		}
	}
	for _, id := range w.a.ConsumedMessages {
		var waits bool
		if err := w.t.queryRow([]any{&waits}, "SELECT EXISTS (SELECT 1 FROM queue WHERE id = $1 AND run IS NULL)", text(id)); err != nil {
			return nil, err
		}
		if !waits {
			return fmt.Errorf("message %s: %w", id, store.ErrNotQueued), nil
		}
	}
	return nil, nil
}

// checkHolds checks that a round may append: it holds its session, or takes it back because
// it has ended and the session has not advanced. Then w.again is its usage when it ended.
func (w *commitWriter) checkHolds() (refused, failed error) {
	x, r := w.session, w.r
	if x.holder == r.num {
		return nil, nil
	}
	if x.rounds != r.round {
		return fmt.Errorf("round %d of session %s, which has had %d: %w", r.round, x.id, x.rounds, store.ErrSessionAdvanced), nil
	}
	var set bool
	err := w.t.queryRow([]any{&set}, `SELECT coalesce((SELECT round >= $2 AND run IS NULL FROM session_change
		WHERE session = $1 ORDER BY num DESC LIMIT 1), FALSE)`, x.num, r.round)
	if err != nil {
		return nil, err
	}
	if set {
		return fmt.Errorf("the state of session %s was set after round %d had ended: %w", x.id, r.round, store.ErrSessionAdvanced), nil
	}
	usage, err := readUsage(r.head.usage)
	w.again = &usage
	return nil, err
}

// sessionSource returns the context of the session that a change continues.
func (w *commitWriter) sessionSource(ch *engine.ContextChange) (int64, error) {
	x := w.session
	if x == nil || x.id != ch.Session {
		return 0, fmt.Errorf("context %s: the run is no round of session %s", ch.ID, ch.Session)
	}
	if x.length != int64(ch.At) {
		return 0, fmt.Errorf("context %s: session %s has %d messages, not %d: %w", ch.ID, x.id, x.length, ch.At, store.ErrSequence)
	}
	return x.context, nil
}

// updateSession queues what a commit of a round changes in its session.
func (w *commitWriter) updateSession() error {
	x, r, a := w.session, w.r, w.a
	if a.Commit.Seq == 1 { // the journal has the message from here on
		w.t.queue("UPDATE queue SET value = NULL WHERE run = $1", r.num)
	}
	if a.Carryover != nil {
		x.carryover = a.Carryover
	}
	for i, c := range w.rows.context {
		if c == x.context {
			x.length = w.rows.position[i] + 1
		}
	}
	if err := w.t.changeState(x, stateOrigin{round: r.round, run: r.num, at: a.Commit.At}, engine.CompletedSessionState(a.Commit.Events)); err != nil {
		return err
	}
	x.holder = r.num
	usage, err := readUsage(x.usage)
	if err != nil {
		return err
	}
	var reclaimed int64 // counts the change, so that what others have read since the round ended is refused
	if err := w.queueRepeat(); err != nil {
		return err
	}
	if w.again != nil {
		usage, reclaimed = usage.Add(negateUsage(*w.again)), 1
	}
	if a.Head.Status.Ended() {
		usage, x.holder = usage.Add(a.Head.Usage), 0
	}
	if x.usage, err = encodeUsage(usage); err != nil {
		return err
	}
	key, err := w.t.dataKey(x.user)
	if err != nil {
		return err
	}
	w.t.queue("UPDATE session SET carryover = $2, length = $3, usage = $4, holder = $5, fence = fence + $6 WHERE num = $1",
		x.num, w.t.s.encode(key, x.carryover), x.length, x.usage, nullInt(x.holder), reclaimed)
	x.fence += reclaimed
	return nil
}

// queueRepeat queues the insertion of the repetition of a round as the first message that waits. Numbers below zero are
// those of repetitions; the sequence makes them unique.
func (w *commitWriter) queueRepeat() error {
	again := engine.QueuedRepeat(w.a.Commit.Events)
	if again == nil || w.g.restores {
		return nil
	}
	value, err := encodeValue(again.Value())
	if err != nil {
		return err
	}
	key, err := w.t.dataKey(w.session.user)
	if err != nil {
		return err
	}
	w.t.queue(`INSERT INTO queue (num, id, session, value, sender, at)
		SELECT -nextval(pg_get_serial_sequence('queue', 'num')), $1, $2, $3, coalesce((SELECT sender FROM queue WHERE run = $4 ORDER BY num LIMIT 1), ''), $5
		ON CONFLICT DO NOTHING`, text(again.Message), w.session.num, w.t.s.encode(key, value), w.r.num, w.a.Commit.At)
	return nil
}
