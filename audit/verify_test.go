package audit_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// archive holds what archiveData returns; the first test that asks for it makes it.
var archive struct {
	sync.Mutex
	data []byte
}

// archiveData returns a closed database with all that a record can hold: runs of every kind,
// forks, sessions and what is left of those that were erased.
func archiveData(t *testing.T) []byte {
	t.Helper()
	archive.Lock()
	defer archive.Unlock()
	if archive.data == nil {
		data, err := os.ReadFile(makeArchive(t))
		if err != nil {
			t.Fatal(err)
		}
		archive.data = data
	}
	return archive.data
}

// archiveDatabase returns the path of a copy of archiveData.
func archiveDatabase(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	if err := os.WriteFile(path, archiveData(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func makeArchive(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := weirkit.OpenForkWeir(t, s, &weirkit.EchoModel{})
	var names []string
	for name := range weirkit.ForkFlows() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r := weirkit.RunToEnd(t, w, weirkit.LoadForkFlow(t, w, name))
		at := r.Run
		for _, event := range []int64{2, 9} {
			fork, _, err := w.Fork(t.Context(), at, weir.ForkOptions{At: event})
			if err != nil {
				t.Logf("fork %s at %d: %v", name, event, err)
				continue
			}
			at = weirkit.AnswerAll(t, w, fork).Run
		}
	}
	f, err := w.Parse("talk.yaml", []byte(strings.NewReplacer("echo/m", "p/m", "nodes:\n", rememberingState).Replace(weirkit.TalkFlow)))
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"anna", "bea", "cleo"} {
		session := talkAndFork(t, w, f, user)
		if user == "bea" {
			if _, err := s.DeleteSession(t.Context(), session, store.DeleteOptions{Now: time.Now(), Force: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return path
}

// talkAndFork has a conversation of four rounds and forks it, and sets values of its state by
// hand. It returns the id of the session.
func talkAndFork(t *testing.T, w *weir.Weir, f *weir.Flow, user string) string {
	t.Helper()
	talk, err := w.Session(t.Context(), f, weir.SessionOptions{User: user})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		weirkit.SendAndWait(t, talk, strings.Repeat(user+" says ", 1+200*(i%2)), weir.SendOptions{})
		if i == 1 {
			if err := talk.EditState(t.Context(), session.StateEdit{Set: map[string]any{"rounds": 10}, Reset: []string{"said"}, By: user}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fork, err := talk.Fork(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	weirkit.SendAndWait(t, fork, "aside", weir.SendOptions{})
	return talk.ID
}

// rememberingState, in the place of "nodes:", has each round change the state of its session.
const rememberingState = `state:
  rounds: {scope: session, initial: 0, reducer: sum}
  said: {scope: session}
nodes:
  remember: {type: transform, with: {state: {rounds: "1", said: run.inputs.message}}}
`

func verifyDatabase(t *testing.T, path string, v audit.Options) *audit.Report {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	out, err := audit.Verify(t.Context(), s, v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryKindOfRecordVerifies(t *testing.T) {
	t.Parallel()
	path := archiveDatabase(t)
	out := verifyDatabase(t, path, audit.Options{})
	for _, f := range out.Findings {
		t.Errorf("%+v", f)
	}
	if out.Erased != 5 || out.ErasedCommits == 0 {
		t.Errorf("%d runs with %d commits were erased", out.Erased, out.ErasedCommits)
	}
	t.Log(len(out.Runs), out.Digest)
}

func TestEarlierDatabaseVersionVerifies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"v7.db.gz"} {
		f, err := os.Open(filepath.Join("..", "store", "sqlite", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		path, db := copied(t, data)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		out := verifyDatabase(t, path, audit.Options{})
		for _, f := range out.Findings {
			t.Errorf("%s: %+v", name, f)
		}
		if len(out.Runs) < 30 || out.Unchained != 0 {
			t.Errorf("%s: %d runs, %d commits without links", name, len(out.Runs), out.Unchained)
		}
	}
}

func TestErasedSessionVerifies(t *testing.T) {
	t.Parallel()
	path := archiveDatabase(t)
	before := verifyDatabase(t, path, audit.Options{})
	var kept []audit.KeptHead
	for _, r := range before.Runs {
		kept = append(kept, r.KeptHead)
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := s.DeleteUser(t.Context(), "anna", store.DeleteOptions{Now: time.Now(), Force: true})
	if err != nil || gone.Runs == 0 {
		t.Fatal(gone, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after := verifyDatabase(t, path, audit.Options{Heads: kept, Head: before.Digest})
	if !after.OK || after.Erased != before.Erased+gone.Runs || after.ErasedCommits <= before.ErasedCommits {
		t.Errorf("%d runs erased, %d before: %+v", after.Erased, before.Erased, after.Findings)
	}
	for i, r := range after.Runs {
		if r.Head != before.Runs[i].Head || r.At != r.Commits {
			t.Errorf("run number %d has another head", r.Number)
		}
	}
}

// A connection of the pool remembers the structure of the text index of memory.
func TestAVerificationRepeatedByOneProcessSeesWhatWasRememberedBetween(t *testing.T) {
	t.Parallel()
	k := keptBeside{t, weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "weir.db"))}
	for i := range 4 {
		for range 8 { // each connection of the pool
			r, err := audit.Verify(t.Context(), k.s, audit.Options{})
			if err != nil || !r.OK {
				t.Fatalf("after %d changes: %+v %v", i, r, err)
			}
		}
		k.remember(fmt.Sprint("tea ", i), time.UnixMilli(1_800_000_000_000+int64(i)))
	}
}
