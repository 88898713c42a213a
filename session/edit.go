package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Edit sends a message in the place of an earlier one: it forks the session before the message
// of a person at a position, from 0, and sends the message there. The session itself does not
// change; the fork is Reply.Session. A position without a message of a person is input_invalid. A
// message that is refused leaves no fork. With SendOptions.ID, editing again returns the same reply.
func (s *Session) Edit(ctx context.Context, position int, message any, o SendOptions) (*Reply, error) {
	if _, err := s.saidAt(ctx, position); err != nil {
		return nil, err
	}
	return s.sendInFork(ctx, position, message, o)
}

// Regenerate asks again for the answer to a message of a person: that at a position, from 0, or,
// with -1, the last one. It forks the session before the message, and sends the same message there.
// With SendOptions.ID, regenerating again returns the same reply.
func (s *Session) Regenerate(ctx context.Context, position int, o SendOptions) (*Reply, error) {
	if position < 0 {
		var err error
		if position, err = s.lastSaid(ctx); err != nil {
			return nil, err
		}
	}
	m, err := s.saidAt(ctx, position)
	if err != nil {
		return nil, err
	}
	return s.sendInFork(ctx, position, convo.Message{Role: convo.User, Text: m.Text, Parts: m.Parts, Name: m.Name}, o)
}

// sendInFork sends a message in a fork. The id of the fork follows from that of the message, so
// that a process that dies between the two leaves nothing that sending again does not find.
func (s *Session) sendInFork(ctx context.Context, position int, message any, o SendOptions) (*Reply, error) {
	id := ""
	if o.ID != "" {
		id = forkIDForMessage(s.ID, o.ID)
	}
	other, made, err := s.forkAs(ctx, id, position)
	if err != nil {
		return nil, err
	}
	r, err := other.Send(ctx, message, o)
	if err == nil || !made {
		return r, err
	}
	if _, gone := other.Delete(context.WithoutCancel(ctx)); gone != nil {
		err = fmt.Errorf("%w; the fork %s stays: %w", err, other.ID, gone)
	}
	return nil, err
}

// forkAs is Fork with an id, "" for a new one. A session that exists under the id is returned; made
// is false then.
func (s *Session) forkAs(ctx context.Context, id string, at int) (other *Session, made bool, err error) {
	if id == "" {
		other, err = s.Fork(ctx, at)
		return other, err == nil, err
	}
	err = s.createFork(ctx, id, at)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return nil, false, err
	}
	made = err == nil
	row, err := s.m.store.Session(ctx, id)
	if err != nil {
		return nil, false, err
	}
	return s.m.session(&row, s.flow), made, nil
}

// saidAt returns the message of a person at a position.
func (s *Session) saidAt(ctx context.Context, position int) (convo.Message, error) {
	row, err := s.Info(ctx)
	if err != nil {
		return convo.Message{}, err
	}
	refused := &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("session %s has no message of a person at %d; it has %d messages, from 0", s.ID, position, row.Length),
		Hint:    "give the number of a message of the person, as the list of the messages has it",
	}
	if position < 0 || position >= row.Length {
		return convo.Message{}, refused
	}
	list, err := s.Messages(ctx, position, position+1)
	if err != nil {
		return convo.Message{}, err
	}
	if len(list) != 1 || list[0].Message.Role != convo.User {
		return convo.Message{}, refused
	}
	return list[0].Message, nil
}

// lastSaid returns the position of the last message of a person.
func (s *Session) lastSaid(ctx context.Context) (int, error) {
	row, err := s.Info(ctx)
	if err != nil {
		return 0, err
	}
	const page = 100
	for to := row.Length; to > 0; to -= page {
		list, err := s.Messages(ctx, max(to-page, 0), to)
		if err != nil {
			return 0, err
		}
		for _, m := range slices.Backward(list) {
			if m.Message.Role == convo.User {
				return m.Position, nil
			}
		}
	}
	return 0, &engine.Error{Code: engine.CodeInput, Permanent: true, Message: "session " + s.ID + " has no message of a person"}
}
