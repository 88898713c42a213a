package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// stateChange is a change of the state of a session. With removed, the key has no value
// from there on.
type stateChange struct {
	store.StateValue
	removed bool
}

// stateAt returns the values of a session as of the end of a round, sorted by key.
func (s *session) stateAt(round int) []store.StateValue {
	out := []store.StateValue{}
	seen := map[string]bool{}
	for _, c := range slices.Backward(s.changes) {
		if c.Round > round || seen[c.Key] {
			continue
		}
		seen[c.Key] = true
		if !c.removed {
			v := c.StateValue
			v.Value = engine.Copy(v.Value)
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b store.StateValue) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// changeState adds changes; origin says what all of them have in common.
func (s *session) changeState(origin store.StateValue, changes []engine.SessionChange) {
	for _, c := range changes {
		v := origin
		v.Key, v.Value, v.Reducer = c.Key, engine.Copy(c.Value), c.Reducer
		s.changes = append(s.changes, stateChange{v, c.Delete})
	}
	s.row.StateChanges = int64(len(s.changes))
}

// inheritState gives a new session the state that its parent had at the last end of a round
// that is not behind a position.
func (s *session) inheritState(at int) error {
	p := s.parent
	for at < p.row.ParentLength && p.parent != nil {
		p = p.parent
	}
	n, err := p.end()
	if err != nil {
		return err
	}
	round := p.row.Rounds
	if at < n {
		round = 0
		for i, r := range p.rounds {
			if r.first <= at {
				round = i
			}
		}
	}
	for _, v := range p.stateAt(round) {
		v.Round, v.Run, v.At = 0, "", s.row.Created
		s.changes = append(s.changes, stateChange{StateValue: v})
	}
	s.row.StateChanges = int64(len(s.changes))
	return nil
}

// wasSetSince reports whether the state was changed by hand after a round had ended.
func (s *session) wasSetSince(round int) bool {
	n := len(s.changes)
	return n > 0 && s.changes[n-1].Round >= round && s.changes[n-1].Run == ""
}

// SessionState returns the values that a session keeps between rounds, sorted by key;
// store.ErrNotFound if there is no such session.
func (s *Store) SessionState(ctx context.Context, id string) (out []store.StateValue, err error) {
	err = s.withSession(ctx, id, func(x *session) error {
		out = x.stateAt(x.row.Rounds)
		return nil
	})
	return out, err
}

// SetSessionState changes the values that a session keeps, all or none; store.ErrNotFound
// if there is no such session. The error is store.ErrBusy if a round of it has not ended.
func (s *Store) SetSessionState(ctx context.Context, e store.StateEdit) error {
	return s.withSession(ctx, e.Session, func(x *session) error {
		if x.row.Holder != "" {
			return fmt.Errorf("session %s has a round that has not ended: %w", e.Session, store.ErrBusy)
		}
		x.changeState(store.StateValue{Round: x.row.Rounds, By: e.By, At: e.At}, e.Changes)
		return nil
	})
}
