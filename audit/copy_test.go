package audit_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
)

func TestACopyHasTheHeadsOfItsSource(t *testing.T) {
	t.Parallel()
	from := weirkit.OpenSQLite(t, archiveDatabase(t))
	to := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "copy.db"))
	steps := 0
	got, err := audit.Copy(t.Context(), from, to, func(done, all int) { steps = done })
	if err != nil {
		t.Fatal(err)
	}
	want, err := audit.Verify(t.Context(), from, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Runs != len(want.Runs)-want.Erased || got.Existing != 0 || steps != len(want.Runs) {
		t.Errorf("%+v after %d steps, of %d runs", got, steps, len(want.Runs))
	}
	compareSessionStates(t, from, to)
	for _, r := range want.Runs {
		if r.Erased {
			continue
		}
		if a, b := weirkit.JournalText(t, to, r.Run), weirkit.JournalText(t, from, r.Run); a != b {
			t.Errorf("run %s has another journal", r.Run)
		}
	}
	again, err := audit.Copy(t.Context(), from, to, nil)
	if err != nil || again.Runs != 0 || again.Existing != got.Runs {
		t.Errorf("again: %+v %v", again, err)
	}
}

func TestASourceInUseIsNotCopied(t *testing.T) {
	t.Parallel()
	from := weirkit.OpenSQLite(t, archiveDatabase(t))
	to := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "copy.db"))
	refused := func(why string) {
		t.Helper()
		if got, err := audit.Copy(t.Context(), from, to, nil); !errors.Is(err, audit.ErrNotIdle) || got.Runs != 0 {
			t.Errorf("%s: %+v %v", why, got, err)
		}
	}
	list, err := from.Sessions(t.Context(), store.SessionFilter{Limit: 1})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := from.Enqueue(t.Context(), store.QueuedMessage{ID: "m", Session: list[0].ID, At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	refused("a message waits")
	if err := from.RemoveQueued(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	if err := from.Create(t.Context(), store.NewRun{ID: "new", Flow: "f", Fingerprint: "f", At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	lease, err := from.Acquire(t.Context(), "new", "someone", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	refused("a run has an owner")
	if err := from.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := from.Post(t.Context(), store.Post{Run: "new", Kind: "cancel", At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	refused("a message waits in an inbox")
}
