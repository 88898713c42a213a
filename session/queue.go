package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// QueuedMessage is a message to a session that no round has taken.
type QueuedMessage struct {
	ID, By string
	At     time.Time
	// Message is the content. Origin is what sent it; "" is a call from Go.
	Message engine.Value
	Origin  string
}

// QueuedMessages lists the messages that no round has taken, in order.
func (s *Session) QueuedMessages(ctx context.Context) ([]QueuedMessage, error) {
	return s.m.QueuedMessages(ctx, s.ID)
}

// QueuedMessages is Session.QueuedMessages by id.
func (m *Manager) QueuedMessages(ctx context.Context, session string) ([]QueuedMessage, error) {
	list, err := m.store.Queue(ctx, session)
	if err != nil {
		return nil, err
	}
	out := make([]QueuedMessage, len(list))
	for i := range list {
		q := &list[i]
		said, err := m.readQueued(ctx, q)
		if err != nil {
			return nil, err
		}
		out[i] = QueuedMessage{ID: q.ID, By: q.By, At: q.At, Message: said.message, Origin: said.origin}
	}
	return out, nil
}

// Continue drives a session whose senders have died: its round, if no process executes it,
// and the messages in its queue, each with the flow it was sent with. It returns a Reply
// for each; none if there is nothing to do. A message that cannot be taken stays in the
// queue, and its Reply ends with an error. Another process may do the same at the same
// time: each message is still taken once.
func (m *Manager) Continue(ctx context.Context, id string) ([]*Reply, error) {
	row, err := m.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := m.store.Queue(ctx, id)
	if err != nil {
		return nil, err
	}
	if row.Holder != "" {
		q, err := m.store.RoundMessage(ctx, row.Holder)
		switch {
		case err == nil:
			list = append([]store.QueuedMessage{q}, list...)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	var turns []*Reply
	for i := range list {
		f, err := m.flowOfMessage(ctx, &row, &list[i])
		if err != nil {
			return turns, fmt.Errorf("session %s: message %s: %w", id, list[i].ID, err)
		}
		t := newReply(m.session(&row, f), list[i].ID, SendOptions{By: list[i].By})
		t.recovered = true
		if t, err = m.drivers.add(t); err != nil {
			return turns, err
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// flowOfMessage returns the flow that a message was sent with, else that of the session's
// last round.
func (m *Manager) flowOfMessage(ctx context.Context, row *store.Session, q *store.QueuedMessage) (*flow.Flow, error) {
	if fp := decodeQueuedInput(q.Value).flow; fp != "" {
		return m.runs.Flow(ctx, fp)
	}
	return m.flowOfSession(ctx, row)
}

// Unqueue removes a message that no round has taken yet, by its id, and returns the
// session it was sent to. A sender that waits for it gets the status cancelled. The error
// is store.ErrNotFound if there is no such message, and runner.ErrStatus if a round has
// taken it.
func (m *Manager) Unqueue(ctx context.Context, message string) (session string, err error) {
	q, err := m.store.FindQueued(ctx, message)
	if err == nil && q.TakenBy == "" {
		err = m.store.RemoveQueued(ctx, message)
		if errors.Is(err, store.ErrNotFound) { // taken or removed meanwhile
			q, err = m.store.FindQueued(ctx, message)
		}
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("take back message %s: %w", message, err)
	case q.TakenBy != "":
		return q.Session, &runner.Refusal{
			What: fmt.Sprintf("message %s cannot be taken back", message), Why: fmt.Sprintf("run %s has taken it", q.TakenBy),
			Instead: "`" + engine.CommandLine("cancel", q.TakenBy) + "` cancels the round",
		}
	}
	return q.Session, nil
}
