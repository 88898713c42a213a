// Package memory defines long-term memory: facts, episodes and procedures about users
// that outlive a conversation. It defines the items, their owners and the search by
// words. Stores keep the items; tool/memory offers them to models. Package store/memory
// is something else: a store that keeps everything in memory.
//
// It must not know runs, contexts or models: memory is separate from conversations.
// The text of an item is data; this package reads it only for the search.
package memory

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Kind is the kind of an item.
type Kind string

// The kinds.
const (
	// Fact is a statement that holds. A fact with a key is replaced by the next fact
	// with that key.
	Fact Kind = "fact"
	// Episode is an event and its time. It has no key.
	Episode Kind = "episode"
	// Procedure is a way to do something. Like a fact it may have a key.
	Procedure Kind = "procedure"
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{Fact, Episode, Procedure} }

// Scope identifies the owner of a memory: a user, or the session of a conversation
// that has no user. A search in one scope never finds items of another. Call Check
// before use.
type Scope struct {
	// Namespace separates applications.
	Namespace string
	// User is the user that the caller of the run named. Exactly one of User and
	// Session is set.
	User string
	// Session is the id of a session without a user.
	Session string
}

// Source is the origin of a version. Unknown fields are empty.
type Source struct {
	Run, Flow, Session string
	Round              int
	// By is the writer: "model", "node" for a node that writes without a model, or a name that a
	// program chooses.
	By string
}

// Version is one version of an item's content.
type Version struct {
	// Number counts from 1.
	Number int
	Text   string
	Tags   []string
	// At is the time of the event for an episode, else the time of the write.
	At time.Time
	// Written is the time of the write.
	Written time.Time
	Source  Source
}

// Item is a remembered item: the fields that all its versions share, and the newest
// version. Times are in whole milliseconds.
type Item struct {
	ID string
	Scope
	Kind Kind
	// Key is the subject, "" for none. A scope has at most one fact and one
	// procedure with a given key.
	Key     string
	Created time.Time
	Version
}

// Bounds of an item.
const (
	MaxText = 8 << 10 // bytes
	MaxKey  = 128     // bytes
	MaxTags = 16
	MaxTag  = 64  // bytes
	MaxName = 256 // bytes of a namespace, a user, a session
	// MaxVersions is how many versions of an item are kept; older ones are dropped.
	MaxVersions = 100
)

var (
	// ErrInvalid marks a write, query or scope that is refused.
	ErrInvalid = errors.New("cannot be used")
	// ErrFull means that the scope holds its maximum number of items.
	ErrFull = errors.New("the memory is full")
)

// Store is what the memory tools need of a store. Invalid arguments give ErrInvalid.
type Store interface {
	// Remember stores a new item, or a new version of an existing one. It returns
	// ErrFull where a new item would exceed Write.MaxItems.
	Remember(ctx context.Context, w Write) (WriteResult, error)
	// Recall finds items of one scope.
	Recall(ctx context.Context, q Query) (QueryResult, error)
	// Forget deletes an item of the scope with all its versions, and reports whether
	// it existed. A known call changes nothing and returns its first result.
	Forget(ctx context.Context, s Scope, id, call string) (bool, error)
}

// Filter selects items across all scopes; the zero value selects all.
type Filter struct {
	Namespace, User, Session string
	Kind                     Kind
	ID                       string
	// Prefix is a prefix of the ids.
	Prefix string
	// From is the run or session in which the newest version was written.
	From string
	// Limit is the maximum number of items, newest first; 0 is no limit.
	Limit int
	// Behind continues a list behind its last item; the zero value begins it.
	Behind Position
}

// Position is the place of an item in a list that begins with the newest item. An item that
// is written again moves to the beginning of the list; its old position stays valid.
type Position struct {
	// Written is the time of the write that placed the item there.
	Written time.Time
	// ID is the id of the item. If it was forgotten, items of the same millisecond are
	// listed again, and none is left out.
	ID string
}

// PositionOf returns the position of an item that was listed.
func PositionOf(i *Item) Position { return Position{Written: i.Written, ID: i.ID} }

// IsStart reports whether a list begins there with its newest item.
func (p Position) IsStart() bool { return p.Written.IsZero() && p.ID == "" }

// Matches reports whether the filter selects an item, wherever it is in a list.
func (f Filter) Matches(i *Item) bool {
	return f.MatchesScope(i.Scope) && (f.Kind == "" || f.Kind == i.Kind) &&
		(f.ID == "" || f.ID == i.ID) && strings.HasPrefix(i.ID, f.Prefix) &&
		(f.From == "" || f.From == i.Source.Run || f.From == i.Source.Session)
}

// MatchesScope reports whether the filter can select items of a scope.
func (f Filter) MatchesScope(s Scope) bool {
	return (f.Namespace == "" || f.Namespace == s.Namespace) && (f.User == "" || f.User == s.User) &&
		(f.Session == "" || f.Session == s.Session)
}

// Owner is a scope with the number of its items.
type Owner struct {
	Scope
	Items  int
	Newest time.Time // time of the last write
}
