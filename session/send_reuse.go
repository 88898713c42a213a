package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// roundInputs adds the message to the inputs of the round that it starts if the flow has no input for
// it: it is kept to answer the first question.
func (m *queuedInput) roundInputs(f *flow.Flow, inputs engine.Values) engine.Values {
	if _, ok := MessageInput(f); ok || m.repeats != nil {
		return inputs
	}
	return append(inputs, engine.Named{Name: messageName, Value: m.message})
}

// checkRepeats returns an error if the message that is stored under the id has another content: its reply
// would be taken for the reply to said, which would be lost. A message that a round has taken is compared with
// the start of that round, or with the answer that it gave.
func (m *Manager) checkRepeats(ctx context.Context, known *store.QueuedMessage, said *queuedInput, by string) error {
	same, err := false, error(nil)
	switch {
	case known.By != "" && known.By != by:
	case known.TakenBy == "":
		same = said.repeatsQueued(known.Value)
	default:
		same, err = m.takenWith(ctx, known, said)
	}
	if err != nil || same {
		return err
	}
	return &engine.Error{
		Code: engine.CodeRequestReused, Permanent: true,
		Message: fmt.Sprintf("message %s was sent before with another content", known.ID), Hint: "give the new message another id",
	}
}

// takenWith reports whether said would have started the round that took the message in the same way, or answered the same
// question with the same value. It is true if neither can be read. The start of a round is its first commit; the answer may be
// anywhere in the round.
func (m *Manager) takenWith(ctx context.Context, known *store.QueuedMessage, said *queuedInput) (bool, error) {
	first, err := m.store.RoundMessage(ctx, known.TakenBy)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if first.ID != known.ID {
		given, err := m.readAnswer(ctx, known.TakenBy, known.ID)
		if err != nil || given == nil {
			return true, err
		}
		v, err := convertToAnswer(given.schema, said.message)
		return err == nil && reflect.DeepEqual(v, given.value), nil // what does not fit was not the answer
	}
	if first.Value != nil { // the round has no commit yet
		return said.repeatsQueued(first.Value), nil
	}
	start, err := runner.JournaledStart(ctx, m.store, known.TakenBy)
	if e, ok := errors.AsType[*engine.Error](err); ok && e.Code == engine.CodeFork { // a run without a commit
		return true, nil
	}
	if err != nil || start.Repeats != nil {
		return err == nil, err
	}
	return m.startedWith(ctx, start, said)
}

// repeatsQueued reports whether a stored message has the same content. Where it comes from does not count.
func (m *queuedInput) repeatsQueued(value engine.Value) bool {
	was, is := decodeQueuedInput(value), decodeQueuedInput(m.encode())
	was.origin, was.flow, was.sender = is.origin, is.flow, is.sender
	return reflect.DeepEqual(was.encode(), is.encode())
}

// givenAnswer is the value with which a message answered a question.
type givenAnswer struct {
	schema map[string]any
	value  engine.Value
}

// readAnswer returns what the message answered in a run or in a child run, nil for nothing.
func (m *Manager) readAnswer(ctx context.Context, run, message string) (*givenAnswer, error) {
	by, schemas := answeredBy(&store.QueuedMessage{ID: message}), map[string]map[string]any{}
	for c, err := range m.store.Commits(ctx, run, 0) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", run, err)
		}
		for _, e := range c.Events {
			switch e := e.(type) {
			case *engine.NodeWaiting:
				for _, i := range e.Interrupts {
					schemas[i.ID] = i.Schema
				}
			case *engine.InterruptAnswered:
				if strings.HasSuffix(e.By, by) {
					return &givenAnswer{schemas[e.ID], e.Value}, nil
				}
			}
		}
	}
	return m.answerInChildren(ctx, run, message)
}

// answerInChildren returns what the message answered in a child run, nil for nothing.
func (m *Manager) answerInChildren(ctx context.Context, run, message string) (*givenAnswer, error) {
	const page = 100
	for before := ""; ; {
		children, err := m.store.Runs(ctx, store.Filter{Parent: run, Before: before, Limit: page})
		if err != nil {
			return nil, fmt.Errorf("list child runs of %s: %w", run, err)
		}
		for i := range children {
			if given, err := m.readAnswer(ctx, children[i].ID, message); given != nil || err != nil {
				return given, err
			}
			before = children[i].ID
		}
		if len(children) < page {
			return nil, nil
		}
	}
}

// startedWith reports whether a round that said starts would start like this one.
func (m *Manager) startedWith(ctx context.Context, start *engine.RunStarted, said *queuedInput) (bool, error) {
	f, err := m.runs.Flow(ctx, start.Fingerprint)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	b, err := said.startOptions(f)
	settings, ok := runner.MainSettings(start)
	return err == nil && // else said cannot have started it
		len(runner.ChangedInputs(said.roundInputs(f, b.Inputs), start.Inputs)) == 0 &&
		(!ok || runner.SameSettings(b.Settings, settings)) && sameSeed(start, said.seed), nil
}

// sameSeed reports whether a round started with a seed. The round gives the messages ids of its own.
func sameSeed(start *engine.RunStarted, seed []convo.Message) bool {
	was := runner.SeedOf(start)
	for i := range was {
		was[i].ID = seedID(i)
	}
	return len(was)+len(seed) == 0 || reflect.DeepEqual(encodeSeed(was), encodeSeed(seed))
}
