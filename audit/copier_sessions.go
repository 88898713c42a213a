package audit

import (
	"errors"
	"fmt"
	"math"
	"slices"

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
			err = c.copySession(x.ID)
			c.out.Sessions++
		}
		if err == nil && !x.Expires.IsZero() {
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

// copySession makes a session without rounds, and brings what rounds do not bring: the values that it began with, and those
// that were set by hand.
func (c *copier) copySession(id string) error {
	sessions, err := c.from.ArchiveSession(c.ctx, id)
	if err != nil {
		return err
	}
	return c.to.Restore(c.ctx, sessions, nil)
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
