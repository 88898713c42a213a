package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/weir-run/weir/store"
)

// What the first 100 bytes of a file say; https://www.sqlite.org/fileformat.html.
const (
	headerSize    = 100
	magic         = "SQLite format 3\x00"
	applicationID = 0x57454952 // "WEIR"
	backupID      = 0x57454942 // "WEIB": of a file that Backup has made
	walFormat     = 2          // the file format of a database with a write-ahead log
)

// maxFullCheck is the size up to which a file is checked page by page when it
// is opened; damage in larger ones shows when the place is read.
const maxFullCheck = 4 << 20 // bytes

// inspect returns the schema version of the file at path, 0 for an empty one,
// without writing anything. Errors are fs.ErrNotExist, store.ErrNotWeir, store.ErrCorrupt and
// store.ErrNewerVersion.
func inspect(ctx context.Context, path string, target int64, opts Options) (int64, error) {
	h, err := readHeader(path)
	if err != nil || h.size == 0 {
		return 0, err
	}
	mode := "mode=ro" // a process has it open, or crashed with it open
	if !hasLog(path) {
		if h.size < h.says {
			return 0, fmt.Errorf("%w: it is %d bytes long and its header says %d", store.ErrCorrupt, h.size, h.says)
		}
		mode = "mode=ro&immutable=1" // no lock files, no log
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: mode + "&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return 0, err
	}
	version, err := inspectOpen(ctx, db, h.size, opts)
	if err := errors.Join(err, db.Close()); err != nil {
		return 0, err
	}
	if version > target {
		return 0, checkVersion(version, target)
	}
	return version, nil
}

func checkVersion(version, target int64) error {
	return fmt.Errorf("%w: it is of schema version %d and this build knows up to %d; use a newer weir",
		store.ErrNewerVersion, version, target)
}

// hasLog reports whether there is a write-ahead log next to a file, which may hold a newer header.
func hasLog(path string) bool {
	_, err := os.Stat(path + "-wal")
	return !errors.Is(err, fs.ErrNotExist)
}

// fileHeader is what a file and its first bytes say. It holds if there is no log next to the file.
type fileHeader struct {
	size, says  int64 // of the file, and according to the header, in bytes
	application uint32
	log         bool // the database keeps a write-ahead log
}

// readHeader checks what can be checked without SQLite. The size of an empty file is 0.
func readHeader(path string) (fileHeader, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe waits for its writer
		return fileHeader{}, fmt.Errorf("%w: the path is not a file", store.ErrNotWeir)
	}
	f, err := os.Open(path)
	if err != nil {
		return fileHeader{}, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return fileHeader{}, err
	}
	var h [headerSize]byte
	if _, err := io.ReadFull(f, h[:]); err != nil || string(h[:len(magic)]) != magic {
		return fileHeader{}, errNotDB
	}
	page := int64(binary.BigEndian.Uint16(h[16:]))
	if page == 1 {
		page = 1 << 16
	}
	if page < 512 || page&(page-1) != 0 {
		return fileHeader{}, fmt.Errorf("%w: its header says that pages have %d bytes", store.ErrCorrupt, page)
	}
	return fileHeader{
		size: info.Size(), says: page * int64(binary.BigEndian.Uint32(h[28:])),
		application: binary.BigEndian.Uint32(h[68:]), log: h[18] == walFormat && h[19] == walFormat,
	}, nil
}

func inspectOpen(ctx context.Context, db querier, size int64, opts Options) (int64, error) {
	var app, tables int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return 0, err
	}
	switch {
	case tables == 0 || app == applicationID:
	case app != backupID:
		return 0, errForeign
	case !opts.backup:
		return 0, store.ErrBackup
	}
	if err := checkTriggers(ctx, db); err != nil && !opts.Untrusted {
		return 0, err
	}
	version, err := schemaVersion(ctx, db)
	if err != nil || size > maxFullCheck {
		return version, err
	}
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return 0, err
	}
	if verdict != "ok" {
		return 0, fmt.Errorf("%w: %s", store.ErrCorrupt, verdict)
	}
	return version, nil
}
