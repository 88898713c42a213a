package store

import (
	"net/url"
	"time"

	"github.com/weir-run/weir/engine"
)

// CacheEntry is an entry of the cache.
type CacheEntry struct {
	Key   string
	Value engine.Value
	// Expires is when the entry is no longer valid; zero is never.
	Expires time.Time
}

// CachePrefix is the prefix of the keys of entries that belong to one user, followed by the user's name. Entries that
// are neither under it nor under LearnedCodePrefix are shared by all users.
const CachePrefix = "user/"

// CachePrefixOf returns the key prefix of one user's entries, "" for runs without a user.
func CachePrefixOf(user string) string { return CachePrefix + url.PathEscape(user) + "/" }

// LearnedCodePrefix is the prefix of the keys of generated code, followed by the user. The value names the runs that
// it was learned from under "run" and "confirmed".
const LearnedCodePrefix = "learned/"

// LearnedCodePrefixOf returns the key prefix of the code that was learned for one user.
func LearnedCodePrefixOf(user string) string { return LearnedCodePrefix + url.PathEscape(user) + "/" }
