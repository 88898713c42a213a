package store

import (
	"context"
	"iter"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/memory"
)

// The types of this file are used for capabilities that a store lacks.

// noCheckpoints drops snapshots, which can be lost without losing data.
type noCheckpoints struct{}

func (noCheckpoints) SaveCheckpoint(context.Context, Checkpoint) error { return nil }

func (noCheckpoints) Checkpoint(context.Context, string) (Checkpoint, error) {
	return Checkpoint{}, ErrNotFound
}

func unsupported(capability string) error { return &Unsupported{capability} }

type noRecovery struct{}

func (noRecovery) err() error { return unsupported("recovery") }

func (x noRecovery) NextDue(context.Context) (time.Duration, bool, error) {
	return 0, false, x.err()
}

func (x noRecovery) Unfinished(context.Context, string, int64, int) ([]Unfinished, error) {
	return nil, x.err()
}

type noSessions struct{}

func (noSessions) err() error { return unsupported("sessions") }

func (x noSessions) CreateSession(context.Context, NewSession) error {
	return x.err()
}

func (x noSessions) Session(context.Context, string) (Session, error) {
	return Session{}, x.err()
}

func (x noSessions) FindSession(context.Context, string, string, string) (Session, error) {
	return Session{}, x.err()
}

func (x noSessions) Sessions(context.Context, SessionFilter) ([]Session, error) {
	return nil, x.err()
}

func (x noSessions) SessionMessages(context.Context, string, int, int) ([]SessionMessage, error) {
	return nil, x.err()
}

func (x noSessions) SessionHistory(context.Context, string, int, int) ([]convo.Message, error) {
	return nil, x.err()
}

func (x noSessions) ActivateSession(context.Context, string) error {
	return x.err()
}

func (x noSessions) SessionState(context.Context, string) ([]StateValue, error) {
	return nil, x.err()
}

func (x noSessions) SetSessionState(context.Context, StateEdit) error {
	return x.err()
}

func (x noSessions) ExpireSession(context.Context, string, time.Time) error {
	return x.err()
}

func (x noSessions) PendingSessions(context.Context, string, int) ([]string, error) {
	return nil, x.err()
}

func (x noSessions) Enqueue(context.Context, QueuedMessage) (QueuedMessage, error) {
	return QueuedMessage{}, x.err()
}

func (x noSessions) Queue(context.Context, string) ([]QueuedMessage, error) {
	return nil, x.err()
}

func (x noSessions) NextQueued(context.Context, string) (QueuedMessage, error) {
	return QueuedMessage{}, x.err()
}

func (x noSessions) FindQueued(context.Context, string) (QueuedMessage, error) {
	return QueuedMessage{}, x.err()
}

func (x noSessions) NotQueued(context.Context, []string) ([]string, error) {
	return nil, x.err()
}

func (x noSessions) RemoveQueued(context.Context, string) error {
	return x.err()
}

func (x noSessions) RefuseQueued(context.Context, string, string, int64) error {
	return x.err()
}

func (x noSessions) RoundMessage(context.Context, string) (QueuedMessage, error) {
	return QueuedMessage{}, x.err()
}

type noCache struct{}

func (noCache) err() error { return unsupported("cache") }

func (x noCache) CacheGet(context.Context, string, time.Time) (engine.Value, bool, error) {
	return nil, false, x.err()
}

func (x noCache) CachePut(context.Context, string, engine.Value, time.Time) error {
	return x.err()
}

func (x noCache) CacheUpdate(context.Context, string, time.Time, func(engine.Value, bool) (engine.Value, bool)) error {
	return x.err()
}

func (x noCache) CacheList(context.Context, string, time.Time) ([]CacheEntry, error) {
	return nil, x.err()
}

func (x noCache) CacheDelete(context.Context, []string) (int, error) {
	return 0, x.err()
}

func (x noCache) CacheDeleteExpired(context.Context, time.Time) (int64, error) {
	return 0, x.err()
}

type noDeletion struct{}

func (noDeletion) err() error { return unsupported("deletion") }

func (x noDeletion) DeleteSession(context.Context, string, DeleteOptions) (DeleteResult, error) {
	return DeleteResult{}, x.err()
}

func (x noDeletion) DeleteRun(context.Context, string, DeleteOptions) (DeleteResult, error) {
	return DeleteResult{}, x.err()
}

func (x noDeletion) DeleteUser(context.Context, string, DeleteOptions) (DeleteResult, error) {
	return DeleteResult{}, x.err()
}

func (x noDeletion) PruneSessions(context.Context, PruneOptions) (DeleteResult, error) {
	return DeleteResult{}, x.err()
}

func (x noDeletion) Compact(context.Context) (bool, error) {
	return false, x.err()
}

type noChains struct{}

func (noChains) err() error { return unsupported("chains") }

func (x noChains) Chain(context.Context, string) (Chain, error) {
	return Chain{}, x.err()
}

func (x noChains) Chains(context.Context) ([]Chain, error) {
	return nil, x.err()
}

func (noChains) Links(context.Context, Chain) iter.Seq2[ChainLink, error] {
	return func(yield func(ChainLink, error) bool) { yield(ChainLink{}, noChains{}.err()) }
}

