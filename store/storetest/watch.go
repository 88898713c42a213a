package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func watchCases() []testCase {
	return []testCase{
		{"a watch is woken by changes of another process that it selects", watchOtherProcess},
		{"a watch that was stopped is not woken, and another is", stoppedWatch},
	}
}

// maxWake is how long a test waits for a hint.
const maxWake = 20 * time.Second

func woken(t *testing.T, changed <-chan struct{}, by string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWake)
	defer cancel()
	select {
	case <-changed:
	case <-ctx.Done():
		t.Errorf("not woken by %s", by)
	}
}

// listening waits until a watch has begun: its first value is for what changed before.
func listening(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	woken(t, changed, "the beginning of the watch")
}

func watchOtherProcess(t *testing.T, s Store) {
	from := s
	if s.subject.OpenSecond != nil {
		from = s.openSecond(t)
	}
	w, other := newWriter(t, s, "r"), newWriter(t, s, "other")
	watch := from.Capabilities().Watch
	commits, stopCommits := watch.Watch(store.TopicCommit, func(id string) bool { return id == "r" })
	defer stopCommits()
	posts, stopPosts := watch.Watch(store.TopicInbox, func(id string) bool { return id == "r" })
	defer stopPosts()
	listening(t, commits)
	listening(t, posts)
	for range 2 {
		w.append(t, &engine.NodeStarted{Path: "a"})
		woken(t, commits, "a commit")
	}
	other.append(t, &engine.NodeStarted{Path: "a"})
	must(t, s.Post(t.Context(), store.Post{Run: "other", Kind: "cancel", At: startTime()}))
	must(t, s.Post(t.Context(), store.Post{Run: "r", Kind: "cancel", At: startTime()}))
	woken(t, posts, "a message")
	equal(t, "values for a commit of another run", len(commits), 0)
}

func stoppedWatch(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	all := func(string) bool { return true }
	stopped, stop := s.Capabilities().Watch.Watch(store.TopicCommit, all)
	going, stopGoing := s.Capabilities().Watch.Watch(store.TopicCommit, all)
	defer stopGoing()
	listening(t, going)
	listening(t, stopped)
	stop()
	w.append(t, &engine.NodeStarted{Path: "a"})
	woken(t, going, "a commit")
	equal(t, "values of the watch that was stopped", len(stopped), 0)
}
