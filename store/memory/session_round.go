package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Enqueue implements store.SessionStore.
func (s *Store) Enqueue(ctx context.Context, q store.QueuedMessage) (out store.QueuedMessage, err error) {
	err = s.withSession(ctx, q.Session, func(x *session) error {
		t := &s.sessions
		if known := t.messages[q.ID]; known != nil {
			if out = *known; known.Session != q.Session {
				return fmt.Errorf("message %s: %w, to session %s", q.ID, store.ErrExists, known.Session)
			}
			return nil
		}
		if q.OnlyIfIdle && !s.isIdle(ctx, x) {
			return fmt.Errorf("message to session %s: %w", q.Session, store.ErrBusy)
		}
		out = t.enqueue(q)
		return nil
	})
	return out, err
}

// enqueue stores a message with a new id.
func (t *sessions) enqueue(q store.QueuedMessage) store.QueuedMessage {
	q.TakenBy, q.Value, q.OnlyIfIdle = "", engine.Copy(q.Value), false
	t.messages[q.ID] = &q
	t.queue = append(t.queue, &q)
	return q
}

// isIdle reports whether a session can take a message at once.
func (s *Store) isIdle(ctx context.Context, x *session) bool {
	if slices.ContainsFunc(s.sessions.queue, func(q *store.QueuedMessage) bool { return q.Session == x.row.ID }) {
		return false
	}
	if x.row.Holder == "" {
		return true
	}
	r, err := s.run(ctx, x.row.Holder)
	return err == nil && r.copy().Head.Status == engine.Paused
}

// RefuseQueued implements store.SessionStore.
func (s *Store) RefuseQueued(ctx context.Context, id, holder string, commits int64) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.messages[id]
	if q == nil || q.TakenBy != "" {
		return fmt.Errorf("refuse message %s: %w", id, store.ErrNotQueued)
	}
	if t.byID[q.Session].row.Holder != holder {
		return fmt.Errorf("refuse message %s: %w", id, store.ErrSessionAdvanced)
	}
	if r, err := s.run(ctx, holder); err != nil || r.copy().Commits != commits {
		return fmt.Errorf("refuse message %s: %w", id, store.ErrSessionAdvanced)
	}
	t.removeQueued(q)
	return nil
}

// removeQueued removes a waiting message.
func (t *sessions) removeQueued(q *store.QueuedMessage) {
	delete(t.messages, q.ID)
	t.queue = slices.DeleteFunc(t.queue, func(x *store.QueuedMessage) bool { return x == q })
}

// NotQueued implements store.SessionStore.
func (s *Store) NotQueued(ctx context.Context, ids []string) ([]string, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []string{}
	for _, id := range ids {
		if q := t.messages[id]; q == nil || q.TakenBy != "" {
			out = append(out, id)
		}
	}
	return out, nil
}

// Queue implements store.SessionStore.
func (s *Store) Queue(ctx context.Context, id string) ([]store.QueuedMessage, error) {
	out := []store.QueuedMessage{}
	err := s.withSession(ctx, id, func(*session) error {
		for _, q := range s.sessions.queue {
			if q.Session == id {
				out = append(out, *q)
			}
		}
		return nil
	})
	return out, err
}

// NextQueued implements store.SessionStore.
func (s *Store) NextQueued(ctx context.Context, id string) (store.QueuedMessage, error) {
	list, err := s.Queue(ctx, id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("queue of session %s: %w", id, store.ErrNotFound)
	}
	if err != nil {
		return store.QueuedMessage{}, err
	}
	return list[0], nil
}

// RemoveQueued implements store.SessionStore.
func (s *Store) RemoveQueued(ctx context.Context, id string) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.messages[id]
	if q == nil || q.TakenBy != "" {
		return fmt.Errorf("message %s: %w in a queue", id, store.ErrNotFound)
	}
	t.removeQueued(q)
	return nil
}

