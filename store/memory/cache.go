package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// CacheUpdate implements store.CacheStore.
func (s *Store) CacheUpdate(ctx context.Context, key string, now time.Time, change func(engine.Value, bool) (engine.Value, bool)) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.cache[key]
	if ok = ok && !c.expiredAt(now); !ok {
		c.value = nil
	}
	if to, put := change(engine.Copy(c.value), ok); put {
		s.cache[key] = cacheEntry{value: engine.Copy(to)}
	}
	return nil
}

func (c *cacheEntry) expiredAt(now time.Time) bool {
	return !c.expires.IsZero() && !c.expires.After(now)
}

// CacheList implements store.CacheStore.
func (s *Store) CacheList(ctx context.Context, prefix string, now time.Time) ([]store.CacheEntry, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := []store.CacheEntry{}
	for _, key := range slices.Sorted(maps.Keys(s.cache)) {
		if c := s.cache[key]; strings.HasPrefix(key, prefix) && !c.expiredAt(now) {
			out = append(out, store.CacheEntry{Key: key, Value: engine.Copy(c.value), Expires: c.expires})
		}
	}
	return out, nil
}

// CacheDelete implements store.CacheStore.
func (s *Store) CacheDelete(ctx context.Context, keys []string) (int, error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.cache)
	for _, key := range keys {
		delete(s.cache, key)
	}
	return before - len(s.cache), nil
}

// deleteLearned removes the code that was learned for a user, "" for none, or in one of the trees, and returns the
// number of programs. The caller holds the mutex.
func (s *Store) deleteLearned(f treeSet, user string, doomed map[tree]bool, dry bool) int {
	runs := map[string]bool{}
	for r, t := range f.treeOf {
		runs[r.row.ID] = doomed[t]
	}
	n := 0
	for key, c := range s.cache {
		if !strings.HasPrefix(key, store.LearnedCodePrefix) {
			continue
		}
		v, _ := c.value.(map[string]any)
		run, _ := v["run"].(string)
		confirmed, _ := v["confirmed"].(string)
		if user != "" && strings.HasPrefix(key, store.LearnedCodePrefixOf(user)) || runs[run] || runs[confirmed] {
			n++
			if !dry {
				delete(s.cache, key)
			}
		}
	}
	return n
}
