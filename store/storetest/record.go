package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func chainCases() []testCase {
	return []testCase{
		{"every commit is a link of the chain of its run", linksOfCommits},
		{"a chain has the same heads after more commits and after opening again", chainsGrow},
		{"a deleted run leaves its chain without events", erasedChain},
		{"chains of deleted runs are kept in another store", erasedElsewhere},
	}
}

func archiveCases() []testCase {
	return []testCase{
		{"a restored run has the commits and the head that it had", restoredRun},
		{"restored rounds have the history of their session", restoredSession},
		{"a round is restored with the sessions without rounds that its session was forked from", restoredForkOfEmptySession},
		{"a session without rounds is restored as it was forked", restoredEmptySession},
		{"a run that does not exist has no archive", func(t *testing.T, s Store) {
			_, _, err := s.Archive(t.Context(), "no")
			checkError(t, err, store.ErrNotFound)
		}},
	}
}

func auditCases() []testCase {
	return []testCase{
		{"an audit finds nothing in a record that was not changed", auditOfUnchanged},
		{"the digests of all documents are listed", func(t *testing.T, s Store) {
			for _, id := range []string{"f2", "f1"} {
				must(t, s.PutFlow(t.Context(), id, []byte("document "+id)))
			}
			list, err := s.Fingerprints(t.Context())
			must(t, err)
			slices.Sort(list)
			equal(t, "digests", list, []string{"f1", "f2"})
		}},
	}
}

func rowCases() []testCase {
	return []testCase{
		{"the hash of a row stays the same until the row changes", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeStarted{Path: "a"})
			hash := func() store.Hash {
				c, err := s.Chain(t.Context(), "r")
				must(t, err)
				h, err := s.RowHash(t.Context(), c)
				must(t, err)
				return h
			}
			h := hash()
			if h == (store.Hash{}) {
				t.Error("the hash is zero")
			}
			s = s.reopen(t)
			equal(t, "hash after opening again", hash(), h)
			found, err := s.AuditSchema(t.Context(), true)
			must(t, err)
			equal(t, "findings", len(found), 0)
		}},
	}
}

// chainEnd is a chain after one of its commits.
type chainEnd struct {
	head store.Hash
	tag  store.Tag
}

// verifiedChains verifies the chains of all runs and returns their ends, by the number of the
// run and of the commit, and the events of each run's own commits by its id.
func verifiedChains(t *testing.T, s Store) (ends map[int64]map[int64]chainEnd, events map[string][][]engine.Event) {
	t.Helper()
	all, err := s.Chains(t.Context())
	must(t, err)
	ends, events = make(map[int64]map[int64]chainEnd), make(map[string][][]engine.Event)
	chains := make(map[int64]store.Chain)
	for _, c := range all {
		chains[c.Number], ends[c.Number] = c, make(map[int64]chainEnd)
		base := c
		for base.Base != 0 && base.BaseSeq >= c.BaseSeq { // the run to which the last shared commit belongs
			base = chains[base.Base]
		}
		from := ends[base.Number][c.BaseSeq]
		v := store.NewChainVerifier(c, from.head, from.tag)
		for l, err := range s.Links(t.Context(), c) {
			must(t, err)
			if found := v.Verify(&l); len(found) > 0 {
				t.Errorf("run %s, commit %d: %s", c.Run, l.Seq, found[0].Message)
			}
			head, tag := v.End()
			ends[c.Number][l.Seq] = chainEnd{head, tag}
			if c.Run != "" {
				events[c.Run] = append(events[c.Run], l.Events)
			}
		}
	}
	return ends, events
}

// forkedRuns writes a run, a fork of it, and a fork of the fork that shares only the first
// run's commits with both.
func forkedRuns(t *testing.T, s Store) []*writer {
	t.Helper()
	w := newWriter(t, s, "r")
	for _, node := range []string{"a", "b", "c", "d"} {
		w.append(t, &engine.NodeStarted{Path: node}, &engine.NodeCompleted{Path: node, Outputs: engine.Values{{Name: "text", Value: "result of " + node}}})
	}
	f := fork(t, s, w, "f", 3)
	f.append(t, &engine.NodeStarted{Path: "e"})
	g := fork(t, s, f, "g", 2)
	g.append(t, &engine.NodeStarted{Path: "h"})
	return []*writer{w, f, g}
}

