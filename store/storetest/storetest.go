// Package storetest is the conformance suite of stores, in tiers: the journal tier, which
// every store must pass, and one tier for each capability that a store declares in
// store.Capabilities. The tests of a store call Run. A tier whose capability is missing is
// skipped by name.
//
// It must not know any particular store.
package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Subject is the store under test.
type Subject struct {
	// Open creates an empty store with the given clock. The suite does not close it.
	Open func(tb testing.TB, clock func() time.Time) store.Store
	// Reopen closes a store that Open created and opens it again with its data; nil for a store that does not outlive
	// its process.
	Reopen func(tb testing.TB, s store.Store, clock func() time.Time) store.Store
	// OpenSecond opens a store that Open created once more, as another process would; nil for a store of one process.
	OpenSecond func(tb testing.TB, s store.Store, clock func() time.Time) store.Store
}

// Store is a store with the methods of every capability. A case that calls a missing one is skipped by must.
type Store struct {
	*store.Full
	subject *Subject
	now     *atomic.Pointer[time.Time] // the store's clock
}

// newStore opens an empty store with its clock at startTime.
func newStore(t *testing.T, subject *Subject) Store {
	t.Helper()
	s := Store{subject: subject, now: new(atomic.Pointer[time.Time])}
	s.at(startTime())
	s.Full = store.Complete(subject.Open(t, s.clock))
	return s
}

func (s Store) clock() time.Time { return *s.now.Load() }

// at sets the store's clock and returns the store.
func (s Store) at(now time.Time) Store {
	s.now.Store(&now)
	return s
}

// openSecond opens the store once more, as another process would.
func (s Store) openSecond(tb testing.TB) Store {
	tb.Helper()
	s.Full = store.Complete(s.subject.OpenSecond(tb, s.Store, s.clock))
	return s
}

// reopen returns the store after it was closed and opened again, or the store itself if it
// does not outlive its process.
func (s Store) reopen(tb testing.TB) Store {
	tb.Helper()
	if s.subject.Reopen == nil {
		return s
	}
	s.Full = store.Complete(s.subject.Reopen(tb, s.Store, s.clock))
	return s
}

// Run runs the suite, every case on a fresh store.
func Run(t *testing.T, s Subject) {
	t.Helper()
	for _, tier := range []struct {
		name   string
		has    func(c store.Capabilities) bool
		groups [][]testCase
	}{
		{"journal", func(store.Capabilities) bool { return true }, [][]testCase{
			journalCases(), refusalCases(), firstCommitCases(), valueCases(), messageCases(), leaseCases(), listingCases(), extraCases(), bulkCases(), baseCases(),
		}},
		{"recovery", func(c store.Capabilities) bool { return c.Recovery != nil }, [][]testCase{recoveryCases()}},
		{"sessions", func(c store.Capabilities) bool { return c.Sessions != nil }, [][]testCase{sessionCases(), roundCases(), firstRoundCommitCases(), sessionStateCases(), snapshotCases()}},
		{"deletion", func(c store.Capabilities) bool { return c.Deletion != nil }, [][]testCase{erasureCases()}},
		{"chains", func(c store.Capabilities) bool { return c.Chains != nil }, [][]testCase{chainCases()}},
		{"archive", func(c store.Capabilities) bool { return c.Archive != nil && c.Chains != nil }, [][]testCase{archiveCases()}},
		{"audit", func(c store.Capabilities) bool { return c.Audit != nil && c.Chains != nil }, [][]testCase{auditCases()}},
		{"rows", func(c store.Capabilities) bool { return c.Rows != nil && c.Chains != nil }, [][]testCase{rowCases()}},
		{"access", func(c store.Capabilities) bool { return c.Access != nil }, [][]testCase{accessCases()}},
		{"documents", func(c store.Capabilities) bool { return c.Documents != nil }, [][]testCase{documentCases()}},
		{"user state", func(c store.Capabilities) bool { return c.UserState != nil }, [][]testCase{userStateCases()}},
		{"live text", func(c store.Capabilities) bool { return c.LiveText != nil }, [][]testCase{liveTextCases()}},
		{"watch", func(c store.Capabilities) bool { return c.Watch != nil }, [][]testCase{watchCases()}},
		{"memory", func(c store.Capabilities) bool { return c.Memory != nil }, [][]testCase{memoryCases(), memorySearchCases()}},
	} {
		t.Run(tier.name, func(t *testing.T) {
			if !tier.has(newStore(t, &s).Capabilities()) {
				t.Skipf("the store does not declare the capability %s", tier.name)
			}
			for _, c := range slices.Concat(tier.groups...) {
				t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t, &s)) })
			}
		})
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, s Store)
}

// startTime returns the clock's time at the start of each case.
func startTime() time.Time { return time.UnixMilli(1_800_000_000_000) }

// writer appends commits to one run and remembers them.
type writer struct {
	s     Store
	lease store.Lease
	wrote []engine.Commit
	first int64
	start *store.RunStart // makes the run with the first commit; nil if it exists
}

func newWriter(tb testing.TB, s Store, run string) *writer {
	tb.Helper()
	must(tb, s.Create(tb.Context(), store.NewRun{ID: run, Flow: "flow", Fingerprint: "f1", At: startTime()}))
	l, err := s.at(startTime()).Acquire(tb.Context(), run, "me", time.Hour)
	must(tb, err)
	return &writer{s: s, lease: l, first: 1}
}

// next returns the next commit.
func (w *writer) next(events ...engine.Event) store.Append {
	seq := int64(len(w.wrote)) + 1
	a := store.Append{
		Commit: engine.Commit{
			Run: w.lease.Run, Seq: seq, First: w.first, At: startTime().UnixMilli() + seq, Events: events,
		},
		Fence: w.lease.Fence,
		Head:  store.Head{Status: engine.Running, Waiting: []engine.Interrupt{}},
	}
	if seq == 1 && w.start != nil {
		a.Start, a.Acquire = w.start, &w.lease
	}
	return a
}

// acknowledged records that a commit was acknowledged.
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

// check compares the store's commits with the appended ones.
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

// plain returns a commit with the bodies of its context changes in one form: a store may return a change as a
// convo.Change or as its JSON.
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

// must ends a case that failed, and skips one that needs a capability that the store does not declare.
func must(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, store.ErrUnsupported) {
		tb.Skip(err)
	}
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
	if s.subject.Reopen == nil {
		t.Skip("Subject.Reopen: this store does not outlive its process")
	}
	return s.reopen(t)
}
