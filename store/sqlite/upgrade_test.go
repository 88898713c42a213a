package sqlite

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// openV2 opens a file that version 2 of the schema wrote, and so upgrades it: a
// conversation of 12 turns in the run r, a lane, and the run chain.
func openV2(t *testing.T) *Store {
	t.Helper()
	return openDump(t, "testdata/v2.sql")
}

// openDump opens a file made of what an earlier version's held.
func openDump(t *testing.T, dumped string) *Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	dump(t, path, dumped)
	return openAt(t, path, Options{})
}

// dump makes a file of what an earlier version's held.
func dump(t *testing.T, path, dumped string) {
	t.Helper()
	dump, err := os.ReadFile(dumped)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA application_id = %d; PRAGMA journal_mode = WAL; %s", applicationID, dump)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestVersion2DatabaseReadsUnchanged(t *testing.T) {
	s := openV2(t)
	want := 0
	for c, err := range s.Commits(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want += addsToMain(c)
		// A fork at each commit has the messages up to there: the commit of each is
		// known though version 2 did not keep it.
		id := fmt.Sprint("fork ", c.Seq)
		if err := s.Create(t.Context(), store.NewRun{ID: id, At: time.UnixMilli(1), Base: &store.Base{Run: "r", Seq: c.Seq}}); err != nil {
			t.Fatal(err)
		}
		ms, err := s.Messages(t.Context(), id, "main", 0, 1000)
		if err != nil || len(ms) != want {
			t.Fatalf("after commit %d: %d messages, want %d (%v)", c.Seq, len(ms), want, err)
		}
	}
	if want != 26 {
		t.Errorf("%d messages in all", want)
	}
	lane, err := s.Messages(t.Context(), "r", "lane", 0, 1000)
	if err != nil || len(lane) != 1 || lane[0].Text != "said in the lane" {
		t.Errorf("the lane: %v (%v)", lane, err)
	}
	texts, err := s.queryTexts(t.Context(), "read the view",
		"SELECT position || ' ' || role || ' ' || content FROM message_text WHERE run = 'r' AND context = 'main' AND position > 23 ORDER BY position")
	if err != nil || fmt.Sprint(texts) != "[24 user one more 25 assistant and another]" {
		t.Errorf("the view: %v (%v)", texts, err)
	}
}

// addsToMain returns how many messages a commit adds to the main context.
func addsToMain(c engine.Commit) (n int) {
	for _, e := range c.Events {
		for _, ch := range engine.ContextChanges(e) {
			if ch.ID == "main" {
				n += ch.Adds
			}
		}
	}
	return n
}

func TestRunOfVersion2Continues(t *testing.T) {
	s := openV2(t)
	run, err := s.Run(t.Context(), "chain")
	if err != nil || run.Commits != 3 {
		t.Fatal(run.Commits, err)
	}
	l, err := s.Acquire(t.Context(), "chain", "you", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := chain{"chain", l.Fence, 3}
	if err := s.Append(t.Context(), []store.Append{c.next()})[0]; err != nil {
		t.Fatal(err)
	}
}

// openV3 opens a file that version 3 of the schema wrote: a session of six rounds,
// a fork of the fourth, a session that continues with five messages, and a run.
func openV3(t *testing.T) *Store {
	t.Helper()
	return openDump(t, "testdata/v3.sql")
}

func TestVersion3DatabaseReadsUnchanged(t *testing.T) {
	s := openV3(t)
	rounds, err := s.Runs(t.Context(), store.Filter{Session: "s"})
	if err != nil || len(rounds) != 6 {
		t.Fatal(len(rounds), err)
	}
	for i, r := range rounds {
		if r.Flow != "chat" || len(r.Fingerprint) != 64 || r.User != "u" || r.Origin != "cli" || r.Round != 6-i ||
			r.Head.Status != engine.Completed || r.Head.Usage != (engine.Usage{Calls: 1, Input: 100, Output: 10}) {
			t.Errorf("%+v", r)
		}
	}
	ms, err := s.SessionMessages(t.Context(), "s", 0, 100)
	if err != nil || len(ms) != 12 || ms[7].Message.Text != "answer 3, which is as long as answers are" || ms[7].Message.ID != "4/reply" {
		t.Fatal(len(ms), err)
	}
	for run, want := range map[string]int{"fork": 8, "plain": 1, "run-of-s-01hzx000002": 4} {
		ms, err := s.Messages(t.Context(), run, "main", 0, 100)
		if err != nil || len(ms) != want {
			t.Fatalf("%s has %d messages, want %d (%v)", run, len(ms), want, err)
		}
	}
	if at, err := s.FindMessage(t.Context(), "plain", "main", "/slash", 9); at != 0 || err != nil {
		t.Errorf("the id that begins with a slash is at %d (%v)", at, err)
	}
	q, err := s.RoundMessage(t.Context(), "run-of-s-01hzx000003")
	if err != nil || q.ID != "s-01hzx000003" {
		t.Errorf("what began a round: %+v (%v)", q, err)
	}
	views, err := s.queryTexts(t.Context(), "read the views",
		"SELECT status || ' ' || (usage ->> '$[0].usage.calls') || ' ' || (SELECT count(*) FROM journal WHERE run = id) FROM run ORDER BY num")
	if err != nil || fmt.Sprint(views) != "[completed 1 2 completed 1 2 completed 1 2 completed 1 2 completed 1 2 completed 1 2 completed 2 1 completed 2 1]" {
		t.Errorf("%v (%v)", views, err)
	}
}

func TestSessionOfVersion3Continues(t *testing.T) {
	s := openV3(t)
	c := &chat{s: s, session: "s", n: 6}
	if err := c.take(t, "waits", "the answer to what waited"); err != nil {
		t.Fatal(err)
	}
	c.round(t, "one more question", "one more answer")
	x, err := s.Session(t.Context(), "s")
	if err != nil || x.Rounds != 8 || x.Length != 16 || x.Queued != 0 || x.Usage.Calls != 8 {
		t.Errorf("%+v (%v)", x, err)
	}
	for i, r := range []string{"run-of-waits", "run-of-s-01hzx000004"} {
		ms, err := s.Messages(t.Context(), r, "main", 0, 100)
		if want := []int{14, 8}[i]; err != nil || len(ms) != want {
			t.Errorf("%s has %d messages, want %d (%v)", r, len(ms), want, err)
		}
	}
}

func TestUpgradedSchemaPassesTheAudit(t *testing.T) {
	for _, dumped := range []string{"testdata/v2.sql", "testdata/v3.sql"} {
		s := openDump(t, dumped)
		found, err := s.AuditSchema(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		more, err := s.AuditAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		chains, err := s.Chains(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chains {
			own, err := s.Audit(t.Context(), c, &store.JournalFacts{})
			if err != nil {
				t.Fatal(err)
			}
			more = append(more, own...)
		}
		for _, f := range append(found, more...) {
			t.Errorf("%s: %+v", dumped, f)
		}
	}
}
