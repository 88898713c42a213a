package history_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/trajectory"
)

const roundsFlow = `
weir: 1
name: rounds
context: {model: puppet/m}
inputs: {message: {type: text, required: true}}
nodes:
  ask: {type: agent, in: {message: "{{ run.inputs.message }} !look", tools: [look]}}
  say: {type: llmRequest, in: {message: "so {{ ask.text }} !look", tools: [look]}}
outputs: {text: "{{ say.text }}"}
`

// roundsOf has so many rounds in the one session that there is.
func (s *trajectoryHarness) roundsOf(t *testing.T, n int) *weir.Session {
	t.Helper()
	f, err := s.w.Parse("rounds.yaml", []byte(roundsFlow))
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.w.Session(t.Context(), f, weir.SessionOptions{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if state := weirkit.SendAndWait(t, session, fmt.Sprint("message ", i), weir.SendOptions{}); state.Status != engine.Completed {
			t.Fatalf("%s %v", state.Status, state.Error)
		}
	}
	return session
}

// failingStorage is a storage that keeps nothing while its process dies.
type failingStorage struct {
	trajectory.Storage
	dying bool
}

func (s *failingStorage) Save(ctx context.Context, r trajectory.Record) error {
	if s.dying {
		return weirkit.ErrDied
	}
	return s.Storage.Save(ctx, r)
}

func TestNextRoundStoresMissingTrajectory(t *testing.T) {
	for _, before := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			s := newTrajectoryHarness(t, filepath.Join(t.TempDir(), "weir.db"))
			kept := &failingStorage{Storage: s.kept}
			s.kept = kept
			if err := s.open(); err != nil {
				t.Fatal(err)
			}
			s.roundsOf(t, before)
			kept.dying = true
			session := s.roundsOf(t, 1)
			if err := s.open(); err != nil {
				t.Fatal(err)
			}
			if err := compareStored(t.Context(), s.w, s.kept, "ann", session.ID); err == nil {
				t.Fatal("the round is stored, and was to be lost")
			}
			kept.dying = false
			s.roundsOf(t, 1)
			if err := s.open(); err != nil {
				t.Fatal(err)
			}
			checkStored(t, s.w, s.kept, "ann", session.ID)
		})
	}
}

const waitingRound = `
weir: 1
name: asking
context: {model: puppet/m}
inputs: {message: {type: text, required: true}}
nodes:
  say: {type: llmRequest, in: {message: "so {{ run.inputs.message }} !look", tools: [look]}}
  ask: {type: userInput, after: say, with: {prompt: "And?"}}
  end: {type: llmRequest, in: {message: "{{ ask.text }} !look"}, after: ask}
outputs: {text: "{{ end.text }}"}
`

func TestNextRoundUpdatesTrajectoryOfPausedRound(t *testing.T) {
	s := newTrajectoryHarness(t, filepath.Join(t.TempDir(), "weir.db"))
	kept := &failingStorage{Storage: s.kept}
	s.kept = kept
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	f, err := s.w.Parse("asking.yaml", []byte(waitingRound))
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for i, dying := range []bool{false, true, false, true, false, false} { // each two are a round
		kept.dying = dying
		session, err := s.w.Session(t.Context(), f, weir.SessionOptions{User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		id = session.ID
		if state := weirkit.SendAndWait(t, session, fmt.Sprint("message ", i), weir.SendOptions{}); state.Round != i/2+1 {
			t.Fatalf("%+v", state)
		}
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
	}
	checkStored(t, s.w, s.kept, "ann", id)
}

func TestEarlierRoundsAreStoredOnDemand(t *testing.T) {
	for _, asked := range []bool{false, true} {
		t.Run(fmt.Sprint(asked), func(t *testing.T) {
			s := newTrajectoryHarness(t, "")
			if err := s.openWith(s.store, nil); err != nil {
				t.Fatal(err)
			}
			session := s.roundsOf(t, 3)
			if err := s.w.KeepTrajectory(t.Context(), session.ID); err == nil {
				t.Error("it was kept in no storage")
			}
			if err := s.open(); err != nil {
				t.Fatal(err)
			}
			if !asked {
				s.roundsOf(t, 1)
			} else if err := s.w.KeepTrajectory(t.Context(), session.ID); err != nil {
				t.Fatal(err)
			}
			if err := s.open(); err != nil {
				t.Fatal(err)
			}
			checkStored(t, s.w, s.kept, "ann", session.ID)
		})
	}
}

// readCountingStore counts how often a journal is read.
type readCountingStore struct {
	weir.Store
	n atomic.Int64
}

func (r *readCountingStore) Commits(ctx context.Context, run string, after int64) iter.Seq2[engine.Commit, error] {
	r.n.Add(1)
	return r.Store.Commits(ctx, run, after)
}

func TestStoringRoundReadsNoOtherRounds(t *testing.T) {
	s := newTrajectoryHarness(t, "")
	counted := &readCountingStore{Store: memory.New()}
	s.store = counted
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	var took []int64
	for range 12 {
		before := counted.n.Load()
		s.roundsOf(t, 1)
		took = append(took, counted.n.Load()-before)
	}
	if took[11] != took[3] || took[11] > 10 {
		t.Errorf("journals were read so often, round by round: %v", took)
	}
}
