package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// userStates has the values that flows keep for users. A value that was deleted stays, with
// removed, so that its version grows on.
type userStates struct {
	mu     sync.Mutex
	values map[userKey]*userValue
}

type userKey struct{ user, flow, key string }

type userValue struct {
	store.UserValue
	removed bool
}

// appendUserState commits with the operations on the state of a user, which it checks before
// and applies after: nothing else changes the state in between.
func (s *Store) appendUserState(a *store.Append, commit func() error) error {
	w := engine.CompletedUserState(a.Commit.Events)
	if w == nil {
		return commit()
	}
	u := &s.users
	u.mu.Lock()
	defer u.mu.Unlock()
	changed, err := u.compute(w, store.UserValue{Run: a.Commit.Run, At: time.UnixMilli(a.Commit.At)})
	if err != nil {
		return fmt.Errorf("append commit %d of run %s: %w", a.Commit.Seq, a.Commit.Run, err)
	}
	if err := commit(); err != nil {
		return err
	}
	u.keep(changed)
	return nil
}

// compute returns the values after operations; origin says what all of them have in common.
func (u *userStates) compute(w *engine.UserStateWrite, origin store.UserValue) (out []*userValue, err error) {
	for i := range w.Changes {
		c := &w.Changes[i]
		v := &userValue{UserValue: origin}
		v.User, v.Flow, v.Key, v.Reducer, v.Version = w.User, w.Flow, c.Key, c.Reducer, 1
		old, known := u.values[userKey{w.User, w.Flow, c.Key}]
		if known {
			v.Version = old.Version + 1
		} else {
			old = &userValue{removed: true}
		}
		value, there, err := engine.ApplyUserChange(old.Value, !old.removed, old.Reducer, c)
		if err != nil {
			return nil, fmt.Errorf("user %s, flow %s: %w: %w", w.User, w.Flow, store.ErrStateConflict, err)
		}
		v.Value, v.removed = engine.Copy(value), !there
		out = append(out, v)
	}
	return out, nil
}

func (u *userStates) keep(changed []*userValue) {
	if u.values == nil {
		u.values = map[userKey]*userValue{}
	}
	for _, v := range changed {
		u.values[userKey{v.User, v.Flow, v.Key}] = v
	}
}

// list returns the values that a filter selects.
func (u *userStates) list(selects func(k userKey) bool) []store.UserValue {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := []store.UserValue{}
	for k, v := range u.values { // order: sorted below
		if selects(k) && !v.removed {
			c := v.UserValue
			c.Value = engine.Copy(c.Value)
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b store.UserValue) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// UserState implements store.UserStateStore.
func (s *Store) UserState(ctx context.Context, user, flow string) ([]store.UserValue, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	return s.users.list(func(k userKey) bool { return k.user == user && k.flow == flow }), nil
}

// UserStates implements store.UserStateStore.
func (s *Store) UserStates(ctx context.Context, user string) ([]store.UserValue, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	return s.users.list(func(k userKey) bool { return user == "" || k.user == user }), nil
}

// EditUserState implements store.UserStateStore.
func (s *Store) EditUserState(ctx context.Context, e store.UserStateEdit) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	u := &s.users
	u.mu.Lock()
	defer u.mu.Unlock()
	changed, err := u.compute(&e.Write, store.UserValue{By: e.By, At: e.At})
	if err == nil {
		u.keep(changed)
	}
	return err
}

// deleteUserState deletes the values of a user and returns how many there are, and forgets
// which of the deleted runs wrote others. The caller holds the mutex of the values.
func (s *Store) deleteUserState(user string, deleted func(run string) bool, dry bool) (n int) {
	u := &s.users
	for k, v := range u.values { // order: each value is considered alone
		switch {
		case user != "" && k.user == user:
			if !v.removed {
				n++
			}
			if !dry {
				delete(u.values, k)
			}
		case !dry && deleted(v.Run):
			v.Run = ""
		}
	}
	return n
}
