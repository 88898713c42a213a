package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func extraCases() []testCase {
	return []testCase{
		{"the newest checkpoint is kept", func(t *testing.T, s Store) {
			if s.Capabilities().Checkpoints == nil {
				t.Skip("the store does not declare the capability checkpoints")
			}
			newWriter(t, s, "r")
			_, err := s.Checkpoint(t.Context(), "r")
			checkError(t, err, store.ErrNotFound)
			for _, c := range []struct {
				seq, want int64
			}{{3, 3}, {9, 9}, {5, 9}} {
				must(t, s.SaveCheckpoint(t.Context(), store.Checkpoint{Run: "r", Seq: c.seq, Body: fmt.Append(nil, "\x00at ", c.seq)}))
				got, err := s.Checkpoint(t.Context(), "r")
				must(t, err)
				equal(t, "checkpoint", got, store.Checkpoint{Run: "r", Seq: c.want, Body: fmt.Append(nil, "\x00at ", c.want)})
			}
		}},
		{"a flow is stored under its fingerprint", func(t *testing.T, s Store) {
			_, err := s.Flow(t.Context(), "f")
			checkError(t, err, store.ErrNotFound)
			normal := []byte(strings.Repeat(`{"nodes":[]}`, 1000))
			for range 2 {
				must(t, s.PutFlow(t.Context(), "f", normal))
			}
			got, err := s.Flow(t.Context(), "f")
			must(t, err)
			equal(t, "flow", string(got), string(normal))
		}},
		{"a posted message stays in the inbox until it is removed", inbox},
		{"messages to all runs of an owner are read at once, and removed by commits", postsOfOwner},
		{"expired cache entries are not returned", func(t *testing.T, s Store) {
			now := startTime()
			value := map[string]any{"a": []any{int64(1), 1.0, "x"}, "$v": int64(1)}
			must(t, s.CachePut(t.Context(), "for ever", value, time.Time{}))
			must(t, s.CachePut(t.Context(), "an hour", nil, now.Add(time.Hour)))
			for _, c := range []struct {
				key  string
				at   time.Time
				ok   bool
				want engine.Value
			}{
				{"for ever", now.AddDate(100, 0, 0), true, value},
				{"an hour", now.Add(time.Hour - time.Millisecond), true, nil},
				{"an hour", now.Add(time.Hour), false, nil},
				{"nothing", now, false, nil},
			} {
				v, ok, err := s.CacheGet(t.Context(), c.key, c.at)
				must(t, err)
				equal(t, fmt.Sprint("cached ", c.key), []any{v, ok}, []any{c.want, c.ok})
			}
			must(t, s.CachePut(t.Context(), "an hour", "again", time.Time{}))
			v, ok, err := s.CacheGet(t.Context(), "an hour", now.AddDate(1, 0, 0))
			must(t, err)
			equal(t, "put again", []any{v, ok}, []any{"again", true})
		}},
		{"entries of the cache are listed, changed at once and deleted", cacheEntries},
		{"expired cache entries can be deleted", func(t *testing.T, s Store) {
			now := startTime()
			must(t, s.CachePut(t.Context(), "for ever", "x", time.Time{}))
			for i := range 3 {
				must(t, s.CachePut(t.Context(), fmt.Sprint(i), "x", now.Add(time.Duration(i)*time.Hour)))
			}
			for _, c := range []struct {
				hours int
				want  int64
			}{{-1, 0}, {1, 2}, {1, 0}, {9, 1}} {
				n, err := s.CacheDeleteExpired(t.Context(), now.Add(time.Duration(c.hours)*time.Hour))
				must(t, err)
				equal(t, fmt.Sprint("swept after hours ", c.hours), n, c.want)
			}
			_, ok, err := s.CacheGet(t.Context(), "2", now)
			must(t, err)
			equal(t, "swept is there", ok, false)
			_, ok, err = s.CacheGet(t.Context(), "for ever", now)
			must(t, err)
			equal(t, "for ever is there", ok, true)
		}},
	}
}

func inbox(t *testing.T, s Store) {
	newWriter(t, s, "r")
	newWriter(t, s, "other")
	posts := []store.Post{
		{Run: "r", Kind: "answer", Name: "i", Value: map[string]any{"n": int64(1), "f": 1.0}, By: "u", At: startTime()},
		{Run: "other", Kind: "cancel", At: startTime()},
		{Run: "r", Kind: "event", Name: "e", Value: nil, At: startTime().Add(time.Second)},
	}
	for _, p := range posts {
		must(t, s.Post(t.Context(), p))
	}
	var ids []int64
	for range 2 { // reading removes nothing
		got, err := s.Inbox(t.Context(), "r")
		must(t, err)
		equal(t, "posts", len(got), 2)
		ids = nil
		for i, p := range got {
			ids = append(ids, p.ID)
			want := posts[2*i]
			equal(t, "at", p.At.Equal(want.At), true)
			p.ID, p.At, want.At = 0, time.Time{}, time.Time{}
			equal(t, "post", p, want)
		}
	}
	if ids[0] >= ids[1] || ids[0] <= 0 {
		t.Errorf("ids %v do not grow", ids)
	}
	must(t, s.RemovePosts(t.Context(), ids[:1]))
	must(t, s.RemovePosts(t.Context(), ids[:1]))
	must(t, s.RemovePosts(t.Context(), nil))
	got, err := s.Inbox(t.Context(), "r")
	must(t, err)
	equal(t, "left", len(got) == 1 && got[0].ID == ids[1], true)
	must(t, s.RemovePosts(t.Context(), ids))
	must(t, s.Post(t.Context(), posts[0]))
	got, err = s.Inbox(t.Context(), "r")
	must(t, err)
	equal(t, "ids are not used again", len(got) == 1 && got[0].ID > ids[1], true)
	got, err = s.Inbox(t.Context(), "other")
	must(t, err)
	equal(t, "other's", len(got), 1)
}

func bulkCases() []testCase {
	return []testCase{
		{"a message is found by its id among thousands", findMany},
		{"ten thousand events come back", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			var group []store.Append
			for i := range 2000 {
				path := fmt.Sprintf("loop#%d/n", i)
				a := w.next(
					&engine.IterationStarted{Path: fmt.Sprint("loop#", i)}, &engine.NodeStarted{Path: path},
					&engine.EffectCompleted{Key: path + "/e#1", Result: int64(i), Micros: int64(i % 7)},
					&engine.NodeCompleted{
						Path: path, Outputs: engine.Values{{Name: "out", Value: int64(i)}},
						Contexts: []engine.ContextChange{messageChange("main", fmt.Sprint("m", i), fmt.Sprintf("message %d, which is a text", i))},
					},
					&engine.IterationCompleted{Path: fmt.Sprint("loop#", i)})
				group = append(group, a)
				w.acknowledged(a)
			}
			for _, err := range s.Append(t.Context(), group) {
				must(t, err)
			}
			w.check(t, s)
			ms, err := s.Messages(t.Context(), "r", "main", 0, 5000)
			must(t, err)
			equal(t, "messages", len(ms), 2000)
			sameCommits(t, read(t, s, "r", 1990), w.wrote[1990:])
		}},
	}
}