type noArchive struct{}

func (noArchive) err() error { return unsupported("archive") }

func (x noArchive) Archive(context.Context, string) ([]ArchivedRun, []ArchivedSession, error) {
	return nil, nil, x.err()
}

func (x noArchive) ArchiveSession(context.Context, string) ([]ArchivedSession, error) {
	return nil, x.err()
}

func (x noArchive) Restore(context.Context, []ArchivedSession, []RunToRestore) error {
	return x.err()
}

func (x noArchive) RestoreErased(context.Context, []ErasedChain) (int, error) { return 0, x.err() }

type noAudit struct{}

func (noAudit) err() error { return unsupported("audit") }

func (x noAudit) Audit(context.Context, Chain, *JournalFacts) ([]Finding, error) {
	return nil, x.err()
}

func (x noAudit) AuditAll(context.Context) ([]Finding, error) {
	return nil, x.err()
}

func (x noAudit) Fingerprints(context.Context) ([]string, error) {
	return nil, x.err()
}

type noRows struct{}

func (noRows) err() error { return unsupported("rows") }

func (x noRows) RowHash(context.Context, Chain) (Hash, error) {
	return Hash{}, x.err()
}

func (x noRows) AuditSchema(context.Context, bool) ([]Finding, error) {
	return nil, x.err()
}

type noMemory struct{}

func (noMemory) err() error { return unsupported("memory") }

func (x noMemory) Remember(context.Context, memory.Write) (memory.WriteResult, error) {
	return memory.WriteResult{}, x.err()
}

func (x noMemory) Recall(context.Context, memory.Query) (memory.QueryResult, error) {
	return memory.QueryResult{}, x.err()
}

func (x noMemory) Forget(context.Context, memory.Scope, string, string) (bool, error) {
	return false, x.err()
}

func (x noMemory) Memories(context.Context, memory.Filter) ([]memory.Item, error) {
	return nil, x.err()
}

func (x noMemory) MemoryOwners(context.Context, memory.Filter) ([]memory.Owner, error) {
	return nil, x.err()
}

func (x noMemory) MemoryVersions(context.Context, string) ([]memory.Version, error) {
	return nil, x.err()
}

func (x noMemory) ForgetMemories(context.Context, memory.Filter) (DeleteResult, error) {
	return DeleteResult{}, x.err()
}

type noAccess struct{}

func (noAccess) err() error { return unsupported("access") }

func (x noAccess) PutToken(context.Context, Token) error { return x.err() }

func (x noAccess) TokenByHash(context.Context, []byte) (Token, error) { return Token{}, x.err() }

func (x noAccess) Tokens(context.Context, string) ([]Token, error) { return nil, x.err() }

func (x noAccess) RevokeToken(context.Context, string, time.Time) error { return x.err() }

func (x noAccess) AccessKey(context.Context, string, []byte) ([]byte, error) { return nil, x.err() }

func (x noAccess) AccessKeys(context.Context) (map[string][]byte, error) { return nil, x.err() }

func (x noAccess) BeginRequest(context.Context, ClientRequest, time.Duration) (ClientRequest, error) {
	return ClientRequest{}, x.err()
}

func (x noAccess) FinishRequest(context.Context, []byte, string) error { return x.err() }

type noDocuments struct{}

func (noDocuments) err() error { return unsupported("documents") }

func (x noDocuments) PutDocument(context.Context, Document) (Document, error) {
	return Document{}, x.err()
}

func (x noDocuments) Document(context.Context, string, string) (Document, error) {
	return Document{}, x.err()
}

func (x noDocuments) Documents(context.Context, DocumentFilter) ([]Document, error) {
	return nil, x.err()
}

func (x noDocuments) DocumentKinds(context.Context) ([]string, error) { return nil, x.err() }

func (x noDocuments) DeleteDocument(context.Context, string, string, int64) error { return x.err() }

func (x noDocuments) TrimDocuments(context.Context, string, int, string) (int, error) {
	return 0, x.err()
}

func (x noDocuments) ClaimDocuments(context.Context, string, time.Duration, int) ([]Document, error) {
	return nil, x.err()
}

func (x noDocuments) Notices(context.Context, int) ([]Notice, error) { return nil, x.err() }

func (x noDocuments) RemoveNotices(context.Context, []int64) error { return x.err() }

type noUserState struct{}

func (noUserState) err() error { return &Unsupported{Capability: "user state"} }

func (x noUserState) UserState(context.Context, string, string) ([]UserValue, error) {
	return nil, x.err()
}

func (x noUserState) UserStates(context.Context, string) ([]UserValue, error) { return nil, x.err() }

func (x noUserState) EditUserState(context.Context, UserStateEdit) error { return x.err() }

type noLiveText struct{}

func (noLiveText) err() error { return unsupported("live text") }

func (x noLiveText) RequestLiveText(context.Context, []string, bool, time.Duration) error {
	return x.err()
}

func (x noLiveText) PutLiveText(context.Context, []LiveTextPart) error { return x.err() }

func (x noLiveText) RemoveLiveText(context.Context, map[string]string) error { return x.err() }

func (x noLiveText) LiveText(context.Context, map[string]int64) ([]LiveTextPart, error) {
	return nil, x.err()
}
