// Package recall defines long-term memory: facts, episodes and procedures about users
// that outlive a conversation. It defines the items, their owners and the search by
// words. Stores keep the items, and tool/recall offers them to models.
//
// It must not know runs, contexts or models: memory is separate from conversations.
// The text of an item is data; this package reads it only for the search.
package recall

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Kind is what an item says.
type Kind string

// The kinds.
const (
	// Fact is something that is so. One with a key is replaced by the next under
	// that key.
	Fact Kind = "fact"
	// Episode is what happened, and when. It has no key.
	Episode Kind = "episode"
	// Procedure is how something is done. Like a fact it may have a key.
	Procedure Kind = "procedure"
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{Fact, Episode, Procedure} }

// Scope is whose memory it is: that of a user, or, where a conversation has no
// user, that of its session. Nothing of one scope is ever found in another. Check
// it before it is used.
type Scope struct {
	// Namespace keeps applications apart.
	Namespace string
	// User is who the conversation is with, as whoever started it says; one of
	// User and Session is set.
	User string
	// Session is that of a conversation with nobody in particular.
	Session string
}

// Source is where a version of an item came from; what is not known is empty.
type Source struct {
	Run, Flow, Session string
	Round              int
	// By is who wrote it: "model", or what a program calls its own.
	By string
}

// Version is what an item said from some time on.
type Version struct {
	// Number counts from 1.
	Number int
	Text   string
	Tags   []string
	// At is when it happened, for an episode; for others when it was written.
	At time.Time
	// Written is when the version was.
	Written time.Time
	Source  Source
}

// Item is something remembered: its newest version, with what all have alike.
// Times are in whole milliseconds.
type Item struct {
	ID string
	Scope
	Kind Kind
	// Key is what the item is about, "" for nothing in particular: among facts,
	// and among procedures, a scope has one of each key.
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
	// MaxVersions is how many versions of an item are kept, the newest.
	MaxVersions = 100
)

var (
	// ErrInvalid marks what cannot be remembered, or asked for, as it stands.
	ErrInvalid = errors.New("cannot be used")
	// ErrFull: the scope holds as many items as it may.
	ErrFull = errors.New("the memory is full")
)

// Store keeps what is remembered; it is what the tools need. What cannot be used
// is an ErrInvalid.
type Store interface {
	// Remember keeps an item, or a new version of one. ErrFull where there would be
	// too many.
	Remember(ctx context.Context, w Write) (WriteResult, error)
	// Recall finds items of one scope.
	Recall(ctx context.Context, q Query) (QueryResult, error)
	// Forget deletes an item of the scope with all its versions; it reports whether
	// there was one. With a call that is known it does nothing and reports what it
	// did then.
	Forget(ctx context.Context, s Scope, id, call string) (bool, error)
}

// Filter says which items of all scopes an operator means; zero is all.
type Filter struct {
	Namespace, User, Session string
	Kind                     Kind
	ID                       string
	// Prefix is the beginning of the ids.
	Prefix string
	// From is the run or session that the newest version came from.
	From string
	// Limit is how many are listed, the newest; 0 is all.
	Limit int
}

// Matches reports whether the filter takes an item.
func (f Filter) Matches(i *Item) bool {
	return f.MatchesScope(i.Scope) && (f.Kind == "" || f.Kind == i.Kind) &&
		(f.ID == "" || f.ID == i.ID) && strings.HasPrefix(i.ID, f.Prefix) &&
		(f.From == "" || f.From == i.Source.Run || f.From == i.Source.Session)
}

// MatchesScope reports whether the filter takes items of a scope.
func (f Filter) MatchesScope(s Scope) bool {
	return (f.Namespace == "" || f.Namespace == s.Namespace) && (f.User == "" || f.User == s.User) &&
		(f.Session == "" || f.Session == s.Session)
}

// Owner is a scope with how much it holds.
type Owner struct {
	Scope
	Items  int
	Newest time.Time // when something was written last
}
