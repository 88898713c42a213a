package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func cacheEntries(t *testing.T, s Store) {
	now := startTime()
	for _, key := range []string{"b/1", "a%", "a/2", "a/1", "A/1", "a0", "ä/1"} {
		must(t, s.CachePut(t.Context(), key, key, time.Time{}))
	}
	must(t, s.CachePut(t.Context(), "a/expired", "x", now))
	list := func(prefix string) (keys []string) {
		entries, err := s.CacheList(t.Context(), prefix, now)
		must(t, err)
		for _, e := range entries {
			equal(t, "value", e.Value, engine.Value(e.Key))
			keys = append(keys, e.Key)
		}
		return keys
	}
	entries, err := s.CacheList(t.Context(), "a/2", now)
	must(t, err)
	equal(t, "one that does not expire", entries[0].Expires.IsZero(), true)
	must(t, s.CachePut(t.Context(), "a/2", "a/2", now.Add(time.Minute)))
	entries, err = s.CacheList(t.Context(), "a/2", now)
	must(t, err)
	equal(t, "when it expires", entries[0].Expires.UnixMilli(), now.Add(time.Minute).UnixMilli())
	equal(t, "all", list(""), []string{"A/1", "a%", "a/1", "a/2", "a0", "b/1", "ä/1"})
	equal(t, "of a prefix", list("a/"), []string{"a/1", "a/2"})
	equal(t, "of a prefix with a sign of patterns", list("a%"), []string{"a%"})
	equal(t, "of none", len(list("c")), 0)

	must(t, s.CacheUpdate(t.Context(), "a/1", now, func(v engine.Value, ok bool) (engine.Value, bool) {
		equal(t, "before", []any{v, ok}, []any{"a/1", true})
		return nil, false
	}))
	equal(t, "left", list("a/1"), []string{"a/1"})
	must(t, s.CacheUpdate(t.Context(), "a/expired", now, func(v engine.Value, ok bool) (engine.Value, bool) {
		equal(t, "expired", []any{v, ok}, []any{nil, false})
		return nil, false
	}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if err := s.CacheUpdate(t.Context(), "n", now, func(v engine.Value, _ bool) (engine.Value, bool) {
					n, _ := v.(int64)
					return n + 1, true
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	n, ok, err := s.CacheGet(t.Context(), "n", now.AddDate(100, 0, 0))
	must(t, err)
	equal(t, "counted", []any{n, ok}, []any{int64(80), true})

	gone, err := s.CacheDelete(t.Context(), []string{"a/1", "n", "never there"})
	must(t, err)
	equal(t, "deleted", gone, 2)
	equal(t, "after it", list("a/"), []string{"a/2"})
	gone, err = s.CacheDelete(t.Context(), nil)
	must(t, err)
	equal(t, "none deleted", gone, 0)
}

func deleteLearned(t *testing.T, s Store) {
	for _, n := range []store.NewRun{{ID: "of u", User: "u"}, {ID: "of v", User: "v"}, {ID: "of v again", User: "v"}, {ID: "nobody's"}} {
		n.At = startTime()
		must(t, s.Create(t.Context(), n))
	}
	put := func(user, flow, run, confirmed string) {
		v := map[string]any{"code": "x = 1", "run": run}
		if confirmed != "" {
			v["confirmed"] = confirmed
		}
		must(t, s.CachePut(t.Context(), store.LearnedCodePrefixOf(user)+flow, v, time.Time{}))
	}
	put("u", "1", "long gone", "")
	put("u/2", "1", "long gone", "")
	put("u%2F2", "1", "long gone", "")
	put("uu", "1", "long gone", "")
	put("", "1", "nobody's", "")
	put("v", "1", "of v", "")
	put("v", "2", "long gone", "of v")
	put("v", "3", "of v again", "")
	put("w", "1", "long gone", "")
	left := func() (keys []string) {
		entries, err := s.CacheList(t.Context(), store.LearnedCodePrefix, startTime())
		must(t, err)
		for _, e := range entries {
			keys = append(keys, e.Key[len(store.LearnedCodePrefix):])
		}
		return keys
	}
	all := []string{"/1", "u%252F2/1", "u%2F2/1", "u/1", "uu/1", "v/1", "v/2", "v/3", "w/1"}
	equal(t, "learned", left(), all)
	for _, c := range []struct {
		user string // or
		run  string
		gone int
		left []string
	}{
		{"u", "", 1, []string{"/1", "u%252F2/1", "u%2F2/1", "uu/1", "v/1", "v/2", "v/3", "w/1"}},
		{"w", "", 1, []string{"/1", "u%252F2/1", "u%2F2/1", "uu/1", "v/1", "v/2", "v/3"}}, // who has nothing else
		{"", "of v", 2, []string{"/1", "u%252F2/1", "u%2F2/1", "uu/1", "v/3"}},
		{"u/2", "", 1, []string{"/1", "u%252F2/1", "uu/1", "v/3"}},
		{"v", "", 1, []string{"/1", "u%252F2/1", "uu/1"}},
		{"nobody", "", 0, []string{"/1", "u%252F2/1", "uu/1"}},
	} {
		for _, dry := range []bool{true, false} {
			e := afterLeasesExpired()
			e.DryRun = dry
			gone, err := s.DeleteUser(t.Context(), c.user, e)
			if c.run != "" {
				gone, err = s.DeleteRun(t.Context(), c.run, e)
			}
			must(t, err)
			equal(t, fmt.Sprint("deleted with ", c.user, c.run, ", dry ", dry), gone.Learned, c.gone)
		}
		equal(t, "left after "+c.user+c.run, left(), c.left)
	}
}
