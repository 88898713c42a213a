package sqlite

import "github.com/weir-run/weir/store"

// Capabilities implements store.Store: all but Instant.
func (s *Store) Capabilities() store.Capabilities {
	return store.Capabilities{
		Checkpoints: s, Recovery: s, Sessions: s, Cache: s, Deletion: s,
		Chains: s, Archive: s, Audit: s, Rows: s, Memory: s, Access: s, Documents: s, UserState: s, LiveText: s,
		Trajectories: s.Trajectories(), CountTokens: s.CountTokens,
	}
}

var _ store.Store = (*Store)(nil)
