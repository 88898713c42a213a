package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

type listedBackups struct {
	Backups []struct {
		File  string
		Bytes int64
	}
	LastError string
	Next      *time.Time
}

func TestABackupIsWrittenToTheConfiguredFolderAndCanBeRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "backups")
	p := openProcess(t, dir, server.Options{RequireToken: true, Backups: server.Backups{Folder: folder, Keep: 2}})
	root, ada := p.client("root", server.Admin), p.anyone("ada")
	o := makeObjects(t, ada)
	var made []string
	for range 3 {
		b := decode[struct {
			File  string
			Bytes int64
		}](p, root, http.MethodPost, "/v1/backup", "")
		if b.File == "" || b.Bytes == 0 || filepath.Base(b.File) != b.File {
			t.Fatalf("%+v", b)
		}
		made = append(made, b.File)
	}
	if err := os.WriteFile(filepath.Join(folder, "weir-other.db"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := decode[listedBackups](p, root, http.MethodGet, "/v1/backups", "")
	if len(got.Backups) != 2 || got.Backups[0].File != made[2] || got.Backups[1].File != made[1] || got.Next != nil {
		t.Errorf("%+v, made %v", got, made)
	}
	if _, err := os.Stat(filepath.Join(folder, made[0])); !os.IsNotExist(err) {
		t.Errorf("the oldest backup is still there: %v", err)
	}
	restored := filepath.Join(dir, "restored.db")
	if r, err := sqlite.Restore(t.Context(), filepath.Join(folder, made[2]), restored, sqlite.Options{}); err != nil || r.Sessions != 1 || r.Runs < 2 {
		t.Fatalf("%+v %v", r, err)
	}
	s, err := sqlite.Open(t.Context(), restored, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run(t.Context(), o.run); err != nil || r.User != "ada" {
		t.Errorf("%+v %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := p.send(http.MethodPost, "/v1/backup", `{"folder":"/tmp"}`, withToken(root.Token)); got.status == http.StatusCreated && strings.Contains(got.body, "/tmp") {
		t.Errorf("a request names a folder: %d %s", got.status, got.body)
	}
}

// TestANewBackupStaysWhenTheClockWasSetBack has backups with later times in the folder.
func TestANewBackupStaysWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"weir-29990101T000000.000Z.db", "weir-29990102T000000.000Z.db"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for keep := range 3 {
		p := openProcess(t, t.TempDir(), server.Options{Backups: server.Backups{Folder: folder, Keep: keep}})
		made := decode[struct{ File string }](p, &client.Client{}, http.MethodPost, "/v1/backup", "").File
		list, err := os.ReadDir(folder)
		want := []int{3, 1, 2}[keep]
		if err != nil || len(list) != want || !slices.ContainsFunc(list, func(e os.DirEntry) bool { return e.Name() == made }) {
			t.Errorf("keep %d, made %s: %v, %v", keep, made, list, err)
		}
	}
}

func TestAServerWithoutAFolderMakesNoBackups(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	for _, path := range []string{"POST /v1/backup", "GET /v1/backups"} {
		method, path, _ := strings.Cut(path, " ")
		if got := p.send(method, path, "", nil); got.status != http.StatusConflict || got.problem() != "status_conflict" || !strings.Contains(got.body, "server.backup.folder") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	p.app.Backup = nil // as with PostgreSQL
	scheduled := server.Options{App: p.app, Backups: server.Backups{Folder: t.TempDir(), Every: time.Hour}}
	if _, err := server.New(t.Context(), scheduled); err == nil || !strings.Contains(err.Error(), "server.backup.every") {
		t.Errorf("a schedule without effect: %v", err)
	}
	if got := p.send(http.MethodPost, "/v1/backup", "", nil); got.status != http.StatusNotImplemented || got.problem() != "store_unsupported" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// waitUntil waits for a condition, for a minute at most.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited a minute until " + what)
		}
	}
}

func TestBackupsAreMadeOnScheduleAndRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "backups")
	p := openProcess(t, dir, server.Options{Sweep: 10 * time.Millisecond, Backups: server.Backups{Folder: folder, Every: time.Millisecond, Keep: 1}})
	root := &client.Client{}
	waitUntil(t, "two backups are recorded", func() bool { return len(audited(p, root, "action=scheduled&outcome=ok")) >= 2 })
	if got := audited(p, root, "action=scheduled")[0]; got.Via != "schedule" || !strings.HasPrefix(got.Objects["made"], "weir-") {
		t.Errorf("%+v", got)
	}
}

func TestAFailedScheduledBackupIsRecordedAndListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "backups")
	if err := os.WriteFile(folder, []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := openProcess(t, dir, server.Options{Sweep: 10 * time.Millisecond, Backups: server.Backups{Folder: folder, Every: time.Millisecond}})
	root := &client.Client{}
	waitUntil(t, "a backup has failed", func() bool { return len(audited(p, root, "action=scheduled&outcome=failed")) > 0 })
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the next one is made", func() bool { return len(audited(p, root, "action=scheduled&outcome=ok")) > 0 })
}

