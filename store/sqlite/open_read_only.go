package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-run/weir/store"
)

// OpenReadOnly opens a database for a caller that only reads. It is Open where the
// file and its folder can be written and the disk has room. Elsewhere (a read-only file
// or medium, a full disk, a folder of another user) it opens the file for reading, in
// the first way that works; Note says which. A file of an earlier schema is then read
// through a copy in a temporary folder, which is brought to the present one and removed
// by Close. Calls that write fail with store.ErrReadOnly.
func OpenReadOnly(ctx context.Context, path string, opts Options) (*Store, error) {
	s, err := openFile(ctx, path, opts, migrations())
	if err == nil {
		return s, nil
	}
	if !canOpenReadOnly(wrap("", err)) || ctx.Err() != nil {
		return nil, openError(path, err)
	}
	opts.backup = true
	s, second := openReadOnlyFile(ctx, path, opts)
	if second != nil {
		err, second = withoutPath(err, path), withoutPath(second, path)
		if err.Error() != second.Error() {
			err = fmt.Errorf("%w; for reading only: %w", err, second)
		}
		return nil, openError(path, err)
	}
	if errors.Is(err, store.ErrBackup) {
		s.note = "the database is a backup; it is open for reading only, and `weir store restore` makes a database of it in which runs continue"
	}
	return s, nil
}

// canOpenReadOnly reports whether a database that cannot be opened for writing may still be
// read: not where it is damaged, newer, or another's.
func canOpenReadOnly(err error) bool {
	for _, final := range []error{store.ErrCorrupt, store.ErrNotWeir, store.ErrNewerVersion, store.ErrForeignSchema, fs.ErrNotExist} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}

// openMode is one way to open a file for reading.
type openMode struct {
	query string
	note  string
}

// openModes returns those that may work, the one that asks least of others first.
func openModes(path string) []openMode {
	const locked = "the database cannot be written here; it is open for reading only"
	out := []openMode{{"", locked}}
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return append(out, openMode{
			"&immutable=1", locked + ", without locks: what another process writes meanwhile may be read in part",
		})
	}
	// A log without an index that can be made next to it: the index is kept in memory.
	return append(out, openMode{
		"&vfs=unix-none&_pragma=locking_mode(EXCLUSIVE)",
		locked + ", without locks: what another process writes meanwhile may be read in part",
	})
}

func openReadOnlyFile(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	target, err := newestVersion(migrations())
	if err != nil {
		return nil, err
	}
	if f, err := os.Open(path); err != nil {
		return nil, err // says who may not
	} else if err := f.Close(); err != nil {
		return nil, err
	}
	var errs []error
	for _, w := range openModes(path) {
		s := &Store{path: path, now: opts.Clock, note: w.note, readOnly: true, mode: w.query}
		version, err := s.openWithMode(ctx, w, opts)
		if err != nil {
			errs = append(errs, errors.Join(err, s.closeConnections()))
			continue
		}
		switch {
		case version > target:
			err = checkVersion(version, target)
		case version < target:
			var c *Store
			if c, err = s.openCopy(ctx, w, opts); err == nil {
				return c, s.closeConnections()
			}
		default:
			if err = s.checkReadable(ctx, opts); err == nil {
				return s, nil
			}
		}
		return nil, errors.Join(err, s.closeConnections())
	}
	return nil, errors.Join(errs...)
}

func (s *Store) checkReadable(ctx context.Context, opts Options) error {
	if err := s.stmts.prepare(ctx, s.conn); err != nil || opts.Untrusted {
		return err
	}
	return s.checkViews(ctx, migrations())
}

// openWithMode connects in one way, and returns the version of the schema.
func (s *Store) openWithMode(ctx context.Context, w openMode, opts Options) (int64, error) {
	name := dsn(s.path, []string{"busy_timeout(2000)", "query_only(1)"}) + "&mode=ro" + w.query
	if err := s.connectReadOnly(ctx, name, opts); err != nil {
		return 0, err
	}
	return inspectOpen(ctx, s.reader.DB, maxFullCheck+1, opts)
}

// connectReadOnly opens the readers' pool and, in the place of the writer's, a connection that
// refuses to write.
func (s *Store) connectReadOnly(ctx context.Context, name string, opts Options) error {
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	s.reader = &readerPool{DB: pool}
	n := opts.Readers
	if n == 0 {
		n = 4
	}
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	if s.writer, err = sql.Open("sqlite", name); err != nil {
		return err
	}
	s.conn, err = s.writer.Conn(ctx)
	return err
}

// openCopy brings a copy of the database to the present schema and opens that.
func (s *Store) openCopy(ctx context.Context, w openMode, opts Options) (*Store, error) {
	var errs []error
	for _, parent := range []string{os.TempDir(), "/dev/shm"} {
		dir, err := os.MkdirTemp(parent, "weir-read-*")
		if err == nil {
			var c *Store
			if c, err = s.copyAndUpgrade(ctx, w, dir, opts); err == nil {
				return c, nil
			}
			err = errors.Join(err, os.RemoveAll(dir))
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("it is of an earlier version and cannot be upgraded where it is; reading it takes an upgraded copy, for which TMPDIR must name a folder with room: %w", errors.Join(errs...))
}

func (s *Store) copyAndUpgrade(ctx context.Context, w openMode, dir string, opts Options) (*Store, error) {
	db, err := sql.Open("sqlite", dsn(s.path, []string{"busy_timeout(2000)"})+"&mode=ro"+w.query)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, filepath.Base(s.path))
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", path)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("copy to %s: %w", dir, err)
	}
	if err := setApplicationID(ctx, path, applicationID); err != nil {
		return nil, err
	}
	opts.noBackup = true
	c, err := Open(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	c.readOnly, c.scratch = true, dir
	c.note = s.note + ". It is of an earlier version, and is read through an upgraded copy"
	return c, nil
}

// Note says how a database was opened that cannot be written, "" for one that can.
func (s *Store) Note() string { return s.note }

// removeScratch removes the copy that an earlier version is read through.
func (s *Store) removeScratch() error {
	if s.scratch == "" {
		return nil
	}
	return os.RemoveAll(s.scratch)
}
