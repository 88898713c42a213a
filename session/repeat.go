package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// repetition is what a round takes over from the one that it repeats.
type repetition struct {
	engine.RepeatedRound
	options runner.StartOptions
}

// readQueued reads a message of the queue; the repetition of a round has the message and the
// options of that round.
func (m *Manager) readQueued(ctx context.Context, q *store.QueuedMessage) (*queuedInput, error) {
	said := decodeQueuedInput(q.Value)
	again, ok := engine.ReadRepeat(q.Value)
	if !ok {
		return said, nil
	}
	start, err := runner.JournaledStart(ctx, m.store, again.Run)
	if err != nil {
		return nil, fmt.Errorf("round %s, which is repeated: %w", again.Run, err)
	}
	b, err := runner.RepeatOptions(start)
	if err != nil {
		return nil, fmt.Errorf("round %s, which is repeated: %w", again.Run, err)
	}
	f, err := m.runs.Flow(ctx, said.flow)
	if err != nil {
		return nil, err
	}
	name := messageName
	if in, ok := MessageInput(f); ok {
		name = in.Name
	}
	said.origin, said.repeats = start.Origin, &repetition{RepeatedRound: again, options: b}
	said.message, _ = start.Inputs.Get(name)
	return said, nil
}

// nextRound reads a message of the queue and returns the flow of the round that it starts: that of
// the round that it repeats, or the version of f that is in use.
func (m *Manager) nextRound(ctx context.Context, f *flow.Flow, q *store.QueuedMessage) (*queuedInput, *flow.Flow, error) {
	said, err := m.readQueued(ctx, q)
	switch {
	case err != nil:
	case said.repeats == nil:
		f, err = m.currentFlow(ctx, f)
	case f == nil || f.Fingerprint() != said.flow:
		f, err = m.runs.Flow(ctx, said.flow)
	}
	return said, f, err
}

// repeatOf returns the id of the message that repeats a round which has failed; "" for none.
func (c *driver) repeatOf(ctx context.Context, r *runner.Result) (string, error) {
	if r.Error == nil || r.Error.Code != engine.CodeStateChanged {
		return "", nil
	}
	q, err := c.m.store.FindQueued(ctx, engine.RepeatID(r.Run))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return q.ID, err
}

// follow has a reply wait for the round that a queued message starts, in place of the one that
// it repeats.
func (c *driver) follow(t *Reply, message string) {
	cs := c.m.drivers
	cs.mu.Lock()
	defer cs.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.replies[message] == nil {
		delete(c.replies, t.waits)
		c.replies[message] = t
	}
	t.waits, t.run, t.startLength, t.firstCommit, t.afterEvent = message, "", 0, 0, 0
}
