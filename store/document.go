package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/weir-run/weir/engine"
)

// ErrChanged: the document has another version than the caller has read.
var ErrChanged = errors.New("changed meanwhile")

// Document is something that a server keeps besides runs: a flow that a client has put, a
// webhook, an answer link. It is operational: no run depends on it.
type Document struct {
	// Kind and ID identify it.
	Kind, ID string
	// User is the user with whom it is deleted; "" for none.
	User string
	// Run is the run or the session with which it is deleted; "" for none. A run deletes the
	// documents of its child runs too, if these are deleted with it.
	Run string
	// Version is 1 in a new document and grows by one with each change.
	Version int64
	// Body is JSON.
	Body json.RawMessage
	// Due is when ClaimDocuments returns it; zero is never.
	Due time.Time
	// Created and Updated are set by the store.
	Created, Updated time.Time
}

// DocumentFilter selects documents of one kind, ordered by ID.
type DocumentFilter struct {
	Kind string
	// User and Run select those of a user, or of a run or session; "" selects all.
	User, Run string
	// Prefix selects ids that begin with it.
	Prefix string
	// After continues a listing behind this id.
	After string
	Limit int // 0 means 100
}

// NoticeKind is the kind of documents that ask for notices: while there is one, commits that
// change what a run waits for, end it, or bring a budget near its limit, leave a Notice.
const NoticeKind = "webhook"

// TriggerKind is the kind of documents that start runs at a time or for a request.
const TriggerKind = "trigger"

// Kinds of documents that several packages know.
const (
	// UserKind are records of users, with roles and deactivations; QuotaKind and QuotaDayKind bound
	// what users and tokens spend; FlowKind, FlowVersionKind and FlowTextKind are flows that clients
	// have put, with what their runs may use.
	UserKind        = "user"
	QuotaKind       = "quota"
	QuotaDayKind    = "quota_day"
	FlowKind        = "flow"
	FlowVersionKind = "flow_version"
	FlowTextKind    = "flow_text"
	LabelKind       = "label"
	RatingKind      = "rating"
	FilterKind      = "saved_filter"
)

// QuotaNearKind are quotas of a day of which 80% are used, until webhooks have been told; the body is a QuotaNear.
const QuotaNearKind = "quota_near"

// QuotaNear says that at least 80% of a quota are used.
type QuotaNear struct {
	// Account is the account, and Day its UTC day as 2006-01-02.
	Account string `json:"account"`
	Day     string `json:"day"`
	// Limits are those of the quota: a quota that is changed can come near its limits again.
	Limits string `json:"limits"`
}

// TriggerFileKind are the files that triggers have seen in their folders, by TRIGGER/NAME.
const TriggerFileKind = "trigger_file"

// AuditKind are entries of the audit log of a server, and AuditNameKind the users whom its pseudonyms stand for.
const (
	AuditKind     = "audit"
	AuditNameKind = "audit_name"
)

// MaxTrimmed is how many documents a call of TrimDocuments deletes at most.
const MaxTrimmed = 1000

// HeldKinds lists the kinds of documents that have a server act by itself: webhooks and triggers. A copy of a store holds
// them, so that nothing is done twice: the member "paused" of the body is true, and the document is never due. A person
// who continues with the copy resumes them.
func HeldKinds() []string { return []string{NoticeKind, TriggerKind} }

// Notice says that a commit has ended a run, has changed the questions that it waits for, or has brought the use of
// budgets near their limits. It is written with the commit; budgets have a notice of their own.
type Notice struct {
	ID  int64
	Run string
	// Seq is the number of the commit.
	Seq    int64
	Status engine.Status
	// Waiting are the ids of the open questions.
	Waiting []string
	// Budgets are those of the run whose use has come near their limits; the notice is about them alone.
	Budgets []string
	At      time.Time
}

// DocumentStore stores the data of a server other than runs.
type DocumentStore interface {
	// PutDocument keeps a document whose present version is d.Version, 0 for a new one, and
	// returns it with the next version. ErrExists for a new one whose id is taken, ErrChanged
	// for another version, ErrNotFound if it was deleted.
	PutDocument(ctx context.Context, d Document) (Document, error)
	// Document returns a document. ErrNotFound.
	Document(ctx context.Context, kind, id string) (Document, error)
	// Documents lists documents of a kind by id.
	Documents(ctx context.Context, f DocumentFilter) ([]Document, error)
	// DocumentKinds lists the kinds of which there are documents, sorted.
	DocumentKinds(ctx context.Context) ([]string, error)
	// DeleteDocument deletes a document of that version; 0 is any. ErrNotFound, ErrChanged.
	DeleteDocument(ctx context.Context, kind, id string, version int64) error
	// TrimDocuments deletes documents of a kind from the end of the order of their ids, at most 1,000: those
	// behind the first keep, and those with an id greater than after. It returns how many it has deleted; call
	// it again as long as that is 1,000.
	TrimDocuments(ctx context.Context, kind string, keep int, after string) (int, error)
	// ClaimDocuments returns at most limit documents of a kind that are due, the earliest first,
	// and makes them due again in ttl. Of several callers, one gets each document. PutDocument
	// with the returned version records what was done, unless the claim has ended.
	ClaimDocuments(ctx context.Context, kind string, ttl time.Duration, limit int) ([]Document, error)
	// Notices returns at most limit notices, oldest first, and removes none.
	Notices(ctx context.Context, limit int) ([]Notice, error)
	// RemoveNotices removes notices. An id that is not there is no error.
	RemoveNotices(ctx context.Context, ids []int64) error
}
