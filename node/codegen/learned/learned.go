// Package learned lists and manages the programs that models wrote for code nodes and that
// a store keeps for later runs. It must not know runners, and it executes no code.
package learned

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

// Library is the learned code of a store.
type Library struct{ store store.CacheStore }

// New returns the library of a store.
func New(s store.CacheStore) *Library { return &Library{store: s} }

// Filter selects programs; the zero value selects all.
type Filter struct {
	// User selects the programs of one user, Flow those of the flow with this name.
	User, Flow string
	State      codegen.LearnedState
	// Prefix is the beginning of their ids.
	Prefix string
}

// matches reports whether the filter selects a program.
func (f *Filter) matches(l *codegen.Learned) bool {
	return (f.User == "" || f.User == l.User) && (f.Flow == "" || f.Flow == l.Flow) &&
		(f.State == "" || f.State == l.State) && strings.HasPrefix(l.ID, f.Prefix)
}

// List returns the programs that the filter selects, the newest first.
func (l *Library) List(ctx context.Context, f Filter) ([]codegen.Learned, error) {
	list, _, err := l.list(ctx, f)
	return list, err
}

// list returns programs with their keys.
func (l *Library) list(ctx context.Context, f Filter) (list []codegen.Learned, keys map[string]string, err error) {
	prefix := codegen.AllLearned
	if f.User != "" {
		prefix = codegen.LearnedPrefix(f.User)
	}
	entries, err := l.store.CacheList(ctx, prefix, time.Now())
	if err != nil {
		return nil, nil, err
	}
	list, keys = []codegen.Learned{}, make(map[string]string)
	for _, e := range entries {
		if l, ok := codegen.ReadLearned(e.Key, e.Value); ok && f.matches(&l) {
			list, keys[l.ID] = append(list, l), e.Key
		}
	}
	slices.SortStableFunc(list, func(a, b codegen.Learned) int { return b.At.Compare(a.At) })
	return list, keys, nil
}

// Find returns the one program whose id begins with prefix. The error is store.ErrNotFound
// if there is none.
func (l *Library) Find(ctx context.Context, prefix string) (codegen.Learned, error) {
	list, _, err := l.list(ctx, Filter{Prefix: prefix})
	switch {
	case err != nil:
		return codegen.Learned{}, err
	case len(list) == 0 || prefix == "":
		return codegen.Learned{}, fmt.Errorf("learned code %q: %w", prefix, store.ErrNotFound)
	case len(list) > 1:
		return codegen.Learned{}, &engine.Error{Code: engine.CodeInput, Message: fmt.Sprintf(
			"%d learned programs begin with %q, as %s and %s; give more of the id", len(list), prefix, list[0].ID, list[1].ID)}
	}
	return list[0], nil
}

// Disable prevents a program from being used, and others from being learned in its place,
// until Enable. It returns false if the program is already disabled, and
// store.ErrNotFound if there is none with this id.
func (l *Library) Disable(ctx context.Context, id string) (bool, error) {
	return l.change(ctx, id, codegen.Disable)
}

// Enable reverts Disable and resets the counters of the program's uses. It returns false if
// the program is not disabled.
func (l *Library) Enable(ctx context.Context, id string) (bool, error) {
	return l.change(ctx, id, codegen.Enable)
}

func (l *Library) change(ctx context.Context, id string, change func(engine.Value) (engine.Value, bool)) (changed bool, err error) {
	_, keys, err := l.list(ctx, Filter{})
	if err != nil {
		return false, err
	}
	key, there := keys[id]
	if there {
		err = l.store.CacheUpdate(ctx, key, time.Now(), func(v engine.Value, ok bool) (engine.Value, bool) {
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

// Delete deletes the programs with these ids and returns how many there were. The next runs
// of their tasks have models write them again. An unknown id is no error.
func (l *Library) Delete(ctx context.Context, ids ...string) (int, error) {
	_, keys, err := l.list(ctx, Filter{})
	if err != nil {
		return 0, err
	}
	var doomed []string
	for _, id := range ids {
		if key, ok := keys[id]; ok {
			doomed = append(doomed, key)
		}
	}
	return l.store.CacheDelete(ctx, doomed)
}
