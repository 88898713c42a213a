package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"

	"github.com/weir-run/weir/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

func migrations() fs.FS {
	sub, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

const defaultPageSize = 4096 // bytes; measured in size_test.go

func open(ctx context.Context, path string, opts Options, migrations fs.FS) (*Store, error) {
	s, err := openFile(ctx, path, opts, migrations)
	if err != nil {
		return nil, openError(path, err)
	}
	return s, nil
}

// openError names the database that cannot be opened, once. A file that can be read and not opened cannot be written:
// the files of its log cannot be made.
func openError(path string, err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == codeCantOpen {
		if f, unreadable := os.Open(path); unreadable == nil {
			err = errors.Join(fmt.Errorf("%w (%w)", store.ErrReadOnly, err), f.Close())
		}
	}
	return wrap("open database "+path, withoutPath(err, path))
}

// withoutPath returns the cause of an error of the file system about path, and any other error as it is.
func withoutPath(err error, path string) error {
	if p, ok := err.(*fs.PathError); ok && p.Path == path { //nolint:errorlint // a wrapped one says more
		return p.Err
	}
	return err
}

func openFile(ctx context.Context, path string, opts Options, migrations fs.FS) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	target, err := newestVersion(migrations)
	if err != nil {
		return nil, err
	}
	if s := openCurrent(ctx, path, target, migrations, opts); s != nil {
		return s, nil
	}
	version, err := inspect(ctx, path, target, opts)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		version, err = target, create(ctx, path, opts, migrations)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, now: opts.Clock, sync: opts.Sync}
	if err := s.connect(ctx, opts); err != nil {
		return nil, errors.Join(err, s.closeConnections())
	}
	if version < target {
		if err := s.upgrade(ctx, version, target, migrations, !opts.noBackup); err != nil {
			return nil, errors.Join(err, s.closeConnections())
		}
	}
	if err := s.prepare(ctx, target, migrations, opts); err != nil {
		return nil, errors.Join(err, s.closeConnections())
	}
	return s, nil
}

// openCurrent opens a database whose header says that it is Weir's and complete, that no process uses and that needs no upgrade.
// This is the common case. What inspect checks over a connection of its own is then checked over that of the writer: each connection parses the
// whole schema, which takes longer than all else that opening does. It returns nil for any other file, which inspect explains.
// Until a transaction, the connection changes nothing in the file.
func openCurrent(ctx context.Context, path string, target int64, migrations fs.FS, opts Options) *Store {
	h, err := readHeader(path)
	if err != nil || h.application != applicationID || !h.log || h.size < h.says || hasLog(path) {
		return nil
	}
	s := &Store{path: path, now: opts.Clock, sync: opts.Sync}
	err = s.connect(ctx, opts)
	if err == nil {
		var version int64
		if version, err = inspectOpen(ctx, s.conn, h.size, opts); err == nil && version != target {
			err = checkVersion(version, target)
		}
	}
	if err == nil {
		err = s.prepare(ctx, target, migrations, opts)
	}
	if err != nil {
		_ = s.closeConnections() // the file is opened again
		return nil
	}
	return s
}

// prepare makes the connections of a database of the newest version ready.
func (s *Store) prepare(ctx context.Context, target int64, migrations fs.FS, opts Options) error {
	if err := s.sealAndCheck(ctx, target, migrations, opts); err != nil {
		return err
	}
	return errors.Join(s.stmts.prepare(ctx, s.conn), s.pollWhenBusy(ctx, busyTimeoutOf(opts)))
}

// sealAndCheck seals what an earlier version wrote, and checks that what Weir reads through
// is its own.
func (s *Store) sealAndCheck(ctx context.Context, target int64, migrations fs.FS, opts Options) error {
	if target >= sealVersion {
		if err := s.sealUnsealed(ctx); err != nil {
			return err
		}
	}
	if opts.Untrusted {
		return nil
	}
	return s.checkViews(ctx, migrations)
}

// newestVersion returns the highest number among the files of migrations.
func newestVersion(migrations fs.FS) (int64, error) {
	files, err := fs.Glob(migrations, "*.sql")
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("migrations: none found (%w)", err)
	}
	return goose.NumericComponent(files[len(files)-1])
}

