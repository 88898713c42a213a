package postgres

import "github.com/weir-run/weir/store"

// Capabilities implements store.Store.
func (s *Store) Capabilities() store.Capabilities {
	return store.Capabilities{
		Checkpoints: s, Recovery: s, Sessions: s, Cache: s, Chains: s, Archive: s, Access: s, CountTokens: s.CountTokens,
	}
}

var (
	_ store.Store           = (*Store)(nil)
	_ store.CheckpointStore = (*Store)(nil)
	_ store.RecoveryStore   = (*Store)(nil)
	_ store.SessionStore    = (*Store)(nil)
	_ store.CacheStore      = (*Store)(nil)
	_ store.ChainStore      = (*Store)(nil)
	_ store.ArchiveStore    = (*Store)(nil)
	_ store.AccessStore     = (*Store)(nil)
)