// RoundMessage implements store.SessionStore.
func (s *Store) RoundMessage(ctx context.Context, run string) (store.QueuedMessage, error) {
	if err := s.checkOpen(ctx); err != nil {
		return store.QueuedMessage{}, err
	}
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, err := s.run(ctx, run); err == nil && r.message != nil {
		return *r.message, nil
	}
	return store.QueuedMessage{}, fmt.Errorf("message of run %s: %w", run, store.ErrNotFound)
}

// newRound makes a run that may become the next round of a session.
func (s *Store) newRound(x *session, q *store.QueuedMessage, n store.NewRun) (*run, error) {
	t := &s.sessions
	switch head := slices.IndexFunc(t.queue, func(w *store.QueuedMessage) bool { return w.Session == q.Session }); {
	case q.TakenBy != "":
		return nil, fmt.Errorf("run %s took message %s: %w", q.TakenBy, q.ID, store.ErrExists)
	case x.row.Holder != "":
		return nil, fmt.Errorf("round %s has not ended: %w", x.row.Holder, store.ErrBusy)
	case n.StateChanges != nil && *n.StateChanges != x.row.StateChanges:
		return nil, fmt.Errorf("its state has had %d changes, not %d: %w", x.row.StateChanges, *n.StateChanges, store.ErrSessionAdvanced)
	case t.queue[head] != q:
		return nil, fmt.Errorf("message %s waits before it: %w", t.queue[head].ID, store.ErrBusy)
	}
	first, err := x.end()
	if err != nil {
		return nil, err
	}
	r := newRun(n)
	r.first, r.row.Session, r.row.Round = first, x.row.ID, x.row.Rounds+1
	return r, nil
}

// addRound adds a new round to its session.
func (s *Store) addRound(x *session, q *store.QueuedMessage, r *run) error {
	if err := s.add(r); err != nil {
		return err
	}
	t := &s.sessions
	x.rounds = append(x.rounds, r)
	x.row.Rounds++
	x.row.Fence++
	x.row.Holder, x.row.Updated, x.usageAdded = r.row.ID, r.row.Created, false
	q.TakenBy, r.message = r.row.ID, q
	t.queue = slices.DeleteFunc(t.queue, func(w *store.QueuedMessage) bool { return w == q })
	return nil
}

// appendFirstOfRound makes a run the next round of a session, with its first commit.
func (s *Store) appendFirstOfRound(ctx context.Context, a *store.Append) error {
	n := a.Start
	if n.Base != nil {
		return fmt.Errorf("begin round %s: %w", n.ID, store.ErrRoundBase)
	}
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.messages[n.Message]
	if q == nil {
		return fmt.Errorf("begin round %s: message %s: %w", n.ID, n.Message, store.ErrNotFound)
	}
	x := t.byID[q.Session]
	r, err := s.newRound(x, q, n.NewRun)
	if err == nil && x.row.Fence != n.SessionFence {
		err = fmt.Errorf("it has changed: %w", store.ErrBusy)
	}
	if err == nil {
		err = s.checkSources(ctx, r, &a.Commit)
	}
	if err == nil {
		err = x.checkContinues(r, &a.Commit)
	}
	if err == nil {
		err = r.append(a, s.clock())
	}
	if err == nil {
		err = s.addRound(x, q, r)
	}
	if err != nil {
		return fmt.Errorf("begin round %s of session %s: %w", n.ID, q.Session, err)
	}
	x.noteCommit(r, a)
	s.queueRepeat(r, a)
	return nil
}

// queueRepeat puts the repetition of a round first into the queue.
func (s *Store) queueRepeat(r *run, a *store.Append) {
	again := engine.QueuedRepeat(a.Commit.Events)
	if again == nil {
		return
	}
	t := &s.sessions
	q := &store.QueuedMessage{
		ID: again.Message, Session: r.row.Session, Value: again.Value(), By: r.message.By, At: time.UnixMilli(a.Commit.At),
	}
	if t.messages[q.ID] == nil {
		t.messages[q.ID] = q
		t.queue = slices.Insert(t.queue, 0, q)
	}
}

