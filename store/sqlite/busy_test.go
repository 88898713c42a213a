package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
)

// A write that waits for another process tries often, so that it does not miss the moments between that one's commits.
func TestAWriteThatWaitsTriesUntilTheLockIsFree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	holder, waiter := openAt(t, path, Options{}), openAt(t, path, Options{})
	if err := holder.beginTx(t.Context()); err != nil {
		t.Fatal(err)
	}
	const enough = 30
	tries := 0
	err := waiter.waitForTurn(t.Context(), func() error {
		if tries++; tries == enough {
			if err := holder.endTx(nil); err != nil {
				return err
			}
		}
		_, err := waiter.stmts.begin.ExecContext(t.Context())
		return err
	})
	if err != nil || tries < enough {
		t.Fatalf("%v after %d tries", err, tries)
	}
	if err := waiter.endTx(nil); err != nil {
		t.Fatal(err)
	}
}

// No process waits longer than its options say, in a transaction and in a single statement.
func TestAWriteGivesUpAfterItsBusyTimeout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	holder, waiter := openAt(t, path, Options{}), openAt(t, path, Options{BusyTimeout: 20 * time.Millisecond})
	if err := holder.beginTx(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := waiter.Create(t.Context(), store.NewRun{ID: "r", At: time.Now()}); !isBusy(err) {
		t.Errorf("a transaction: %v", err)
	}
	if err := waiter.PutFlow(t.Context(), "f", []byte("{}")); !isBusy(err) {
		t.Errorf("a statement: %v", err)
	}
	other := errors.New("other")
	if err := waiter.waitForTurn(t.Context(), func() error { return other }); !errors.Is(err, other) {
		t.Errorf("another error: %v", err)
	}
	if err := holder.endTx(nil); err != nil {
		t.Fatal(err)
	}
	if err := waiter.PutFlow(t.Context(), "f", []byte("{}")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
