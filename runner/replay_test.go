package runner_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/memory"
)

// rearrangedStore is a store whose journals are read in another order than they were written.
type rearrangedStore struct {
	*memory.Store
	rearrange func([]engine.Commit) []engine.Commit
}

func (s *rearrangedStore) Commits(ctx context.Context, run string, after int64) iter.Seq2[engine.Commit, error] {
	return func(yield func(engine.Commit, error) bool) {
		var list []engine.Commit
		for c, err := range s.Store.Commits(ctx, run, after) {
			if err != nil {
				yield(c, err)
				return
			}
			list = append(list, c)
		}
		for _, c := range s.rearrange(list) {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func TestAJournalThatRepeatsOrLacksACommitIsRefused(t *testing.T) {
	t.Parallel()
	st := memory.New()
	p := eventsProgram(t)
	l := runner.NewLocal(runner.Options{Store: st})
	if _, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"}); err != nil {
		t.Fatal(err)
	}
	x, err := l.Do(t.Context(), p, "r", runner.Cancel("ada", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, rearrange := range map[string]func(list []engine.Commit) []engine.Commit{
		"the last commit twice": func(list []engine.Commit) []engine.Commit { return append(list, list[len(list)-1]) },
		"the first one twice":   func(list []engine.Commit) []engine.Commit { return append(list[:1:1], list...) },
		"without the first one": func(list []engine.Commit) []engine.Commit { return list[1:] },
	} {
		l := runner.NewLocal(runner.Options{Store: &rearrangedStore{st, rearrange}})
		if _, err := l.Resume(t.Context(), p, "r"); err == nil || !strings.Contains(err.Error(), " follows ") {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
