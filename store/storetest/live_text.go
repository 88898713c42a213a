package storetest

import (
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func liveTextCases() []testCase {
	return []testCase{
		{"the owner of a run is told of readers until they are gone", liveTextRequests},
		{"parts are read once and in order, and a whole one replaces those before it", liveTextParts},
		{"parts under another fence are ignored", liveTextFence},
		{"the parts of a writer are removed", liveTextRemoved},
		{"parts of a run that no process executes, or that another has taken, are deleted", liveTextOfDeadOwners},
		{"live text is deleted with its run, and in no chain", liveTextDeleted},
		{"a watch is woken by requests and parts", liveTextWatch},
	}
}

// part returns a part of a run of a writer.
func (w *writer) part(data string, whole bool) store.LiveTextPart {
	return store.LiveTextPart{Run: w.lease.Run, Fence: w.lease.Fence, Writer: "x", Whole: whole, Data: []byte(data)}
}

func put(t *testing.T, s Store, parts ...store.LiveTextPart) {
	t.Helper()
	must(t, s.PutLiveText(t.Context(), parts))
}

// readLiveText returns the data of the parts, and the number of the last one.
func readLiveText(t *testing.T, s Store, after map[string]int64) (data []string, last int64) {
	t.Helper()
	parts, err := s.LiveText(t.Context(), after)
	must(t, err)
	data = []string{}
	for _, p := range parts {
		if p.Number <= last {
			t.Errorf("part %d comes after %d", p.Number, last)
		}
		data, last = append(data, p.Run+" "+p.Writer+" "+string(p.Data)), p.Number
		if p.Whole {
			data[len(data)-1] += " whole"
		}
	}
	return data, last
}

// liveTextReaders returns the runs of the owner that are read, with the names of the posts.
func liveTextReaders(t *testing.T, s Store, owner string) (runs map[string]string) {
	t.Helper()
	posts, err := s.PostsForOwner(t.Context(), owner)
	must(t, err)
	runs = map[string]string{}
	for i, p := range posts {
		if p.Kind != store.PostLiveText {
			continue
		}
		if p.ID != 0 || i > 0 && posts[i-1].ID != 0 {
			t.Errorf("post %+v has an id, or comes after one that has", p)
		}
		runs[p.Run] = p.Name
	}
	return runs
}

func liveTextRequests(t *testing.T, s Store) {
	newWriter(t, s, "r")
	newWriter(t, s, "other")
	must(t, s.Post(t.Context(), store.Post{Run: "r", Kind: "cancel", At: startTime()}))
	equal(t, "readers", len(liveTextReaders(t, s, "me")), 0)
	must(t, s.RequestLiveText(t.Context(), []string{"r", "unknown"}, true, time.Minute))
	first := liveTextReaders(t, s, "me")
	equal(t, "runs that are read", len(first), 1)
	equal(t, "readers of runs of others", len(liveTextReaders(t, s, "you")), 0)
	inbox, err := s.Inbox(t.Context(), "r")
	must(t, err)
	equal(t, "messages in the inbox", len(inbox), 1)

	s.at(startTime().Add(30 * time.Second))
	must(t, s.RequestLiveText(t.Context(), []string{"r"}, false, time.Minute))
	s.at(startTime().Add(80 * time.Second))
	equal(t, "readers after a renewal", liveTextReaders(t, s, "me"), first)
	must(t, s.RequestLiveText(t.Context(), []string{"r"}, true, time.Second))
	again := liveTextReaders(t, s, "me")
	if again["r"] == first["r"] {
		t.Error("a reader that needs all is not told from one that renews its request")
	}
	s.at(startTime().Add(85 * time.Second))
	equal(t, "readers after a second reader with a shorter time", liveTextReaders(t, s, "me"), again)
	s.at(startTime().Add(91 * time.Second))
	equal(t, "readers after the time", len(liveTextReaders(t, s, "me")), 0)
	equal(t, "readers that were told of the run in the end", func() int {
		must(t, s.RequestLiveText(t.Context(), []string{"r"}, true, time.Minute))
		return len(liveTextReaders(t, s, "me"))
	}(), 1)
}

func liveTextParts(t *testing.T, s Store) {
	r, other := newWriter(t, s, "r"), newWriter(t, s, "other")
	put(t, s, r.part("a\x00é", true), other.part("x", true))
	put(t, s, r.part("b", false))
	got, last := readLiveText(t, s, map[string]int64{"r": 0})
	equal(t, "parts", got, []string{"r x a\x00é whole", "r x b"})
	got, _ = readLiveText(t, s, map[string]int64{"r": last, "other": 0, "unknown": 0})
	equal(t, "later parts", got, []string{"other x x whole"})
	put(t, s, r.part("c", false))
	got, last = readLiveText(t, s, map[string]int64{"r": last})
	equal(t, "later parts", got, []string{"r x c"})
	put(t, s, r.part("abc", true))
	got, next := readLiveText(t, s, map[string]int64{"r": 0})
	equal(t, "parts after a whole one", got, []string{"r x abc whole"})
	if next <= last {
		t.Errorf("the number %d of a part is not above %d", next, last)
	}
	s = s.reopen(t)
	put(t, s, r.part("d", false))
	if _, n := readLiveText(t, s, map[string]int64{"r": next}); n <= next {
		t.Errorf("the number %d of a part is not above %d", n, next)
	}
}

func liveTextFence(t *testing.T, s Store) {
	r := newWriter(t, s, "r")
	put(t, s, r.part("kept", true))
	stale := r.part("stale", true)
	stale.Fence--
	unknown := r.part("unknown", true)
	unknown.Run = "unknown"
	put(t, s, stale, unknown)
	got, _ := readLiveText(t, s, map[string]int64{"r": 0, "unknown": 0})
	equal(t, "parts", got, []string{"r x kept whole"})
}

func liveTextRemoved(t *testing.T, s Store) {
	r, other := newWriter(t, s, "r"), newWriter(t, s, "other")
	foreign := r.part("of another", false)
	foreign.Writer = "y"
	put(t, s, r.part("a", false), foreign, other.part("b", false))
	must(t, s.RemoveLiveText(t.Context(), map[string]string{"r": "x", "other": "y", "unknown": "x"}))
	got, last := readLiveText(t, s, map[string]int64{"r": 0, "other": 0})
	equal(t, "parts", got, []string{"r y of another", "other x b"})
	must(t, s.RemoveLiveText(t.Context(), map[string]string{"r": "y", "other": "x"}))
	put(t, s, r.part("c", true))
	got, _ = readLiveText(t, s, map[string]int64{"r": last})
	equal(t, "a part after all were removed", got, []string{"r x c whole"})
}

func liveTextOfDeadOwners(t *testing.T, s Store) {
	r := newWriter(t, s, "r")
	put(t, s, r.part("a", true))
	s.at(startTime().Add(2 * time.Hour))
	must(t, s.RequestLiveText(t.Context(), nil, false, time.Minute))
	got, _ := readLiveText(t, s, map[string]int64{"r": 0})
	equal(t, "parts after the lease has expired", len(got), 0)

	seized := newWriter(t, s.at(startTime()), "seized")
	put(t, s, seized.part("b", true))
	l, err := s.Seize(t.Context(), "seized", "me", "you", time.Hour)
	must(t, err)
	got, _ = readLiveText(t, s, map[string]int64{"seized": 0})
	equal(t, "parts after the run was taken", len(got), 0)

	seized.lease = l
	put(t, s, seized.part("c", true))
	must(t, s.Release(t.Context(), l))
	must(t, s.RequestLiveText(t.Context(), nil, false, time.Minute))
	got, _ = readLiveText(t, s, map[string]int64{"seized": 0})
	equal(t, "parts after the run was released", len(got), 0)
}

func liveTextDeleted(t *testing.T, s Store) {
	r, kept := newWriter(t, s, "r"), newWriter(t, s, "kept")
	r.append(t, &engine.NodeStarted{Path: "a"})
	head := func() store.Hash {
		t.Helper()
		c, err := s.Chain(t.Context(), "r")
		must(t, err)
		h, err := s.RowHash(t.Context(), c)
		must(t, err)
		return h
	}
	if s.Capabilities().Rows != nil {
		before := head()
		put(t, s, r.part("a", true))
		equal(t, "hash of the rows of record", head(), before)
	}
	put(t, s, r.part("a", true), kept.part("b", true))
	must(t, s.RequestLiveText(t.Context(), []string{"r", "kept"}, true, 3*time.Hour))
	if s.Capabilities().Deletion == nil {
		t.Skip("the store does not declare the capability deletion")
	}
	_, err := s.DeleteRun(t.Context(), "r", afterLeasesExpired())
	must(t, err)
	got, _ := readLiveText(t, s, map[string]int64{"r": 0, "kept": 0})
	equal(t, "parts", got, []string{"kept x b whole"})
	equal(t, "runs that are read", len(liveTextReaders(t, s, "me")), 1)
	again := newWriter(t, s, "r")
	got, _ = readLiveText(t, s, map[string]int64{"r": 0})
	equal(t, "parts of another run with the id", len(got), 0)
	equal(t, "runs that are read", len(liveTextReaders(t, s, "me")), 1)
	put(t, s, again.part("c", true))
}

func liveTextWatch(t *testing.T, s Store) {
	watch := s.Capabilities().Watch
	if watch == nil {
		t.Skip("the store does not declare the capability watch")
	}
	from := s
	if s.subject.OpenSecond != nil {
		from = s.openSecond(t)
	}
	r := newWriter(t, s, "r")
	isR := func(id string) bool { return id == "r" }
	parts, stopParts := from.Capabilities().Watch.Watch(store.TopicLiveText, isR)
	defer stopParts()
	posts, stopPosts := from.Capabilities().Watch.Watch(store.TopicInbox, isR)
	defer stopPosts()
	listening(t, parts)
	listening(t, posts)
	put(t, s, r.part("a", true))
	woken(t, parts, "a part")
	must(t, s.RequestLiveText(t.Context(), []string{"r"}, true, time.Minute))
	woken(t, posts, "a request")
}
