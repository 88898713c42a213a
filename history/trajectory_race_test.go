package history_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

const crowdFlow = `
weir: 1
name: crowd
context: {model: puppet/m}
inputs: {message: {type: text, required: true}}
nodes:
  ask: {type: agent, in: {message: "{{ run.inputs.message }} !look+helper", tools: [look, helper]}}
  each:
    type: forEach
    after: ask
    in: {items: [1, 2, 3]}
    with: {concurrency: 3, body: {nodes: {note: {type: hand}, say: {type: llmRequest, after: note, in: {message: "{{ inputs.index }} !look", tools: [look]}}}}}
outputs: {text: "{{ ask.text }}"}
`

// talk has rounds in a session of its own, and reads its trajectory while others
// write theirs.
func (s *trajectoryHarness) talk(t *testing.T, f *weir.Flow, o weir.SessionOptions, rounds int) string {
	t.Helper()
	session, err := s.w.Session(t.Context(), f, o)
	if err != nil {
		t.Error(err)
		return ""
	}
	for round := range rounds {
		turn, err := session.Send(t.Context(), fmt.Sprint("message ", round), weir.SendOptions{})
		if err != nil {
			t.Error(err)
			return ""
		}
		if state, err := turn.Wait(t.Context()); err != nil || state.Status != engine.Completed {
			t.Errorf("%s %v %v", state.Status, state.Error, err)
		}
	}
	if _, err := s.w.Trajectory(t.Context(), session.ID, 0); err != nil {
		t.Error(err)
	}
	return session.ID
}

func Test64ConcurrentWritersHaveSeparateTrajectories(t *testing.T) {
	t.Parallel()
	s := newTrajectoryHarness(t, "")
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	f, err := s.w.Parse("crowd.yaml", []byte(crowdFlow))
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 64)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			ids[i] = s.talk(t, f, weir.SessionOptions{User: fmt.Sprint("user", i%8), Thread: fmt.Sprint(i / 8)}, 2)
		})
	}
	all.Wait()
	if err := s.open(); err != nil { // all is stored by then
		t.Fatal(err)
	}
	for i, id := range ids {
		if i%8 == 0 || !testing.Short() {
			checkStored(t, s.w, s.kept, fmt.Sprint("user", i%8), id)
		}
	}
}
