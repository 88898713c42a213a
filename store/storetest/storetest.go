// Package storetest is the conformance suite of stores. The tests of a store call Run.
// An ability that only some stores have is an interface; a case that needs a missing
// ability is skipped by name.
//
// It must not know any particular store.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Store is all that a store does.
type Store interface {
	Journal
	Leases
	Listings
	Extras
	Sessions
	Deletion
	Memory
	Close() error
}

// Journal keeps commits and what is in them.
type Journal interface {
	Create(ctx context.Context, n store.NewRun) error
	Append(ctx context.Context, appends []store.Append) []error
	Commits(ctx context.Context, run string, afterSeq int64) iter.Seq2[engine.Commit, error]
	Messages(ctx context.Context, run, contextID string, from, to int) ([]convo.Message, error)
	FindMessage(ctx context.Context, run, contextID, messageID string, n int) (int, error)
}

// Leases says who may write.
type Leases interface {
	Acquire(ctx context.Context, run, owner string, ttl time.Duration, now time.Time) (store.Lease, error)
	Seize(ctx context.Context, run, from, owner string, ttl time.Duration, now time.Time) (store.Lease, error)
	Renew(ctx context.Context, leases []store.Lease, ttl time.Duration, now time.Time) ([]string, error)
	Release(ctx context.Context, l store.Lease) error
}

// Listings finds runs.
type Listings interface {
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.Filter) ([]store.Run, error)
	FindRunIDs(ctx context.Context, prefix string) ([]string, error)
	Due(ctx context.Context, before time.Time, limit int) ([]string, error)
	NextDue(ctx context.Context, after time.Time) (time.Time, error)
	Unfinished(ctx context.Context, except string, now time.Time, after int64, limit int) ([]store.Unfinished, error)
	PendingSessions(ctx context.Context, after string, limit int) ([]string, error)
}

// Extras is what is kept beside journals.
type Extras interface {
	SaveCheckpoint(ctx context.Context, c store.Checkpoint) error
	Checkpoint(ctx context.Context, run string) (store.Checkpoint, error)
	PutFlow(ctx context.Context, fingerprint string, normal []byte) error
	Flow(ctx context.Context, fingerprint string) ([]byte, error)
	Post(ctx context.Context, p store.Post) error
	Inbox(ctx context.Context, run string) ([]store.Post, error)
	PostsForOwner(ctx context.Context, owner string) ([]store.Post, error)
	RemovePosts(ctx context.Context, ids []int64) error
	CacheGet(ctx context.Context, key string, now time.Time) (engine.Value, bool, error)
	CachePut(ctx context.Context, key string, v engine.Value, expires time.Time) error
	CacheDeleteExpired(ctx context.Context, now time.Time) (int64, error)
	CacheUpdate(ctx context.Context, key string, now time.Time, change func(engine.Value, bool) (engine.Value, bool)) error
	CacheList(ctx context.Context, prefix string, now time.Time) ([]store.CacheEntry, error)
	CacheDelete(ctx context.Context, keys []string) (int, error)
}

// Sessions keeps conversations over many runs.
type Sessions interface {
	CreateSession(ctx context.Context, n store.NewSession) error
	ActivateSession(ctx context.Context, id string) error
	ExpireSession(ctx context.Context, id string, at time.Time) error
	Session(ctx context.Context, id string) (store.Session, error)
	FindSession(ctx context.Context, user, flow, thread string) (store.Session, error)
	Sessions(ctx context.Context, f store.SessionFilter) ([]store.Session, error)
	SessionMessages(ctx context.Context, id string, from, to int) ([]store.SessionMessage, error)
	Enqueue(ctx context.Context, q store.QueuedMessage) (store.QueuedMessage, error)
	Queue(ctx context.Context, session string) ([]store.QueuedMessage, error)
	NextQueued(ctx context.Context, session string) (store.QueuedMessage, error)
	RemoveQueued(ctx context.Context, id string) error
	FindQueued(ctx context.Context, id string) (store.QueuedMessage, error)
	RefuseQueued(ctx context.Context, id, holder string, commits int64) error
	NotQueued(ctx context.Context, ids []string) ([]string, error)
	StartRound(ctx context.Context, queued string, n store.NewRun) (store.Session, store.QueuedMessage, error)
	RoundMessage(ctx context.Context, run string) (store.QueuedMessage, error)
}

// Deletion deletes for good.
type Deletion interface {
	DeleteSession(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error)
	DeleteRun(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error)
	DeleteUser(ctx context.Context, user string, e store.DeleteOptions) (store.DeleteResult, error)
	PruneSessions(ctx context.Context, p store.PruneOptions) (store.DeleteResult, error)
}

// HistoryReader is a store that gives the history of a session without who said what
// when.
type HistoryReader interface {
	SessionHistory(ctx context.Context, id string, from, to int) ([]convo.Message, error)
}

