package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

func TestSessionHasATitleAndLabels(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, weirkit.TalkFlow)
		var list []*weir.Session
		for i := range 3 {
			s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ada", Thread: fmt.Sprint("thread", i)})
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, s)
		}
		set := func(s *weir.Session, title string, labels ...string) {
			t.Helper()
			if err := errors.Join(s.Rename(t.Context(), title, "bob"), s.SetLabels(t.Context(), labels, "bob")); err != nil {
				t.Fatal(err)
			}
		}
		check := func(s *weir.Session, title string, labels ...string) {
			t.Helper()
			n, err := w.SessionNames(t.Context(), s.ID)
			if err != nil || n.Title != title || !slices.Equal(n.Labels, labels) {
				t.Errorf("%+v, %v", n, err)
			}
		}
		set(list[0], "The first", "b", "a", "b")
		set(list[1], "The second", "a", "ab")
		set(list[2], "The third", "ab")
		set(list[0], " Again ", "b", "c", "a")
		set(list[2], "")
		check(list[0], "Again", "a", "b", "c")
		check(list[1], "The second", "a", "ab")
		check(list[2], "")
		labelled := func(label string, sf store.SessionFilter, want ...*weir.Session) {
			t.Helper()
			got, err := w.LabelledSessions(t.Context(), label, sf)
			if err != nil || !slices.EqualFunc(got, want, func(a store.Session, b *weir.Session) bool { return a.ID == b.ID }) {
				t.Errorf("%s %+v: %v, %v", label, sf, got, err)
			}
		}
		newest := newestOf(t, w, list[0], list[1])
		labelled("a", store.SessionFilter{}, newest...)
		labelled("a", store.SessionFilter{Limit: 1}, newest[0])
		labelled("a", store.SessionFilter{Before: newest[0].ID}, newest[1])
		labelled("a", store.SessionFilter{User: "bob"})
		labelled("a", store.SessionFilter{Flow: "other"})
		labelled("ab", store.SessionFilter{User: "ada", Flow: list[1].Flow}, list[1])
		refuseNames(t, w, list[0])
		check(list[0], "Again", "a", "b", "c")
		fork, err := list[0].Fork(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		check(fork, "")
		if _, err := list[0].Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(list[0], "")
		labelled("a", store.SessionFilter{}, list[1])
	})
}

func refuseNames(t *testing.T, w *weir.Weir, s *weir.Session) {
	t.Helper()
	for _, bad := range []string{"A", "", "a b", "a/b", strings.Repeat("a", 65), "ä"} {
		wantUsage(t, s.SetLabels(t.Context(), []string{"a", bad}, ""))
	}
	var many []string
	for i := range session.MaxLabels + 1 {
		many = append(many, fmt.Sprint(i))
	}
	wantUsage(t, s.SetLabels(t.Context(), many, ""))
	for _, bad := range []string{"a\nb", "a\x1bb", "\xff", strings.Repeat("a", session.MaxTitle+1)} {
		wantUsage(t, s.Rename(t.Context(), bad, ""))
	}
	if err := w.RenameSession(t.Context(), "none", "x", ""); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// newestOf orders sessions as listings do.
func newestOf(t *testing.T, w *weir.Weir, list ...*weir.Session) (out []*weir.Session) {
	t.Helper()
	all, err := w.Sessions(t.Context(), store.SessionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if j := slices.IndexFunc(list, func(s *weir.Session) bool { return s.ID == all[i].ID }); j >= 0 {
			out = append(out, list[j])
		}
	}
	return out
}

func wantUsage(t *testing.T, err error) {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.CodeUsage {
		t.Errorf("%v", err)
	}
}

// TestARepeatedIncreaseAddsOnce repeats requests, also at the same time, and one that is no longer among the newest.
func TestARepeatedIncreaseAddsOnce(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, strings.Replace(weirkit.TalkFlow, "inputs:", "session: {budget: {maxCalls: 1}}\ninputs:", 1))
		s := weirkit.OpenSession(t, w, f)
		add := func(id string, want int) {
			t.Helper()
			b, err := s.IncreaseBudgetOnce(context.WithoutCancel(t.Context()), id, session.BudgetIncrease{Calls: 1}, "ada")
			if err != nil || want > 0 && b.Increase.Calls != want {
				t.Errorf("%s: %+v, %v; expected %d", id, b, err, want)
			}
		}
		var added sync.WaitGroup
		for range 3 {
			added.Go(func() { add("a", 0) })
		}
		added.Wait()
		add("a", 1)
		add("b", 2)
		add("", 3)
		add("", 4)
		add("a", 4)
		for i := range 99 {
			add(fmt.Sprint(i), 5+i)
		}
		add("b", 103)
		add("a", 104) // 100 others came after it
	})
}

func TestBudgetOfASessionIsIncreased(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, path string) {
		t.Helper()
		w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, strings.Replace(weirkit.TalkFlow, "inputs:", "session: {budget: {maxCalls: 1}}\ninputs:", 1))
		s := weirkit.OpenSession(t, w, f)
		rounds := func(s *weir.Session, completed int) {
			t.Helper()
			for i := range completed + 1 {
				if state := weirkit.SendAndWait(t, s, fmt.Sprint(i), weir.SendOptions{}); (state.Status == engine.Completed) != (i < completed) {
					t.Fatalf("round %d: %+v %+v", i, state, state.Error)
				}
			}
		}
		rounds(s, 1)
		for _, bad := range []session.BudgetIncrease{{}, {Calls: -1}, {Tokens: 1}, {Cost: 1}, {Calls: 1, Tokens: 1}, {Calls: 2_000_000_000_000}} {
			_, err := s.IncreaseBudget(t.Context(), bad, "")
			wantUsage(t, err)
		}
		var added sync.WaitGroup
		for range 3 {
			added.Go(func() {
				if _, err := s.IncreaseBudget(context.WithoutCancel(t.Context()), session.BudgetIncrease{Calls: 1}, "ada"); err != nil {
					t.Error(err)
				}
			})
		}
		added.Wait()
		b, err := s.Budget(t.Context())
		if err != nil || b.Limits.MaxCalls != 4 || b.Increase != (session.BudgetIncrease{Calls: 3}) || b.Used.Calls != 1 {
			t.Errorf("%+v, %v", b, err)
		}
		rounds(s, 3)
		fork, err := s.Fork(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		rounds(fork, 1)
	})
}