func TestRetentionShowsFirstAndThenDeletesWhatIsOldAndEnded(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, Sweep: 10 * time.Millisecond})
	root, ada := p.client("root", server.Admin), p.anyone("ada")
	o := makeObjects(t, ada) // a run that waits, and a session with a round
	start := func(flow string) string {
		t.Helper()
		r, err := ada.StartRun(t.Context(), client.Start{Flow: flow, Inputs: map[string]any{"message": "x"}, Wait: 60})
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	completed, other := start("talk"), start("talk")
	failed := decode[client.Run](p, ada, http.MethodPost, "/v1/runs?wait=60", `{"flow":"fails"}`).ID
	fork := decode[client.Run](p, ada, http.MethodPost, "/v1/runs/"+completed+"/fork?wait=60", `{"from":"answer"}`).ID
	type preview struct {
		Confirmation string
		Done         bool
		Runs         []string
		Kept         []struct{ Run string }
	}
	put := func(name, body string) preview {
		t.Helper()
		return decode[preview](p, root, http.MethodPut, "/v1/retention/"+name, body)
	}
	var all preview
	waitUntil(t, "the runs are old enough", func() bool {
		all = put("all", `{"of":"runs","olderThan":1}`)
		return len(all.Runs)+len(all.Kept) >= 4
	})
	got := slices.Sorted(slices.Values(all.Runs))
	want := slices.Sorted(slices.Values([]string{failed, fork, other}))
	if all.Done || !slices.Equal(got, want) || len(all.Kept) != 1 || all.Kept[0].Run != completed {
		t.Errorf("preview: %+v, not %v and %s", all, want, completed)
	}
	if list := decode[struct{ Policies []any }](p, root, http.MethodGet, "/v1/retention", ""); len(list.Policies) != 0 {
		t.Errorf("a preview is in force: %+v", list)
	}
	exists := func(id string) bool {
		return p.send(http.MethodGet, "/v1/runs/"+id, "", withToken(ada.Token)).status == http.StatusOK
	}
	failing := put("failed", `{"of":"runs","flow":"fails","status":["failed"],"olderThan":1}`)
	if !slices.Equal(failing.Runs, []string{failed}) {
		t.Errorf("%+v", failing)
	}
	if in := put("failed", `{"of":"runs","flow":"fails","status":["failed"],"olderThan":2,"confirm":"`+failing.Confirmation+`"}`); in.Done {
		t.Error("the confirmation is good for another policy")
	}
	if in := put("failed", `{"of":"runs","flow":"fails","status":["failed"],"olderThan":1,"confirm":"`+failing.Confirmation+`"}`); !in.Done {
		t.Errorf("%+v", in)
	}
	waitUntil(t, "the failed run is deleted", func() bool { return !exists(failed) })
	for _, id := range []string{completed, other, fork, o.run} {
		if !exists(id) {
			t.Errorf("the run %s was deleted", id)
		}
	}
	waitUntil(t, "the deletion is recorded", func() bool {
		return len(audited(p, root, "action=apply&outcome=ok")) == 1
	})
	if got := audited(p, root, "action=apply")[0]; got.Via != "schedule" || fmt.Sprint(got.Objects) != fmt.Sprint(map[string]string{"policy": "failed", "runs": failed}) {
		t.Errorf("%+v", got)
	}
	checkSessionRetention(t, p, root, o.session)
	for _, bad := range []string{`{"of":"runs"}`, `{"of":"runs","olderThan":0}`, `{"of":"runs","olderThan":1,"status":["running"]}`, `{"of":"sessions","olderThan":1,"status":["failed"]}`, `{"of":"users","olderThan":1}`} {
		if got := p.send(http.MethodPut, "/v1/retention/bad", bad, withToken(root.Token)); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", bad, got.status, got.body)
		}
	}
}

// checkSessionRetention has old sessions deleted, and removes the policies.
func checkSessionRetention(t *testing.T, p *process, root *client.Client, session string) {
	t.Helper()
	var seen struct {
		Confirmation string
		Sessions     int
	}
	waitUntil(t, "the session is old enough", func() bool {
		seen = decode[struct {
			Confirmation string
			Sessions     int
		}](p, root, http.MethodPut, "/v1/retention/sessions", `{"of":"sessions","flow":"talk","olderThan":1}`)
		return seen.Sessions == 1
	})
	p.send(http.MethodPut, "/v1/retention/sessions", `{"of":"sessions","flow":"talk","olderThan":1,"confirm":"`+seen.Confirmation+`"}`, withToken(root.Token))
	waitUntil(t, "the session is deleted", func() bool {
		return p.send(http.MethodGet, "/v1/sessions/"+session, "", withToken(root.Token)).status == http.StatusNotFound
	})
	for _, name := range []string{"failed", "sessions"} {
		if got := p.send(http.MethodDelete, "/v1/retention/"+name, "", withToken(root.Token)); got.status >= 300 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if docs, err := p.app.Store.Documents(t.Context(), store.DocumentFilter{Kind: "retention"}); err != nil || len(docs) != 0 {
		t.Errorf("%+v %v", docs, err)
	}
}
