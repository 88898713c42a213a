package memory

import "github.com/weir-run/weir/store"

// Capabilities implements store.Store.
func (s *Store) Capabilities() store.Capabilities {
	return store.Capabilities{
		Checkpoints: s, Recovery: s, Sessions: s, Cache: s, Deletion: s, Memory: s, Access: s, Documents: s, UserState: s,
		Trajectories: s.Trajectories(), CountTokens: s.CountTokens, Instant: true,
	}
}

var _ store.Store = (*Store)(nil)
