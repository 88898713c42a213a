package node

import "net/url"

// CacheKey returns the key under which a value of the cache is kept: one of the user's own,
// or, where shared is true, one for all users. "" is the user of runs without one.
func CacheKey(user string, shared bool, key string) string {
	if shared {
		return "shared/" + key
	}
	return "user/" + url.PathEscape(user) + "/" + key
}
