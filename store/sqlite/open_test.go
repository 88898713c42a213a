package sqlite

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func TestSQLiteVersionHasNoKnownWALBug(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	var v string
	if err := s.reader.QueryRowContext(t.Context(), "SELECT sqlite_version()").Scan(&v); err != nil {
		t.Fatal(err)
	}
	n := 0
	for part := range strings.SplitSeq(v, ".") {
		p, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(err)
		}
		n = n*1000 + p
	}
	if n < 3_051_003 {
		t.Errorf("SQLite %s: before 3.51.3 resetting the log can corrupt the database", v)
	}
}

func TestANewDatabaseIsPrivateAndDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "weir 100%?#.db")
	s := openAt(t, path, Options{})
	for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s is %v, want %v", file, info.Mode(), want)
		}
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "page_size": strconv.Itoa(defaultPageSize)} {
		var got string
		if err := s.conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", pragma, got, err, want)
		}
	}
	closedSize(t, s)
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(names) != 1 {
		t.Errorf("beside the database: %v (%v)", names, err)
	}
}

func TestAnEmptyFileBecomesADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, path, Options{})
	fill(t, s, "r", 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := commits(t, openAt(t, path, Options{})); n != 3 {
		t.Errorf("%d commits", n)
	}
}

// fill makes a run of n commits.
func fill(tb testing.TB, s *Store, run string, n int) {
	tb.Helper()
	c := newChain(tb, s, run)
	for range n {
		if err := s.Append(tb.Context(), []store.Append{c.next()})[0]; err != nil {
			tb.Fatal(err)
		}
	}
}

func commits(tb testing.TB, s *Store) int {
	tb.Helper()
	n := 0
	for _, err := range s.Commits(tb.Context(), "r", 0) {
		if err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return n
}

// snapshot returns what a folder holds.
func snapshot(tb testing.TB, dir string) string {
	tb.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %x\n", f.Name(), sha256.Sum256(data))
	}
	return b.String()
}

