package postgres

import "github.com/weir-run/weir/store"

// Capabilities implements store.Store.
func (s *Store) Capabilities() store.Capabilities {
	return store.Capabilities{
		Checkpoints: s, Recovery: s, Sessions: s, Cache: s, Deletion: s, Chains: s, Archive: s, Audit: s, Rows: s, Memory: s, Access: s, Documents: s,
		UserState: s, LiveText: s, Watch: s, Trajectories: s.Trajectories(), CountTokens: s.CountTokens,
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
	_ store.DeletionStore   = (*Store)(nil)
	_ store.MemoryStore     = (*Store)(nil)
	_ store.DocumentStore   = (*Store)(nil)
	_ store.UserStateStore  = (*Store)(nil)
	_ store.LiveTextStore   = (*Store)(nil)
	_ store.AuditStore      = (*Store)(nil)
	_ store.RowStore        = (*Store)(nil)
	_ store.Watcher         = (*Store)(nil)
)