// create makes a database next to path and links it into place when it is
// complete, so that no process ever sees half of one. Where another process was
// faster, its database stays.
func create(ctx context.Context, path string, opts Options, migrations fs.FS) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	made := f.Name()
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(made + suffix) // what is left of it
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if err := fillFile(ctx, made, opts, migrations); err != nil {
		return err
	}
	if err := linkFile(made, path); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// fillFile makes an empty file a database in WAL mode and syncs it. It keeps no journal
// meanwhile: no process uses an incomplete file.
func fillFile(ctx context.Context, path string, opts Options, migrations fs.FS) error {
	size := cmp.Or(opts.pageSize, defaultPageSize)
	db, err := sql.Open("sqlite", dsn(path, []string{"page_size(" + strconv.Itoa(size) + ")", "journal_mode(OFF)", "synchronous(OFF)", "foreign_keys(1)"}))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1) // another connection would be in another mode
	_, err = db.ExecContext(ctx, "PRAGMA application_id = "+strconv.Itoa(applicationID))
	if err == nil {
		err = makeSchema(ctx, db, migrations)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return syncFile(path)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// linkFile gives a file its name unless the name is taken.
func linkFile(made, path string) error {
	err := os.Link(made, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	// Not every file system has links.
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(made, path)
}

// syncFolder makes a new file's name as durable as its content.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// connect opens the writer's connection, and the readers' pool, whose connections are made when they are needed.
func (s *Store) connect(ctx context.Context, opts Options) error {
	busy := busyTimeoutOf(opts)
	shared := []string{
		"busy_timeout(" + strconv.FormatInt(busy.Milliseconds(), 10) + ")",
		"foreign_keys(1)",
	}
	write := append([]string{"journal_mode(WAL)", opts.Sync.pragma()}, shared...)
	if opts.maxPages > 0 {
		write = append(write, "max_page_count("+strconv.Itoa(opts.maxPages)+")")
	}
	var err error
	name := cmp.Or(opts.driver, "sqlite")
	if s.writer, err = sql.Open(name, dsn(s.path, write)); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(2) // one for goose in addition to conn, only while opening
	if s.conn, err = s.writer.Conn(ctx); err != nil {
		return err
	}
	pool, err := sql.Open(name, dsn(s.path, append([]string{"query_only(1)"}, shared...)))
	if err != nil {
		return err
	}
	s.reader = &readerPool{DB: pool}
	readers := opts.Readers
	if readers == 0 {
		readers = 4
	}
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	return nil
}

func busyTimeoutOf(opts Options) time.Duration { return cmp.Or(opts.BusyTimeout, 30*time.Second) }

// dsn returns the driver's name for a file, with pragmas in order.
func dsn(path string, pragmas []string) string {
	q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}
	return u.String()
}

// closeConnections closes what connect opened.
func (s *Store) closeConnections() error {
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	return errors.Join(errs...)
}

// upgrade brings the schema to the newest version, after a copy of the file.
// Of two processes that try at once, the one that comes late finds it done.
func (s *Store) upgrade(ctx context.Context, from, target int64, migrations fs.FS, backup bool) error {
	if from > 0 && backup {
		backup := fmt.Sprintf("%s.v%d.backup", s.path, from)
		_, err := s.conn.ExecContext(ctx, "VACUUM INTO ?", backup)
		if _, exists := os.Stat(backup); err != nil && exists != nil {
			return fmt.Errorf("back up to %s before an upgrade: %w", backup, err)
		}
		if err := os.Chmod(backup, 0o600); err != nil {
			return fmt.Errorf("back up before an upgrade: %w", err)
		}
		if err := removeLiveText(ctx, backup); err != nil {
			return fmt.Errorf("back up before an upgrade: %w", err)
		}
	}
	err := migrate(ctx, s.writer, migrations)
	if err == nil {
		return nil
	}
	if now, e := schemaVersion(ctx, s.reader.DB); e == nil && now == target {
		return nil
	}
	return fmt.Errorf("upgrade from version %d to %d: %w", from, target, err)
}

func migrate(ctx context.Context, db *sql.DB, migrations fs.FS) error {
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// schemaVersion reads the version that goose keeps, 0 if there is none.
func schemaVersion(ctx context.Context, db querier) (int64, error) {
	var tables int64
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'").Scan(&tables)
	if err != nil || tables == 0 {
		return 0, err
	}
	var v int64
	err = db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&v)
	return v, err
}

var (
	errForeign = fmt.Errorf("%w: the file is a SQLite database of another program", store.ErrNotWeir)
	errNotDB   = fmt.Errorf("%w: the file is not a SQLite database", store.ErrNotWeir)
)
