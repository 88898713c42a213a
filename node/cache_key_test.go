package node_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/store"
)

// TestCacheKeysBelongToTheUserThatStoresDelete keeps the keys of nodes and the prefixes by
// which stores delete a user's values equal.
func TestCacheKeysBelongToTheUserThatStoresDelete(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"", "ada", "a/b", "%", "a b", "../x"} {
		if key, want := node.CacheKey(user, false, "k"), store.CachePrefixOf(user)+"k"; key != want {
			t.Errorf("the key of %q is %q, expected %q", user, key, want)
		}
		if key := node.CacheKey(user, true, "k"); strings.HasPrefix(key, store.CachePrefix) {
			t.Errorf("the shared key %q belongs to a user", key)
		}
	}
}