func linksOfCommits(t *testing.T, s Store) {
	runs := forkedRuns(t, s)
	_, events := verifiedChains(t, s)
	for i, shared := range []int{0, 3, 2} {
		w := runs[i]
		own := w.wrote[shared:]
		got := events[w.lease.Run]
		equal(t, "links of "+w.lease.Run, len(got), len(own))
		for j, c := range own {
			sameCommits(t, []engine.Commit{{Run: c.Run, Seq: c.Seq, First: c.First, At: c.At, Events: got[j]}}, []engine.Commit{c})
		}
	}
	_, err := s.Chain(t.Context(), "no")
	checkError(t, err, store.ErrNotFound)
}

func chainsGrow(t *testing.T, s Store) {
	runs := forkedRuns(t, s)
	before, _ := verifiedChains(t, s)
	s = s.reopen(t)
	for _, w := range runs {
		w.s = s
		w.append(t, &engine.NodeStarted{Path: "later"})
	}
	after, _ := verifiedChains(t, s)
	heads := make(map[store.Hash]bool)
	for number, ends := range before {
		for seq, end := range ends {
			equal(t, "end of a commit", after[number][seq], end)
			heads[end.head] = true
		}
		equal(t, "commits", len(after[number]), len(ends)+1)
	}
	equal(t, "different heads", len(heads), 6)
}

func erasedChain(t *testing.T, s Store) {
	if s.Capabilities().Deletion == nil {
		t.Skip("the store does not declare the capability deletion")
	}
	w := newWriter(t, s, "r")
	w.append(t, &engine.NodeStarted{Path: "a"})
	newWriter(t, s, "other").append(t, &engine.NodeStarted{Path: "b"})
	before, _ := verifiedChains(t, s)
	_, err := s.DeleteRun(t.Context(), "r", afterLeasesExpired())
	must(t, err)
	after, events := verifiedChains(t, s)
	equal(t, "ends", after, before)
	equal(t, "runs with events", len(events), 1)
	_, err = s.Chain(t.Context(), "r")
	checkError(t, err, store.ErrNotFound)
}

// erasedElsewhere deletes runs that share their past, and keeps their chains in another store of the same kind.
func erasedElsewhere(t *testing.T, s Store) {
	if s.Capabilities().Deletion == nil || s.Capabilities().Archive == nil {
		t.Skip("the store does not declare the capabilities deletion and archive")
	}
	runs := forkedRuns(t, s)
	newWriter(t, s, "other").append(t, &engine.NodeStarted{Path: "b"})
	_, err := s.DeleteRun(t.Context(), runs[0].lease.Run, store.DeleteOptions{Now: afterLeasesExpired().Now, Force: true})
	must(t, err)
	chains, err := store.ErasedChains(t.Context(), s)
	must(t, err)
	equal(t, "erased runs", len(chains), len(runs))
	to := newStore(t, s.subject)
	for i, want := range []int{len(runs), 0} {
		newWriter(t, to, fmt.Sprint("between", i)).append(t, &engine.NodeStarted{Path: "c"})
		n, err := to.RestoreErased(t.Context(), chains)
		must(t, err)
		equal(t, "kept", n, want)
	}
	to = to.reopen(t)
	newWriter(t, to, "after").append(t, &engine.NodeStarted{Path: "d"})
	again, err := store.ErasedChains(t.Context(), to)
	must(t, err)
	equal(t, "chains", again, chains)
	heads := func(s Store) map[store.Hash]bool {
		ends, _ := verifiedChains(t, s)
		out := make(map[store.Hash]bool)
		for _, list := range ends {
			for _, end := range list {
				out[end.head] = true
			}
		}
		return out
	}
	kept := heads(to)
	all, err := s.Chains(t.Context())
	must(t, err)
	ends, _ := verifiedChains(t, s)
	for _, c := range all {
		for seq, end := range ends[c.Number] {
			equal(t, fmt.Sprintf("head of commit %d of run %d is kept", seq, c.Number), kept[end.head], c.Run == "")
		}
	}
	_, err = to.RestoreErased(t.Context(), []store.ErasedChain{{Origin: store.Hash{1}, BaseRun: "nowhere", BaseSeq: 1, BaseEvents: 1}})
	checkError(t, err, store.ErrNotFound)
}

