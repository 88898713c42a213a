package session

import (
	"cmp"
	"context"
	"errors"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// SteerReply says what became of a message to a round.
type SteerReply struct {
	// Message is the id of the message.
	Message string
	// Run and Node are the round and the node that takes the message, "" if it was queued.
	Run, Node string
	// Queued follows the message if no node could take it and it became the next message to the
	// session, nil otherwise.
	Queued *Reply
}

// Steer sends a message to the round of the session that runs; see weir.Steer. If no node of
// the round works that could take it, or no round runs, the message is sent to the session as by
// Send, with the options o. A request that only interrupts is refused with
// runner.ErrSteeringLate instead. m.ID identifies the message for both: a message that was sent before, to this round,
// the one before it, or as a message of the session, is not sent again.
func (s *Session) Steer(ctx context.Context, m runner.Steering, o SendOptions) (SteerReply, error) {
	given := cmp.Or(m.ID, o.ID)
	o.ID = cmp.Or(given, runner.NewID())
	m.ID, m.By = o.ID, cmp.Or(m.By, o.By, s.User)
	if err := m.Check(); err != nil {
		return SteerReply{}, err
	}
	if given != "" {
		if before, err := s.steeredBefore(ctx, m, o); before.Message != "" || err != nil {
			return before, err
		}
	}
	row, err := s.Info(ctx)
	if err != nil {
		return SteerReply{}, err
	}
	err = runner.ErrSteeringLate
	if run := row.Holder; run != "" {
		var node string
		if node, err = s.m.runs.Steer(ctx, run, m); err == nil {
			return SteerReply{Message: m.ID, Run: run, Node: node}, nil
		}
	}
	late := errors.Is(err, runner.ErrSteeringLate) || errors.Is(err, store.ErrNotFound) // a round that has not begun
	if !late || m.Text == "" {
		return SteerReply{}, err
	}
	reply, err := s.Send(ctx, m.Text, o)
	return SteerReply{Message: m.ID, Queued: reply}, err
}

// steeredBefore returns what became of a message that was sent before; its Message is "" if it was not.
func (s *Session) steeredBefore(ctx context.Context, m runner.Steering, o SendOptions) (SteerReply, error) {
	_, err := s.m.store.FindQueued(ctx, m.ID)
	if err == nil {
		reply, err := s.Send(ctx, m.Text, o)
		return SteerReply{Message: m.ID, Queued: reply}, err
	}
	if !errors.Is(err, store.ErrNotFound) {
		return SteerReply{}, err
	}
	rounds, err := s.Rounds(ctx, "", 2)
	if err != nil {
		return SteerReply{}, err
	}
	for i := range rounds {
		node, err := s.m.local.FindSteering(ctx, rounds[i].ID, m.ID)
		switch {
		case errors.Is(err, store.ErrNotFound): // it has not begun
		case err != nil:
			return SteerReply{}, err
		case node != "":
			return SteerReply{Message: m.ID, Run: rounds[i].ID, Node: node}, nil
		}
	}
	return SteerReply{}, nil
}
