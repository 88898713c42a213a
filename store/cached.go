package store

import (
	"net/url"

	"github.com/weir-run/weir/engine"
)

// Cached is an entry of the cache.
type Cached struct {
	Key   string
	Value engine.Value
}

// LearnedKeys begins the keys of cache entries that hold code that models wrote.
// The user follows; the value has the runs that it came from under "run" and
// "confirmed".
const LearnedKeys = "learned/"

// LearnedKeysOf begins the keys of the code that was learned for one user.
func LearnedKeysOf(user string) string { return LearnedKeys + url.PathEscape(user) + "/" }
