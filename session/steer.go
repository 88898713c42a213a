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
// runner.ErrSteeringLate instead. s.ID identifies the message for both.
func (s *Session) Steer(ctx context.Context, m runner.Steering, o SendOptions) (SteerReply, error) {
	o.ID = cmp.Or(m.ID, o.ID, runner.NewID())
	m.ID, m.By = o.ID, cmp.Or(m.By, o.By, s.User)
	if err := m.Check(); err != nil {
		return SteerReply{}, err
	}
	row, err := s.Info(ctx)
	if err != nil {
		return SteerReply{}, err
	}
	run := row.Holder
	if run == "" { // it may have been sent before, to the last round
		rounds, err := s.Rounds(ctx, "", 1)
		if err != nil {
			return SteerReply{}, err
		}
		if len(rounds) > 0 {
			run = rounds[0].ID
		}
	}
	err = runner.ErrSteeringLate
	if run != "" {
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
