package sqlite

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// commitsOf returns the commits of the run r.
func commitsOf(t *testing.T, s *Store) (list []engine.Commit) {
	t.Helper()
	for c, err := range s.Commits(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// TestBackupDuringWritesIsComplete: a backup has every commit that was acknowledged before it,
// and none in part, while a process writes.
func TestBackupDuringWritesIsComplete(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "weir.db"), Options{})
	c, stop, ended := newChain(t, s, "r"), make(chan struct{}), make(chan int)
	acknowledged := make(chan int, 1)
	go func() {
		n := 0
		for {
			if err := s.Append(t.Context(), []store.Append{c.next()})[0]; err != nil {
				t.Error(err)
			}
			n++
			select {
			case acknowledged <- n:
			case <-stop:
				ended <- n
				return
			default:
			}
		}
	}()
	for i := range 5 {
		least, path := <-acknowledged, filepath.Join(dir, string(rune('a'+i)), "backup.db")
		if err := s.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		b, err := OpenReadOnly(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(commitsOf(t, b)); got < least {
			t.Errorf("backup %d has %d commits, and %d were acknowledged before", i, got, least)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	want := <-ended
	if got := len(commitsOf(t, s)); got != want {
		t.Errorf("the database has %d commits, want %d", got, want)
	}
}

// TestRestoreFencesEarlierOwners: nothing runs in a backup; in what is made of it, no owner of
// before writes, and a new one does.
func TestRestoreFencesEarlierOwners(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "weir.db"), Options{})
	c := newChain(t, s, "r")
	if err := s.Append(t.Context(), []store.Append{c.next()})[0]; err != nil {
		t.Fatal(err)
	}
	backup, restored := filepath.Join(dir, "backup.db"), filepath.Join(dir, "restored.db")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), backup, Options{}); !errors.Is(err, store.ErrBackup) {
		t.Errorf("Open of a backup: %v", err)
	}
	b, err := OpenReadOnly(t.Context(), backup, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context(), "r", "other", time.Hour); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Acquire in a backup: %v", err)
	}
	again := filepath.Join(dir, "again.db")
	if err := errors.Join(b.Backup(t.Context(), again), b.Close()); err != nil {
		t.Error("backup of a backup:", err)
	}
	got, err := Restore(t.Context(), backup, restored, Options{})
	if err != nil || got.Runs != 1 || got.Sessions != 0 || got.Unfinished != 1 || got.Newest.IsZero() {
		t.Fatalf("restored %+v, %v", got, err)
	}
	r := openAt(t, restored, Options{})
	if err := r.Append(t.Context(), []store.Append{c.next()})[0]; !errors.Is(err, store.ErrFenced) {
		t.Errorf("a commit of the owner before: %v", err)
	}
	c.seq--
	l, err := r.Acquire(t.Context(), "r", "new", time.Hour)
	if err != nil || l.Fence <= c.fence {
		t.Fatalf("Acquire: %+v, %v; the fence was %d", l, err, c.fence)
	}
	if want, got := commitsOf(t, s), commitsOf(t, r); len(got) != len(want) {
		t.Errorf("%d commits were restored, want %d", len(got), len(want))
	}
}

// TestUnusableBackupsLeaveNoFile enumerates what cannot be restored or backed up to.
func TestUnusableBackupsLeaveNoFile(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "weir.db"), Options{})
	newChain(t, s, "r")
	backup := filepath.Join(dir, "backup.db")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), backup); !errors.Is(err, fs.ErrExist) {
		t.Errorf("backup to a file that is there: %v", err)
	}
	if now, _ := os.ReadFile(backup); !bytes.Equal(now, data) {
		t.Error("the file that was there has changed")
	}
	damaged := bytes.Clone(data)
	for i := 4096; i < len(damaged); i += 3 {
		damaged[i] ^= 0x5a
	}
	for what, c := range map[string]struct {
		content []byte
		is      error
	}{
		"cut": {data[:len(data)/2], store.ErrCorrupt}, "damaged": {damaged, store.ErrCorrupt}, "empty": {nil, store.ErrNotWeir}, "text": {[]byte("weir: 1\nname: no\n"), store.ErrNotWeir},
	} {
		bad, target := filepath.Join(dir, what), filepath.Join(dir, what+".db")
		if err := os.WriteFile(bad, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), bad, target, Options{}); !errors.Is(err, c.is) {
			t.Errorf("restore of a file that is %s: %v", what, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*"+what+".db*")); len(left) > 0 {
			t.Errorf("restore of a file that is %s left %v", what, left)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("files were left: %v", left)
	}
}
