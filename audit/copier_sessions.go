package audit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// copySessions copies the sessions without a round, and what rounds do not bring of the others: when they expire, and which
// is the active one of a user and flow. had are the sessions that the copy had before.
func (c *copier) copySessions(had map[string]bool) error {
	sessions, err := c.from.Sessions(c.ctx, store.SessionFilter{Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	type pair struct{ user, flow string }
	made := map[pair]bool{}
	for _, x := range slices.Backward(sessions) { // the oldest first: a fork comes after what it forks
		if had[x.ID] {
			continue
		}
		if x.Rounds == 0 {
			err = c.copyEmptySession(&x)
			c.out.Sessions++
		} else if !x.Expires.IsZero() {
			err = c.to.ExpireSession(c.ctx, x.ID, x.Expires)
		}
		if err != nil {
			return fmt.Errorf("session %s: %w", x.ID, err)
		}
		made[pair{x.User, x.Flow}] = true
	}
	for p := range made { // order: each pair has one active session
		is, err := c.from.FindSession(c.ctx, p.user, p.flow, "")
		if err == nil {
			err = c.to.ActivateSession(c.ctx, is.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyEmptySession makes a session without rounds, and the values that were set by hand.
func (c *copier) copyEmptySession(x *store.Session) error {
	err := c.to.CreateSession(c.ctx, store.NewSession{
		ID: x.ID, User: x.User, Flow: x.Flow, Thread: x.Thread, Parent: x.Parent, ParentLength: x.ParentLength, Expires: x.Expires, Now: x.Created,
	})
	if err != nil {
		return err
	}
	values, err := c.from.SessionState(c.ctx, x.ID)
	if err != nil {
		return err
	}
	inherited, err := c.to.SessionState(c.ctx, x.ID)
	if err != nil {
		return err
	}
	set := map[string]bool{}
	for _, v := range values {
		set[v.Key] = true
		if v.By == "" && slices.ContainsFunc(inherited, func(i store.StateValue) bool { return i.Key == v.Key }) {
			continue
		}
		change := engine.SessionChange{Key: v.Key, Value: v.Value, Reducer: v.Reducer}
		if err := c.to.SetSessionState(c.ctx, store.StateEdit{Session: x.ID, Changes: []engine.SessionChange{change}, By: v.By, At: v.At}); err != nil {
			return err
		}
	}
	for _, i := range inherited { // and removed by hand since
		if set[i.Key] {
			continue
		}
		change := engine.SessionChange{Key: i.Key, Delete: true}
		if err := c.to.SetSessionState(c.ctx, store.StateEdit{Session: x.ID, Changes: []engine.SessionChange{change}, At: x.Created}); err != nil {
			return err
		}
	}
	return nil
}

// copyErased copies the chains of erased runs.
func (c *copier) copyErased() error {
	chains, err := store.ErasedChains(c.ctx, c.from)
	if err != nil || len(chains) == 0 {
		return err
	}
	n, err := c.to.RestoreErased(c.ctx, chains)
	if errors.Is(err, store.ErrUnchained) {
		c.out.Left = append(c.out.Left, fmt.Sprintf("%d chains of erased runs (%v)", len(chains), store.ErrUnchained))
		return nil
	}
	c.out.Erased = n
	return err
}
