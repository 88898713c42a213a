package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// StuckQueue is a session in which a message waits that no process takes.
type StuckQueue struct {
	Session store.Session
	// Message is the id of the first message that waits, and Sender the process that sent it, "" if the message does not say.
	Message, Sender string
	// Since is when the message was sent or the last round committed, whichever is later.
	Since time.Time
	// Paused says that the message is for a round that waits for an answer.
	Paused bool
}

// stuckPage is how many sessions with messages are read at a time.
const stuckPage = 200

// StuckQueues returns the sessions, ordered by id, in which nothing has happened for an age and a message waits although no round
// keeps it from being taken: there is no round, or it waits for an answer and no live process has it. A session that this process
// drives is not stuck. A round that is to be executed is not reported: its run is what is stuck.
func (m *Manager) StuckQueues(ctx context.Context, age time.Duration) (out []StuckQueue, err error) {
	for after := ""; ; {
		ids, err := m.store.PendingSessions(ctx, after, stuckPage)
		if err != nil {
			return nil, fmt.Errorf("list sessions with messages: %w", err)
		}
		for _, id := range ids {
			after = id
			q, err := m.stuckQueue(ctx, id)
			if errors.Is(err, store.ErrNotFound) { // it was deleted meanwhile
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("session %s: %w", id, err)
			}
			if q != nil && time.Since(q.Since) >= age {
				out = append(out, *q)
			}
		}
		if len(ids) < stuckPage {
			return out, nil
		}
	}
}

// stuckQueue returns nil if a process takes the messages of a session, or may still do so.
func (m *Manager) stuckQueue(ctx context.Context, id string) (*StuckQueue, error) {
	if m.drivers.drives(id) {
		return nil, nil
	}
	row, err := m.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := m.store.Queue(ctx, id)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	q := &StuckQueue{Session: row, Message: list[0].ID, Sender: decodeQueuedInput(list[0].Value).sender, Since: list[0].At}
	last, err := m.store.Runs(ctx, store.Filter{Session: id, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(last) > 0 {
		q.Since = laterTime(q.Since, last[0].Updated)
		q.Paused = row.Holder == last[0].ID && last[0].Head.Status == engine.Paused
		live := last[0].Owner != "" && !last[0].Expired && !runner.OwnerDead(last[0].Owner)
		if row.Holder == last[0].ID && (!q.Paused || live) {
			return nil, nil
		}
	}
	if (q.Sender == "" || !runner.OwnerDead(q.Sender)) && time.Since(q.Since) <= senderTimeout {
		return nil, nil // its sender may be about to start the round
	}
	return q, nil
}

func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
