package store

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory/tables"
)

// Capabilities is what a store offers besides the journal tier. A nil field is a
// capability that the store lacks. Callers read this value and never look for methods of
// a store by type assertion: a wrapper that lost a method would silently weaken a promise.
//
// A wrapper that replaces a method of a capability must return itself in that field.
type Capabilities struct {
	Checkpoints CheckpointStore // nil: runs are loaded from the start of their journal
	Recovery    RecoveryStore
	Sessions    SessionStore
	Cache       CacheStore
	Deletion    DeletionStore
	Chains      ChainStore
	Archive     ArchiveStore
	Audit       AuditStore
	Rows        RowStore
	Memory      MemoryStore
	Access      AccessStore
	Documents   DocumentStore
	UserState   UserStateStore
	// LiveText passes live text between processes. nil: readers of runs that other processes execute get events only.
	LiveText LiveTextStore
	// Watch reports changes by other processes. nil: callers poll.
	Watch Watcher
	// Trajectories are tables for trajectories. They live as long as the store.
	Trajectories tables.Tables
	// CountTokens has the store record how many tokens the messages of sessions have:
	// count is called in the transaction that keeps a message.
	CountTokens func(count func(convo.Message) int)
	// Instant says that Append costs next to nothing, so that commits of several runs need
	// not be grouped into one call.
	Instant bool
}

// ErrUnsupported: the store lacks a capability. The error is an *Unsupported.
var ErrUnsupported = errors.New("not supported by this store")

// Unsupported names the capability that a store lacks.
type Unsupported struct {
	// Capability is its name: "sessions", "cache", "recovery", "deletion", "chains",
	// "archive", "audit", "rows", "memory", "access", "documents", "user state", "live text",
	// "trajectories".
	Capability string
}

// Error names the capability.
func (e *Unsupported) Error() string {
	return fmt.Sprintf("the store does not support %s", e.Capability)
}

// Unwrap returns ErrUnsupported.
func (e *Unsupported) Unwrap() error { return ErrUnsupported }

// Full is a Store with the methods of every capability. The methods of a capability that
// the store lacks return an *Unsupported; without Checkpoints snapshots are dropped.
type Full struct {
	Store
	CheckpointStore
	RecoveryStore
	SessionStore
	CacheStore
	DeletionStore
	ChainStore
	ArchiveStore
	AuditStore
	RowStore
	MemoryStore
	AccessStore
	DocumentStore
	UserStateStore
	LiveTextStore
}

// Complete returns a store with the methods of every capability.
func Complete(s Store) *Full {
	c := s.Capabilities()
	return &Full{
		Store:           s,
		CheckpointStore: cmp.Or[CheckpointStore](c.Checkpoints, noCheckpoints{}),
		RecoveryStore:   cmp.Or[RecoveryStore](c.Recovery, noRecovery{}),
		SessionStore:    cmp.Or[SessionStore](c.Sessions, noSessions{}),
		CacheStore:      cmp.Or[CacheStore](c.Cache, noCache{}),
		DeletionStore:   cmp.Or[DeletionStore](c.Deletion, noDeletion{}),
		ChainStore:      cmp.Or[ChainStore](c.Chains, noChains{}),
		ArchiveStore:    cmp.Or[ArchiveStore](c.Archive, noArchive{}),
		AuditStore:      cmp.Or[AuditStore](c.Audit, noAudit{}),
		RowStore:        cmp.Or[RowStore](c.Rows, noRows{}),
		MemoryStore:     cmp.Or[MemoryStore](c.Memory, noMemory{}),
		AccessStore:     cmp.Or[AccessStore](c.Access, noAccess{}),
		DocumentStore:   cmp.Or[DocumentStore](c.Documents, noDocuments{}),
		UserStateStore:  cmp.Or[UserStateStore](c.UserState, noUserState{}),
		LiveTextStore:   cmp.Or[LiveTextStore](c.LiveText, noLiveText{}),
	}
}
