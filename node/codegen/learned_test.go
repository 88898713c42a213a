package codegen_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/node/codegen"
	"github.com/weir-run/weir/node/codegen/learned"
	"github.com/weir-run/weir/store"
)

// steps of a task by the agents, and of one by learned code.
var (
	byAgents  = []string{"1.1 success", "2.1 skipped", "3.1 success", "4.1 success", "5.1 success", "6.1 success"}
	byLearned = []string{"1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success"}
)

// one returns the one program of a user.
func (s *learningCase) one(user string) codegen.Learned {
	s.t.Helper()
	list, err := s.w.LearnedCode().List(s.t.Context(), learned.Filter{User: user})
	if err != nil || len(list) != 1 {
		s.t.Fatalf("learned for %s: %v, %v", user, list, err)
	}
	return list[0]
}

func (s *learningCase) learnedIs(user string, state codegen.LearnedState, used bool) {
	s.t.Helper()
	if l := s.one(user); l.State != state || l.Active() != used {
		s.t.Errorf("the program of %s is %s, used %v; expected %s, %v", user, l.State, l.Active(), state, used)
	}
}

func TestLearnedCodeManagement(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
	for _, s.user = range []string{"ada", "bob"} {
		s.learnCode(learning, readAmount, invoice(), map[string]any{"invoice": "7 EUR"})
	}
	l := s.one("ada")
	if l.User != "ada" || l.Flow != "reading" || l.Run != "r1" || l.Confirmed != "r2" || !strings.Contains(l.Code, "split") ||
		l.Language != "python" || !strings.Contains(l.Task, "Read the amount") || l.State != codegen.LearnedAccepted {
		t.Errorf("learned for ada: %+v", l)
	}
	found, err := s.w.LearnedCode().Find(t.Context(), l.ID[:6])
	if err != nil || found.ID != l.ID {
		t.Errorf("found by its beginning: %v, %v", found.ID, err)
	}
	if _, err := s.w.LearnedCode().Find(t.Context(), ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("found without an id: %v", err)
	}

	s.user = "ada"
	if changed, err := s.w.LearnedCode().Disable(t.Context(), l.ID); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if changed, err := s.w.LearnedCode().Disable(t.Context(), l.ID); changed || err != nil {
		t.Fatal("disabled twice", changed, err)
	}
	s.learnedIs("ada", codegen.LearnedDisabled, false)
	s.learnedIs("bob", codegen.LearnedAccepted, true)
	for range 2 { // nothing is learned in its place
		s.setTurns(noAnalysis, readAmount, goodVerdict)
		s.checkSteps(learning, map[string]any{"invoice": "9 EUR"}, byAgents...)
	}
	s.learnedIs("ada", codegen.LearnedDisabled, false)
	s.user = "bob"
	s.setTurns(goodVerdict)
	s.checkSteps(learning, invoice(), byLearned...)

	s.user = "ada"
	if changed, err := s.w.LearnedCode().Enable(t.Context(), l.ID); !changed || err != nil {
		t.Fatal(changed, err)
	}
	s.learnedIs("ada", codegen.LearnedAccepted, true)
	s.setTurns(goodVerdict)
	s.checkSteps(learning, invoice(), byLearned...)

	if n, err := s.w.LearnedCode().Delete(t.Context(), l.ID, "no such"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := s.w.LearnedCode().Enable(t.Context(), l.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a deleted program is enabled: %v", err)
	}
	s.setTurns(noAnalysis, readAmount, goodVerdict)
	s.checkSteps(learning, invoice(), byAgents...)
	s.learnedIs("ada", codegen.LearnedCandidate, false)
	s.learnedIs("bob", codegen.LearnedAccepted, true)

	gone, err := s.w.DeleteUser(t.Context(), "ada", store.DeleteOptions{})
	if err != nil || gone.Learned != 1 {
		t.Fatal(gone, err)
	}
	if list, err := s.w.LearnedCode().List(t.Context(), learned.Filter{}); err != nil || len(list) != 1 || list[0].User != "bob" {
		t.Errorf("left after the deletion of ada: %v, %v", list, err)
	}
	s.user = "bob"
	s.setTurns(goodVerdict)
	s.checkSteps(learning, invoice(), byLearned...)
}

// TestEnablingACandidateRestoresIt: a person's word for it does not
// confirm it.
func TestEnablingACandidateRestoresIt(t *testing.T) {
	s := newLearningCase(t)
	s.user = "ada"
	s.learnCode(strings.Replace(readingFlow, ", learn: false", "", 1), readAmount, invoice())
	id := s.one("ada").ID
	for _, change := range []func() (bool, error){
		func() (bool, error) { return s.w.LearnedCode().Disable(t.Context(), id) },
		func() (bool, error) { return s.w.LearnedCode().Enable(t.Context(), id) },
	} {
		if changed, err := change(); !changed || err != nil {
			t.Fatal(changed, err)
		}
	}
	s.learnedIs("ada", codegen.LearnedCandidate, false)
}

// TestStoresListLearnedCodeByUser: a store erases by the keys that are made here.
func TestStoresListLearnedCodeByUser(t *testing.T) {
	if codegen.AllLearned != store.LearnedCodePrefix {
		t.Errorf("keys begin with %q, expected %q", codegen.AllLearned, store.LearnedCodePrefix)
	}
	for _, user := range []string{"", "ada", "a/b", "a b", "ä%2F"} {
		if codegen.LearnedPrefix(user) != store.LearnedCodePrefixOf(user) {
			t.Errorf("keys of %q begin with %q, expected %q", user, codegen.LearnedPrefix(user), store.LearnedCodePrefixOf(user))
		}
	}
}
