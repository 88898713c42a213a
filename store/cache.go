package store

import (
	"net/url"

	"github.com/weir-run/weir/engine"
)

// CacheEntry is an entry of the cache.
type CacheEntry struct {
	Key   string
	Value engine.Value
}

// CachePrefix begins the keys of cache entries that belong to one user, whose name
// follows. Entries that are neither under it nor under LearnedCodePrefix are shared by
// all users.
const CachePrefix = "user/"

// CachePrefixOf begins the keys of the cache entries of one user, "" for runs without one.
func CachePrefixOf(user string) string { return CachePrefix + url.PathEscape(user) + "/" }

// LearnedCodePrefix begins the keys of cache entries that hold code that models wrote.
// The user follows; the value has the runs that it came from under "run" and
// "confirmed".
const LearnedCodePrefix = "learned/"

// LearnedCodePrefixOf begins the keys of the code that was learned for one user.
func LearnedCodePrefixOf(user string) string { return LearnedCodePrefix + url.PathEscape(user) + "/" }
