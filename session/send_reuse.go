package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
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
// the inputs of that round; one that answered a question is not compared.
func (m *Manager) checkRepeats(ctx context.Context, known *store.QueuedMessage, said *queuedInput) error {
	same, err := false, error(nil)
	if known.TakenBy == "" {
		was := decodeQueuedInput(known.Value)
		same = reflect.DeepEqual(was.message, said.message) && was.model == said.model &&
			(len(was.inputs)+len(said.inputs) == 0 || reflect.DeepEqual(was.inputs, said.inputs))
	} else {
		same, err = m.startedWith(ctx, known, said)
	}
	if err != nil || same {
		return err
	}
	return &engine.Error{
		Code: engine.CodeRequestReused, Permanent: true,
		Message: fmt.Sprintf("message %s was sent before with another content", known.ID), Hint: "give the new message another id",
	}
}

// startedWith reports whether a round that said starts would have the inputs with which the round that took
// the message started. It is true if the message answered a question, or the round cannot be read.
func (m *Manager) startedWith(ctx context.Context, known *store.QueuedMessage, said *queuedInput) (bool, error) {
	var start *engine.RunStarted
	for c, err := range m.store.Commits(ctx, known.TakenBy, 0) {
		if err != nil {
			return false, fmt.Errorf("read run %s: %w", known.TakenBy, err)
		}
		for _, e := range c.Events {
			switch e := e.(type) {
			case *engine.RunStarted:
				start = e
			case *engine.InterruptAnswered:
				if strings.HasSuffix(e.By, answeredBy(&store.QueuedMessage{ID: known.ID})) {
					return true, nil
				}
			}
		}
	}
	if start == nil || start.Repeats != nil {
		return true, nil
	}
	f, err := m.runs.Flow(ctx, start.Fingerprint)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	b, err := said.startOptions(f)
	if err != nil { // said cannot have started it
		return false, nil
	}
	return reflect.DeepEqual(said.roundInputs(f, b.Inputs).Map(), start.Inputs.Map()), nil
}
