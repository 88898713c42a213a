package session

import (
	"context"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory/follow"
)

// agentsBefore returns the numbered sub-agents of a session before a round whose flow has
// sub-agents; nil for other rounds.
func (m *Manager) agentsBefore(ctx context.Context, f *flow.Flow, row *store.Session) ([]string, error) {
	if row.Rounds <= 1 || len(follow.AgentsOf(f, nil)) == 0 {
		return nil, nil
	}
	rounds := store.Filter{Session: row.ID, Limit: 16}
	for {
		page, err := m.store.Runs(ctx, rounds)
		if err != nil {
			return nil, err
		}
		for _, r := range page { // newest first; a round without agents does not list them
			if r.Round >= row.Rounds || r.Commits == 0 {
				continue
			}
			start, err := runner.JournaledStart(ctx, m.store, r.ID)
			if err != nil {
				return nil, err
			}
			if len(start.Agents) > 0 {
				return start.Agents, nil
			}
		}
		if len(page) < rounds.Limit {
			return nil, nil
		}
		rounds.Before = page[len(page)-1].ID
	}
}
