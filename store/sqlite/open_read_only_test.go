package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
)

// Which folders there are: each is made writable, filled, and then shut.
type folder struct {
	name string
	shut bool // nothing can be made in it
	// make gives a folder, and what shuts it.
	make func(t *testing.T) (dir string, shut func())
}

func folders() []folder {
	return []folder{
		{"a read-only file", false, func(t *testing.T) (string, func()) {
			t.Helper()
			dir := t.TempDir()
			return dir, func() {
				needUser(t)
				chmod(t, filepath.Join(dir, "weir.db"), 0o400)
			}
		}},
		{"a read-only folder", true, func(t *testing.T) (string, func()) {
			t.Helper()
			dir := t.TempDir()
			return dir, func() {
				needUser(t)
				chmod(t, filepath.Join(dir, "weir.db"), 0o400)
				chmod(t, dir, 0o500)
				t.Cleanup(func() { chmod(t, dir, 0o700) })
			}
		}},
		{"a read-only medium", true, func(t *testing.T) (string, func()) {
			t.Helper()
			dir := medium(t, "size=16m")
			return dir, func() { mount(t, "-o", "remount,ro", dir) }
		}},
		{"a full disk", false, func(t *testing.T) (string, func()) {
			t.Helper()
			dir := medium(t, "size=2m")
			return dir, func() {
				f, err := os.Create(filepath.Join(dir, "filler"))
				if err != nil {
					t.Fatal(err)
				}
				for room := make([]byte, 4096); err == nil; {
					_, err = f.Write(room)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}},
	}
}

func needUser(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("permissions do not bind root")
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// medium returns a file system of its own, which only root can make.
func medium(t *testing.T, options string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	dir := t.TempDir()
	mount(t, "-t", "tmpfs", "-o", options, "tmpfs", dir)
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

func mount(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "mount", args...).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
}

// left is what a database is left like by its last writer.
type left struct {
	name string
	old  bool // of an earlier schema
	// keep reports whether a file next to the database stays.
	keep map[string]bool
	live bool // its writer is there still
}

func TestOpenReadOnlyReadsUnwritableDatabases(t *testing.T) {
	for _, f := range folders() {
		for _, l := range []left{
			{name: "closed"},
			{name: "with a log", keep: map[string]bool{"-wal": true}},
			{name: "with a log and its index", keep: map[string]bool{"-wal": true, "-shm": true}},
			{name: "with a live writer", live: true},
			{name: "of an earlier schema", old: true},
			{name: "of an earlier schema, with a log", old: true, keep: map[string]bool{"-wal": true}},
		} {
			t.Run(f.name+", "+l.name, func(t *testing.T) {
				dir, shut := f.make(t)
				prepareDatabase(t, filepath.Join(dir, "weir.db"), l)
				shut()
				readOnlyIn(t, dir, f.shut, l)
			})
		}
	}
}

// readOnlyIn reads a database for reading only, in a folder that may be shut to writers.
func readOnlyIn(t *testing.T, dir string, isShut bool, l left) {
	t.Helper()
	path := filepath.Join(dir, "weir.db")
	before := snapshot(t, dir)
	s, err := OpenReadOnly(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	readsAll(t, s, l)
	backsUp(t, s)
	if isShut && !l.live && !l.keep["-shm"] { // with an index, it is the first write that fails
		opensForReadingOnly(t, path)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after := snapshot(t, dir); after != before && !l.live && isShut {
		t.Errorf("reading changed the folder:\n%s\n%s", before, after)
	}
}

// prepareDatabase makes a database with the run r of 3 commits, the last of which may be in its
// log alone.
func prepareDatabase(t *testing.T, path string, l left) {
	t.Helper()
	writing := path
	if len(l.keep) > 0 {
		writing = filepath.Join(t.TempDir(), "weir.db")
	}
	if l.old {
		dump(t, writing, "testdata/v3.sql")
		if len(l.keep) > 0 {
			logged(t, writing, path)
		}
		return
	}
	s, err := Open(t.Context(), writing, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "r", 3)
	if l.live {
		t.Cleanup(func() { _ = s.Close() })
		return
	}
	if len(l.keep) == 0 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if suffix == "" || l.keep[suffix] {
			copyFile(t, writing+suffix, path+suffix)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// logged copies a database with a change that is in its log alone.
func logged(t *testing.T, from, to string) {
	t.Helper()
	db, err := sql.Open("sqlite", from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE run SET fence = fence + 1"); err != nil {
		t.Fatal(err)
	}
	copyFile(t, from, to)
	copyFile(t, from+"-wal", to+"-wal")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readsAll(t *testing.T, s *Store, l left) {
	t.Helper()
	runs, err := s.Runs(t.Context(), store.Filter{})
	if err != nil || len(runs) == 0 {
		t.Fatal(len(runs), err)
	}
	if !l.old && commits(t, s) != 3 {
		t.Errorf("%d commits", commits(t, s))
	}
	for _, r := range runs {
		for _, err := range s.Commits(t.Context(), r.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.AuditAll(t.Context()); err != nil {
		t.Error(err)
	}
	if s.Note() == "" {
		return // it can be written after all
	}
	for what, err := range map[string]error{
		"create": s.Create(t.Context(), store.NewRun{ID: "new", At: time.Now()}),
		"append": s.Append(t.Context(), []store.Append{{}})[0],
		"prune":  func() error { _, err := s.PruneSessions(t.Context(), store.PruneOptions{Now: time.Now()}); return err }(),
		"delete": func() error {
			_, err := s.DeleteRun(t.Context(), runs[0].ID, store.DeleteOptions{Now: time.Now()})
			return err
		}(),
	} {
		if !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func opensForReadingOnly(t *testing.T, path string) {
	t.Helper()
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("opening it for writing: %v", err)
	}
}

// backsUp makes a copy elsewhere of a database that cannot be written.
func backsUp(t *testing.T, s *Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(t.Context(), path); err != nil {
		t.Error(err)
		return
	}
	c, err := OpenReadOnly(t.Context(), path, Options{})
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close() //nolint:errcheck // it only read
	want, err := s.Runs(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Runs(t.Context(), store.Filter{}); err != nil || len(got) != len(want) {
		t.Errorf("the backup has %d runs of %d, %v", len(got), len(want), err)
	}
}

func TestOpenReadOnlyNamesUnreadableDatabase(t *testing.T) {
	needUser(t)
	path := filepath.Join(t.TempDir(), "weir.db")
	prepareDatabase(t, path, left{})
	chmod(t, path, 0)
	_, err := OpenReadOnly(t.Context(), path, Options{})
	if !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

func TestOpenReadOnlyRefusesForeignDatabases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	for what, want := range map[string]error{"none": fs.ErrNotExist, "text": store.ErrNotWeir} {
		if what == "text" {
			if err := os.WriteFile(path, []byte(fmt.Sprintf("%0200d", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := OpenReadOnly(t.Context(), path, Options{}); what == "text" && !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
		_ = os.Remove(path)
	}
}
