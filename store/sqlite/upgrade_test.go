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
	path := filepath.Join(t.TempDir(), "weir.db")
	dump, err := os.ReadFile("testdata/v2.sql")
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
	return openAt(t, path, Options{})
}

func TestADatabaseOfVersion2IsReadAsItWas(t *testing.T) {
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
	texts, err := s.texts(t.Context(), "read the view",
		"SELECT position || ' ' || role || ' ' || content FROM message_text WHERE run = 'r' AND context = 'main' AND position > 23 ORDER BY position")
	if err != nil || fmt.Sprint(texts) != "[24 user one more 25 assistant and another]" {
		t.Errorf("the view: %v (%v)", texts, err)
	}
}

// addsToMain is how many messages a commit adds to the main context.
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

func TestARunOfVersion2GoesOn(t *testing.T) {
	s := openV2(t)
	run, err := s.Run(t.Context(), "chain")
	if err != nil || run.Commits != 3 {
		t.Fatal(run.Commits, err)
	}
	l, err := s.Acquire(t.Context(), "chain", "you", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := chain{"chain", l.Fence, 3}
	if err := s.Append(t.Context(), []store.Append{c.next()})[0]; err != nil {
		t.Fatal(err)
	}
}