// edited returns a database after a change by other hands.
func edited(t *testing.T, data []byte, query string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edited.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// smashed is data with 2,000 bytes changed.
func smashed(data []byte, at int) []byte {
	b := slices.Clone(data)
	for i := range 2000 {
		b[at+i] ^= 0x5a
	}
	return b
}

func TestOpenRefusesForeignFilesUnchanged(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	for i := range 20 {
		fill(t, s, fmt.Sprint("r", i), 50)
	}
	closedSize(t, s)
	data, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	page := len(data) / 2 / defaultPageSize * defaultPageSize
	cases := []struct {
		name string
		data []byte
		is   error
		says string
	}{
		{"newer", edited(t, data, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"), store.ErrNewerVersion, fmt.Sprint("schema version 99 and this build knows up to ", newest(t))},
		{"another's", edited(t, data, "PRAGMA application_id = 7"), store.ErrNotWeir, "it is not a Weir database: the file is a SQLite database of another program"},
		{"text", []byte(strings.Repeat("not a database\n", 1000)), store.ErrNotWeir, "not a SQLite database"},
		{"short", []byte("SQLite format 3\x00"), store.ErrNotWeir, "not a SQLite database"},
		{"cut off", data[:len(data)/2], store.ErrCorrupt, "its header says"},
		{"first page", smashed(data, 100), store.ErrCorrupt, ""},
		{"in the middle", smashed(data, page), store.ErrCorrupt, ""},
		{"zeroed", slices.Concat(data[:4096], make([]byte, len(data)-4096)), store.ErrCorrupt, ""},
		{"bad page size", slices.Concat(data[:16], []byte{0, 3}, data[18:]), store.ErrCorrupt, "pages have 3 bytes"},
		{"a trigger", edited(t, data, "CREATE TRIGGER foreign_one AFTER INSERT ON flow BEGIN SELECT 1; END"), store.ErrForeignSchema, "foreign_one"},
		{"goose's table is another", edited(t, data, "DROP TABLE goose_db_version; CREATE TABLE goose_db_version (a)"), nil, "version_id"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { refused(t, c.data, c.is, c.says) })
	}
}

// refused opens a file with data in it.
func refused(t *testing.T, data []byte, is error, says string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	s, err := Open(t.Context(), path, Options{})
	if err == nil {
		_ = s.Close()
	}
	if err == nil || is != nil && !errors.Is(err, is) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %v %q", err, is, says)
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("the folder changed from\n%sto\n%s", before, after)
	}
}

// Each connection parses the whole schema, which is most of what opening takes.
func TestAProcessThatOnlyStartsARunOpensOneConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	closedSize(t, openAt(t, path, Options{}))
	s := openCurrent(t.Context(), path, newest(t), migrations(), Options{})
	if s == nil {
		t.Fatal("a closed database of this version is inspected over a connection of its own")
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.PutFlow(t.Context(), "f", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	fill(t, s, "r", 3)
	if writer, readers := s.writer.Stats().OpenConnections, s.reader.Stats().OpenConnections; writer != 1 || readers != 0 {
		t.Errorf("opening, keeping a flow and writing a run took %d connections of the writer and %d of readers, want 1 and 0", writer, readers)
	}
	if n := commits(t, s); n != 3 || s.reader.Stats().OpenConnections != 1 {
		t.Errorf("reading %d commits took %d connections of readers, want 3 and 1", n, s.reader.Stats().OpenConnections)
	}
}

func TestOpenRefusesAFolder(t *testing.T) {
	if _, err := Open(t.Context(), t.TempDir(), Options{}); !errors.Is(err, store.ErrNotWeir) {
		t.Errorf("got %v", err)
	}
}

// newest returns the version of the schema that this build writes.
func newest(t *testing.T) int64 {
	t.Helper()
	v, err := newestVersion(migrations())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAnOlderDatabaseIsUpgradedAfterABackup(t *testing.T) {
	older, was := fstest.MapFS{}, newest(t)
	files, err := fs.ReadDir(migrations(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := fs.ReadFile(migrations(), f.Name())
		if err != nil {
			t.Fatal(err)
		}
		older[f.Name()] = &fstest.MapFile{Data: data}
	}
	bad := fmt.Sprintf("%05d_bad.sql", was+2)
	newer := maps.Clone(older)
	newer[fmt.Sprintf("%05d_more.sql", was+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE more (a);\n")}
	newer[bad] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE run (a);\n")}
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.db")
	s, err := open(t.Context(), path, Options{}, older)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "r", 5)
	closedSize(t, s)

	if _, err := open(t.Context(), path, Options{}, newer); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("upgrade from version %d to %d", was, was+2)) {
		t.Fatalf("a migration that fails: %v", err)
	}
	delete(newer, bad)
	s, err = open(t.Context(), path, Options{}, newer)
	if err != nil {
		t.Fatal(err)
	}
	if n := commits(t, s); n != 5 {
		t.Errorf("%d commits after the upgrade", n)
	}
	fill(t, s, "after", 2)
	closedSize(t, s)
	if _, err := open(t.Context(), path, Options{}, older); !errors.Is(err, store.ErrNewerVersion) {
		t.Errorf("the older build: %v", err)
	}

	backup, err := open(t.Context(), fmt.Sprintf("%s.v%d.backup", path, was), Options{}, older)
	if err != nil {
		t.Fatal(err)
	}
	if n := commits(t, backup); n != 5 {
		t.Errorf("%d commits in the backup", n)
	}
	if info, err := os.Stat(backup.path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup is %v (%v)", info.Mode(), err)
	}
	closedSize(t, backup)
}

func TestFullDiskLosesNothingAndReadsContinue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	s := openAt(t, path, Options{maxPages: 100})
	fullDisk(t, s, path)
}

// smallFileSystem mounts one of a size such as 1m, and returns its folder.
func smallFileSystem(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	mount := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size="+size, "weir-test", dir)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("needs the right to mount a small file system: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() }) // the test's context has ended by then
	return dir
}

func TestOpenFailsWithoutRoomForADatabase(t *testing.T) {
	for _, size := range []string{"40k", "100k", "160k", "200k", "240k", "280k", "400k"} {
		path := filepath.Join(smallFileSystem(t, size), "weir.db")
		s, err := Open(t.Context(), path, Options{})
		if err == nil {
			err = s.Close()
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("%s: %v", size, err)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind are %v (%v)", size, left, err)
		}
	}
}

func TestFullFileSystemLosesNothingAndReadsContinue(t *testing.T) {
	path := filepath.Join(smallFileSystem(t, "1m"), "weir.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	fullDisk(t, s, path)
}

// fullDisk appends until there is no room, and then some more.
func fullDisk(t *testing.T, s *Store, path string) {
	t.Helper()
	c := newChain(t, s, "r")
	var failed error
	kept := 0
	for failed == nil && kept < 5000 {
		a := c.next()
		a.Commit.Events = append(a.Commit.Events, &engine.EffectCompleted{Key: "k", Result: strings.Repeat(fmt.Sprint(c.seq, " "), 500)})
		a.Commit.First = 3*c.seq - 2
		if failed = s.Append(t.Context(), []store.Append{a})[0]; failed == nil {
			kept++
		}
	}
	if !errors.Is(failed, store.ErrFull) || kept < 5 {
		t.Fatalf("after %d commits: %v", kept, failed)
	}
	for range 3 {
		if n := commits(t, s); n != kept {
			t.Fatalf("%d commits of %d can be read", n, kept)
		}
		bad := chain{run: "r", fence: c.fence, seq: int64(kept)}
		a := bad.next()
		a.Commit.First = 3*bad.seq - 2
		a.Commit.Events = append(a.Commit.Events, &engine.EffectCompleted{Key: "k", Result: strings.Repeat("again", 1<<20)})
		if err := s.Append(t.Context(), []store.Append{a})[0]; !errors.Is(err, store.ErrFull) {
			t.Fatalf("once more: %v", err)
		}
	}
	if _, err := s.Run(t.Context(), "r"); err != nil {
		t.Error(err)
	}
	// Read it as another process would.
	other, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := other.QueryRowContext(t.Context(), "SELECT count(*) FROM run_commit").Scan(&n); err != nil || n != kept {
		t.Errorf("another reader sees %d of %d (%v)", n, kept, err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

func TestTwoStoresShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	a, b := openAt(t, path, Options{}), openAt(t, path, Options{})
	ca, cb := newChain(t, a, "a"), newChain(t, b, "b")
	done := make(chan error)
	work := func(s *Store, c *chain) {
		var errs []error
		for i := range 60 {
			x := c.next()
			x.Commit.Events = append(x.Commit.Events, &engine.EffectCompleted{Key: "k", Result: fmt.Sprintf("a text of %s, number %d, long enough to be shared", c.run, i)})
			x.Commit.First = 3*c.seq - 2
			errs = append(errs, s.Append(t.Context(), []store.Append{x})...)
		}
		done <- errors.Join(errs...)
	}
	go work(a, ca)
	go work(b, cb)
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*Store{a, b} {
		for _, run := range []string{"a", "b"} {
			sharedTexts(t, s, run)
		}
	}
	if _, err := b.Acquire(t.Context(), "a", "you", time.Hour); !errors.Is(err, store.ErrOwned) {
		t.Errorf("the other's run: %v", err)
	}
}

func sharedTexts(t *testing.T, s *Store, run string) {
	t.Helper()
	i := 0
	for c, err := range s.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("a text of %s, number %d, long enough to be shared", run, i)
		if got := c.Events[2].(*engine.EffectCompleted).Result; got != want {
			t.Fatalf("commit %d of %s holds %v", c.Seq, run, got)
		}
		i++
	}
	if i != 60 {
		t.Errorf("%d commits of %s", i, run)
	}
}

func TestConcurrentOpensBehaveLikeSequentialOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	const n = 6
	errs := make(chan error, n)
	for i := range n {
		go func() {
			s, err := Open(t.Context(), path, Options{})
			if err == nil {
				err = errors.Join(s.Create(t.Context(), store.NewRun{ID: fmt.Sprint("r", i), At: time.UnixMilli(1)}), s.Close())
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	s := openAt(t, path, Options{})
	if ids, err := s.FindRunIDs(t.Context(), "r"); err != nil || len(ids) != n {
		t.Errorf("runs %v (%v)", ids, err)
	}
}