// restored restores what is archived with a run in an empty store of the same kind. Again is
// the error of restoring it a second time.
func restored(t *testing.T, s Store, run string, again error) Store {
	t.Helper()
	rows, sessions, err := s.Archive(t.Context(), run)
	must(t, err)
	var runs []store.RunToRestore
	for _, row := range rows {
		x := store.RunToRestore{ArchivedRun: row}
		c, err := s.Chain(t.Context(), row.ID)
		must(t, err)
		for l, err := range s.Links(t.Context(), c) {
			must(t, err)
			x.Commits = append(x.Commits, engine.Commit{Run: row.ID, Seq: l.Seq, First: l.First, At: l.At, Events: l.Events})
		}
		runs = append(runs, x)
	}
	to := newStore(t, s.subject)
	must(t, to.Restore(t.Context(), sessions, runs))
	checkError(t, to.Restore(t.Context(), sessions, runs), again)
	for _, row := range rows {
		sameCommits(t, read(t, to, row.ID, 0), read(t, s, row.ID, 0))
		equal(t, "head of "+row.ID, lastEnd(t, to, row.ID), lastEnd(t, s, row.ID))
	}
	return to
}

// lastEnd returns the end of the chain of a run.
func lastEnd(t *testing.T, s Store, run string) chainEnd {
	t.Helper()
	ends, _ := verifiedChains(t, s)
	c, err := s.Chain(t.Context(), run)
	must(t, err)
	r, err := s.Run(t.Context(), run)
	must(t, err)
	return ends[c.Number][r.Commits]
}

func restoredRun(t *testing.T, s Store) {
	forkedRuns(t, s)
	to := restored(t, s, "g", store.ErrExists)
	for _, id := range []string{"r", "f", "g"} {
		was, err := s.Run(t.Context(), id)
		must(t, err)
		is, err := to.Run(t.Context(), id)
		must(t, err)
		equal(t, "run "+id, []any{is.Flow, is.Fingerprint, is.User, is.Origin, is.Commits, is.Base}, []any{was.Flow, was.Fingerprint, was.User, was.Origin, was.Commits, was.Base})
	}
}

func restoredSession(t *testing.T, s Store) {
	if s.Capabilities().Sessions == nil {
		t.Skip("the store does not declare the capability sessions")
	}
	talk := newConversation(t, s, "s")
	for range 3 {
		talk.startAskedRound(t).finish(t, engine.Completed)
	}
	to := restored(t, s, "s-3", store.ErrSessionAdvanced)
	was, err := s.SessionMessages(t.Context(), "s", 0, 100)
	must(t, err)
	is, err := to.SessionMessages(t.Context(), "s", 0, 100)
	must(t, err)
	equal(t, "messages", is, was)
	equal(t, "rounds", session(t, to, "s").Rounds, 3)
}

func auditOfUnchanged(t *testing.T, s Store) {
	forkedRuns(t, s)
	all, err := s.Chains(t.Context())
	must(t, err)
	for _, c := range all {
		facts := &store.JournalFacts{}
		for l, err := range s.Links(t.Context(), c) {
			must(t, err)
			facts.Add(l.Seq, l.At, l.Events)
		}
		found, err := s.Audit(t.Context(), c, facts)
		must(t, err)
		for _, f := range found {
			t.Errorf("run %s: %s", c.Run, f.Message)
		}
	}
	found, err := s.AuditAll(t.Context())
	must(t, err)
	equal(t, "findings", len(found), 0)
}