// noteCommit updates a session after a commit of its round.
func (s *session) noteCommit(r *run, a *store.Append) {
	if a.Commit.Seq == 1 {
		r.message.Value = nil
	}
	if a.Carryover != nil {
		s.row.Carryover = slices.Clone(a.Carryover)
	}
	s.changeState(store.StateValue{Round: r.row.Round, Run: r.row.ID, At: time.UnixMilli(a.Commit.At)}, engine.CompletedSessionState(a.Commit.Events))
	if s.row.Holder = r.row.ID; a.Head.Status.Ended() {
		s.row.Holder, s.usageAdded = "", true
		s.row.Usage = s.row.Usage.Add(a.Head.Usage)
	}
}

// appendOfSession appends to a run of a session: a round, or a run that a message to the session answers.
func (s *Store) appendOfSession(r *run, a *store.Append) error {
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range a.ConsumedMessages {
		if q := t.messages[id]; q == nil || q.TakenBy != "" {
			return fmt.Errorf("append commit %d of run %s: message %s: %w", a.Commit.Seq, r.row.ID, id, store.ErrNotQueued)
		}
	}
	holders := make([]string, len(a.ConsumedMessages)) // the commit may end the round
	for i, id := range a.ConsumedMessages {
		holders[i] = t.byID[t.messages[id].Session].row.Holder
	}
	if r.row.Session == "" {
		if err := r.append(a, s.clock()); err != nil {
			return err
		}
	} else if err := s.appendRound(r, a); err != nil {
		return err
	}
	for i, id := range a.ConsumedMessages {
		q := t.messages[id]
		q.TakenBy, q.Value = holders[i], nil
		t.queue = slices.DeleteFunc(t.queue, func(x *store.QueuedMessage) bool { return x == q })
	}
	return nil
}

// appendRound appends to a round, which must hold its session. A round that has ended acquires the session again if
// it has not advanced.
func (s *Store) appendRound(r *run, a *store.Append) error {
	t := &s.sessions
	x := t.byID[r.row.Session]
	if x == nil {
		return fmt.Errorf("session %s: %w", r.row.Session, store.ErrNotFound)
	}
	if x.row.Holder != r.row.ID && x.row.Rounds != r.row.Round { // another round holds or held it
		return fmt.Errorf("append commit %d of run %s, round %d of session %s, which has had %d: %w",
			a.Commit.Seq, r.row.ID, r.row.Round, r.row.Session, x.row.Rounds, store.ErrSessionAdvanced)
	}
	if x.row.Holder != r.row.ID && x.wasSetSince(r.row.Round) {
		return fmt.Errorf("append commit %d of run %s: the state of session %s was set after round %d had ended: %w",
			a.Commit.Seq, r.row.ID, r.row.Session, r.row.Round, store.ErrSessionAdvanced)
	}
	before := r.copy().Head.Usage
	if err := x.checkContinues(r, &a.Commit); err != nil {
		return err
	}
	if err := r.append(a, s.clock()); err != nil {
		return err
	}
	if x.usageAdded {
		x.row.Usage, x.usageAdded = subtractUsage(x.row.Usage, before), false
		x.row.Fence++
	}
	x.noteCommit(r, a)
	s.queueRepeat(r, a)
	return nil
}

// checkContinues refuses a commit whose context continues the session at another position than its end.
func (s *session) checkContinues(r *run, c *engine.Commit) error {
	for _, e := range c.Events {
		for i, changes := 0, engine.ContextChanges(e); i < len(changes); i++ {
			ch := &changes[i]
			if ch.Session == "" {
				continue
			}
			n, err := s.end()
			if err == nil && (n != ch.At || r.first != n) {
				err = store.ErrSequence
			}
			if err != nil {
				return fmt.Errorf("context %s: session %s has %d messages, not %d: %w", ch.ID, ch.Session, n, ch.At, err)
			}
		}
	}
	return nil
}

func subtractUsage(a, b engine.Usage) engine.Usage {
	return a.Add(engine.Usage{
		Calls: -b.Calls, Input: -b.Input, Cached: -b.Cached, Output: -b.Output, Reasoning: -b.Reasoning, CostMicros: -b.CostMicros,
		Estimated: -b.Estimated,
	})
}
