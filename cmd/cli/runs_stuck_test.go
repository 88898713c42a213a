package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// stuckDatabase has two runs that ask: "waits", and "stuck" with an answer in its inbox that no process applies. Both rest
// since an hour.
func stuckDatabase(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("ask.yaml", []byte("weir: 1\nname: ask\nnodes: {ask: {type: userInput, with: {prompt: Go?}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"waits", "stuck"} {
		r, err := w.Start(t.Context(), f, weir.Start{ID: id, User: "ada"})
		if err == nil {
			_, err = r.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s, err = sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil {
		err = s.Post(t.Context(), store.Post{Run: "stuck", Kind: "answer", Name: "ask:ask#1", Value: "yes", At: time.Now()})
	}
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		err = startedEarlier(t.Context(), path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// startedEarlier makes all runs of a database an hour older.
func startedEarlier(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE run_row SET created = created - 3600000")
	return errors.Join(err, db.Close())
}

func TestStuckRunsAreListedAndNotedByDoctor(t *testing.T) {
	t.Parallel()
	db := stuckDatabase(t)
	var list []stuckRow
	code, out, errs := inProcess(t, db, "runs --stuck --json")
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list) != 1 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	r := list[0]
	if r.Run != "stuck" || r.Reason != "no_process" || r.User != "ada" || !strings.Contains(r.Why, "inbox") || !strings.Contains(r.Next, "weir resume stuck") || time.Since(r.Since) < 50*time.Minute {
		t.Errorf("%+v", r)
	}
	for line, want := range map[string]bool{
		"runs --stuck": true, "runs --stuck --flow ask --user ada": true, "runs --stuck --idle 30m": true,
		"runs --stuck --idle 2h": false, "runs --stuck --flow other": false, "runs --stuck --user bob": false,
	} {
		if code, out, errs := inProcess(t, db, line); code != 0 || strings.Contains(out, "no_process") != want || strings.Contains(out, "waits") && want == false {
			t.Errorf("weir %s: exit %d\n%s%s", line, code, out, errs)
		}
	}
	for _, line := range []string{"runs --stuck --blocked", "runs --stuck --all", "runs --stuck --status paused", "runs --stuck --parent waits", "runs --stuck --idle -1s"} {
		if code, _, errs := inProcess(t, db, line); code != exitUsage {
			t.Errorf("weir %s: exit %d\n%s", line, code, errs)
		}
	}
	if code, out, errs := inProcess(t, db, "doctor --offline"); code != 0 || !strings.Contains(out, "1 run that nothing advances, such as stuck") || !strings.Contains(out, "runs --stuck") {
		t.Errorf("weir doctor: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := inProcess(t, db, "cancel stuck"); code != 0 {
		t.Fatalf("weir cancel: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := inProcess(t, db, "runs --stuck --idle 0s"); code != 0 || strings.Contains(out, "stuck") {
		t.Errorf("after its end: exit %d\n%s%s", code, out, errs)
	}
	if _, out, _ := inProcess(t, db, "doctor --offline"); !strings.Contains(out, "none is stuck") {
		t.Errorf("weir doctor after its end: %s", out)
	}
}

func TestAStuckMessageOfASessionIsListedAndNotedByDoctor(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), db, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hourAgo := time.Now().Add(-time.Hour)
	err = s.CreateSession(t.Context(), store.NewSession{ID: "talk1", User: "ada", Flow: "talk", Now: hourAgo})
	if err == nil {
		_, err = s.Enqueue(t.Context(), store.QueuedMessage{ID: "m1", Session: "talk1", Value: "hello", At: hourAgo})
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []stuckRow
	code, out, errs := inProcess(t, db, "runs --stuck --json")
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list) != 1 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if r := list[0]; r.Run != "" || r.Session != "talk1" || r.Message != "m1" || r.Reason != "message_waiting" || r.User != "ada" || !strings.Contains(r.Next, "weir sessions unqueue m1") {
		t.Errorf("%+v", r)
	}
	if code, out, errs := inProcess(t, db, "runs --stuck"); code != 0 || !strings.Contains(out, "session talk1") || !strings.Contains(errs, "weir serve") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := inProcess(t, db, "doctor --offline"); code != 0 || !strings.Contains(out, "1 session that nothing advances, such as session talk1") {
		t.Errorf("weir doctor: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := inProcess(t, db, "sessions unqueue m1"); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := inProcess(t, db, "runs --stuck --idle 0s"); code != 0 || strings.Contains(out, "talk1") {
		t.Errorf("without the message: exit %d\n%s%s", code, out, errs)
	}
}
