package weir

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node/codegen"
	"github.com/weir-run/weir/store"
)

// LearnedCode is a program that models wrote for a task of one user's flow.
type LearnedCode = codegen.Learned

// LearnedState is how far learned code has come.
type LearnedState = codegen.LearnedState

// The states of learned code: a candidate is not used before other values have
// confirmed it, and a disabled program keeps others from being learned in its place.
const (
	LearnedCandidate = codegen.LearnedCandidate
	LearnedAccepted  = codegen.LearnedAccepted
	LearnedDisabled  = codegen.LearnedDisabled
)

// LearnedFilter says which programs; the zero value takes all.
type LearnedFilter struct {
	// User takes those of one user, Flow those of the flow of this name.
	User, Flow string
	State      LearnedState
	// Prefix is how their ids begin.
	Prefix string
}

// matches reports whether the filter takes a program.
func (f *LearnedFilter) matches(l *LearnedCode) bool {
	return (f.User == "" || f.User == l.User) && (f.Flow == "" || f.Flow == l.Flow) &&
		(f.State == "" || f.State == l.State) && strings.HasPrefix(l.ID, f.Prefix)
}

// Learned lists the programs that were learned, the newest first.
func (w *Weir) Learned(ctx context.Context, f LearnedFilter) ([]LearnedCode, error) {
	list, _, err := w.learned(ctx, f)
	return list, err
}

// learned lists programs with their keys.
func (w *Weir) learned(ctx context.Context, f LearnedFilter) (list []LearnedCode, keys map[string]string, err error) {
	prefix := codegen.AllLearned
	if f.User != "" {
		prefix = codegen.LearnedPrefix(f.User)
	}
	entries, err := w.store.CacheList(ctx, prefix, time.Now())
	if err != nil {
		return nil, nil, err
	}
	list, keys = []LearnedCode{}, make(map[string]string)
	for _, e := range entries {
		if l, ok := codegen.ReadLearned(e.Key, e.Value); ok && f.matches(&l) {
			list, keys[l.ID] = append(list, l), e.Key
		}
	}
	slices.SortStableFunc(list, func(a, b LearnedCode) int { return b.At.Compare(a.At) })
	return list, keys, nil
}

// FindLearned returns the one program whose id begins with prefix. Where there is none
// it is store.ErrNotFound.
func (w *Weir) FindLearned(ctx context.Context, prefix string) (LearnedCode, error) {
	list, _, err := w.learned(ctx, LearnedFilter{Prefix: prefix})
	switch {
	case err != nil:
		return LearnedCode{}, err
	case len(list) == 0 || prefix == "":
		return LearnedCode{}, fmt.Errorf("learned code %q: %w", prefix, store.ErrNotFound)
	case len(list) > 1:
		return LearnedCode{}, &Error{Code: engine.CodeInput, Message: fmt.Sprintf(
			"%d learned programs begin with %q, as %s and %s; give more of the id", len(list), prefix, list[0].ID, list[1].ID)}
	}
	return list[0], nil
}

// DisableLearned has a program not used any more, and none learned in its place, until
// EnableLearned. It returns false where the program is disabled already, and
// store.ErrNotFound where there is none of this id.
func (w *Weir) DisableLearned(ctx context.Context, id string) (bool, error) {
	return w.changeLearned(ctx, id, codegen.Disable)
}

// EnableLearned takes DisableLearned back. What was counted of the program's uses is
// forgotten. It returns false where the program is not disabled.
func (w *Weir) EnableLearned(ctx context.Context, id string) (bool, error) {
	return w.changeLearned(ctx, id, codegen.Enable)
}

func (w *Weir) changeLearned(ctx context.Context, id string, change func(engine.Value) (engine.Value, bool)) (changed bool, err error) {
	_, keys, err := w.learned(ctx, LearnedFilter{})
	if err != nil {
		return false, err
	}
	key, there := keys[id]
	if there {
		err = w.store.CacheUpdate(ctx, key, time.Now(), func(v engine.Value, ok bool) (engine.Value, bool) {
			there = ok
			v, changed = change(v)
			return v, changed
		})
	}
	if err == nil && !there {
		err = fmt.Errorf("learned code %s: %w", id, store.ErrNotFound)
	}
	return changed, err
}

// DeleteLearned deletes the programs with these ids, so that the next runs of their
// tasks have models write them anew, and returns how many there were. An id that is not
// there is no error.
func (w *Weir) DeleteLearned(ctx context.Context, ids ...string) (int, error) {
	_, keys, err := w.learned(ctx, LearnedFilter{})
	if err != nil {
		return 0, err
	}
	var doomed []string
	for _, id := range ids {
		if key, ok := keys[id]; ok {
			doomed = append(doomed, key)
		}
	}
	return w.store.CacheDelete(ctx, doomed)
}