// Reopener is a store that outlives its process.
type Reopener interface {
	// Reopen closes the store and opens it again.
	Reopen(tb testing.TB) Store
}

// Run runs the suite, every case on a fresh store from open; open sees to its
// being closed.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for _, group := range [][]testCase{
		journalCases(), refusalCases(), valueCases(), messageCases(),
		leaseCases(), recoveryCases(), listingCases(), extraCases(), bulkCases(),
		baseCases(), sessionCases(), roundCases(), snapshotCases(), erasureCases(),
		memoryCases(), memorySearchCases(),
	} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
		}
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, s Store)
}

// startTime is when the cases take place.
func startTime() time.Time { return time.UnixMilli(1_800_000_000_000) }

// writer appends commits to one run and remembers them.
type writer struct {
	s     Store
	lease store.Lease
	wrote []engine.Commit
	first int64
}

func newWriter(tb testing.TB, s Store, run string) *writer {
	tb.Helper()
	must(tb, s.Create(tb.Context(), store.NewRun{ID: run, Flow: "flow", Fingerprint: "f1", At: startTime()}))
	l, err := s.Acquire(tb.Context(), run, "me", time.Hour, startTime())
	must(tb, err)
	return &writer{s: s, lease: l, first: 1}
}

// next is the commit that comes next.
func (w *writer) next(events ...engine.Event) store.Append {
	seq := int64(len(w.wrote)) + 1
	return store.Append{
		Commit: engine.Commit{
			Run: w.lease.Run, Seq: seq, First: w.first, At: startTime().UnixMilli() + seq, Events: events,
		},
		Fence: w.lease.Fence,
		Head:  store.Head{Status: engine.Running, Waiting: []engine.Interrupt{}},
	}
}

// acknowledged notes that a commit was acknowledged.
func (w *writer) acknowledged(a store.Append) {
	w.wrote = append(w.wrote, a.Commit)
	w.first += int64(len(a.Commit.Events))
}

func (w *writer) append(tb testing.TB, events ...engine.Event) {
	tb.Helper()
	a := w.next(events...)
	must(tb, w.s.Append(tb.Context(), []store.Append{a})[0])
	w.acknowledged(a)
}

// check compares what the store gives with what was appended.
func (w *writer) check(tb testing.TB, s Store) {
	tb.Helper()
	sameCommits(tb, read(tb, s, w.lease.Run, 0), w.wrote)
}

func read(tb testing.TB, s Store, run string, after int64) []engine.Commit {
	tb.Helper()
	var out []engine.Commit
	for c, err := range s.Commits(tb.Context(), run, after) {
		must(tb, err)
		out = append(out, c)
	}
	return out
}

func sameCommits(tb testing.TB, got, want []engine.Commit) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("got %d commits, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := plain(tb, got[i]), plain(tb, want[i])
		if !reflect.DeepEqual(g, w) {
			tb.Fatalf("commit %d\ngot  %s\nwant %s", want[i].Seq, describeCommit(g), describeCommit(w))
		}
	}
}

// plain is a commit with the bodies of its context changes in one form: a
// store may give a change back as a convo.Change or as its JSON.
func plain(tb testing.TB, c engine.Commit) engine.Commit {
	tb.Helper()
	c.Events = slices.Clone(c.Events)
	for i, e := range c.Events {
		v := reflect.ValueOf(e).Elem()
		for _, name := range []string{"Contexts", "Forks"} {
			f := v.FieldByName(name)
			if !f.IsValid() || f.Len() == 0 {
				continue
			}
			changes := slices.Clone(f.Interface().([]engine.ContextChange))
			for j := range changes {
				changes[j].Body = changeBody(tb, changes[j].Body)
			}
			n := reflect.New(v.Type())
			n.Elem().Set(v)
			n.Elem().FieldByName(name).Set(reflect.ValueOf(changes))
			c.Events[i] = n.Interface().(engine.Event)
		}
	}
	return c
}

func changeBody(tb testing.TB, x any) any {
	tb.Helper()
	switch t := x.(type) {
	case nil:
		return nil
	case convo.Change:
		return t
	case *convo.Change:
		return *t
	case json.RawMessage:
		var c convo.Change
		must(tb, json.Unmarshal(t, &c))
		return c
	}
	tb.Fatalf("a body of type %T", x)
	return nil
}

func describeCommit(c engine.Commit) string {
	data, err := engine.EncodeEvents(nil, c.Events)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("run %s seq %d first %d at %d %.2000s", c.Run, c.Seq, c.First, c.At, data)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func equal(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if !reflect.DeepEqual(got, want) {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func reopened(t *testing.T, s Store) Store {
	t.Helper()
	r, ok := s.(Reopener)
	if !ok {
		t.Skip("needs storetest.Reopener: this store does not outlive its process")
	}
	return r.Reopen(t)
}
